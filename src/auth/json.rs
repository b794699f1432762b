//! JSON objects in which no name stands twice, at any depth: of two equal names readers take
//! different ones, and then one of them checks what the other does not use (RFC 8725 §2.4).

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Reads an object; `None` for anything else.
pub(super) fn object(text: &[u8]) -> Option<Map<String, Value>> {
    match serde_json::from_slice(text) {
        Ok(Unique(Value::Object(members))) => Some(members),
        _ => None,
    }
}

struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueVisitor).map(Self)
    }
}

struct UniqueVisitor;

impl<'de> Visitor<'de> for UniqueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON without equal names")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(Unique(item)) = items.next_element()? {
            all.push(item);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some((name, Unique(value))) = members.next_entry::<String, _>()? {
            if all.insert(name, value).is_some() {
                return Err(A::Error::custom("a name stands twice"));
            }
        }
        Ok(Value::Object(all))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_names_are_refused_wherever_they_stand() {
        for (text, is_taken) in [
            (
                r#"{"a": 1, "b": [{"a": null}], "c": true, "d": -1.5}"#,
                true,
            ),
            (r#"{"a": 1, "a": 1}"#, false),
            (r#"{"a": 1, "\u0061": 2}"#, false),
            (r#"{"b": {"a": 1, "a": 2}}"#, false),
            (r#"{"b": [{"a": 1, "a": 2}]}"#, false),
            (r#"["a"]"#, false),
            (r#"{"a": 1} {"b": 2}"#, false),
            ("", false),
        ] {
            assert_eq!(object(text.as_bytes()).is_some(), is_taken, "{text}");
        }
        let deep = format!(r#"{{"a": {}{}}}"#, "[".repeat(5000), "]".repeat(5000));
        assert_eq!(object(deep.as_bytes()), None);
    }

    #[test]
    fn what_is_read_is_what_stands_there() {
        let text = r#"{"a": [1, -2, 0.5, "x", null, true], "b": {"c": {}}}"#;
        let read = object(text.as_bytes()).unwrap();
        assert_eq!(
            Value::Object(read),
            json!({"a": [1, -2, 0.5, "x", null, true], "b": {"c": {}}})
        );
    }
}
