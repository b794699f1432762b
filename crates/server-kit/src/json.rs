//! JSON beyond what `serde_json` offers: reads objects member by member, for code that needs the order of names and
//! repeated names, which a map hides.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The members of an object in their order, including repeated names.
#[derive(Debug, Default)]
pub struct RawMembers<'a>(pub Vec<(Cow<'a, str>, &'a RawValue)>);

/// Borrowed from the text unless it has escapes.
#[derive(serde::Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for RawMembers<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = RawMembers<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((Name(name), raw)) = map.next_entry()? {
                    members.push((name, raw));
                }
                Ok(RawMembers(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

/// Reads an object without repeated names at any depth; `None` for anything else. Parsers differ in which of
/// two equal names they use, so one could check a value that another does not use (RFC 8725 §2.4).
pub fn unique_object(text: &[u8]) -> Option<Map<String, Value>> {
    let object = Value::Object(serde_json::from_slice(text).ok()?);
    // The map keeps one of equal names; the text has a colon for each.
    let is_unique = count_members(&object) == count_colons(text);
    match object {
        Value::Object(members) if is_unique => Some(members),
        _ => None,
    }
}

fn count_members(value: &Value) -> usize {
    match value {
        Value::Object(all) => all.len() + all.values().map(count_members).sum::<usize>(),
        Value::Array(all) => all.iter().map(count_members).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// Counts the colons outside strings of a valid text.
fn count_colons(text: &[u8]) -> usize {
    let (mut count, mut is_string) = (0, false);
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => is_string = !is_string,
            // The next byte is escaped, and may be a quote.
            b'\\' => drop(bytes.next()),
            b':' if !is_string => count += 1,
            _ => {}
        }
    }
    count
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
            (r#"{"a:\"": ":", "\\": {":": "\\\\:"}}"#, true),
            (r#"{"a": 1, "a": 1}"#, false),
            (r#"{"a": 1, "\u0061": 2}"#, false),
            (r#"{"b": {"a": 1, "a": 2}}"#, false),
            (r#"{"b": [{"a": 1, "a": 2}]}"#, false),
            (r#"["a"]"#, false),
            (r#"{"a": 1} {"b": 2}"#, false),
            ("", false),
        ] {
            assert_eq!(unique_object(text.as_bytes()).is_some(), is_taken, "{text}");
        }
        let deep = format!(r#"{{"a": {}{}}}"#, "[".repeat(5000), "]".repeat(5000));
        assert_eq!(unique_object(deep.as_bytes()), None);
    }

    #[test]
    fn what_is_read_is_what_stands_there() {
        let text = r#"{"a": [1, -2, 0.5, "x", null, true], "b": {"c": {}}}"#;
        let read = unique_object(text.as_bytes()).unwrap();
        assert_eq!(
            Value::Object(read),
            json!({"a": [1, -2, 0.5, "x", null, true], "b": {"c": {}}})
        );
    }
}
