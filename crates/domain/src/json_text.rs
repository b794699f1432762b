//! JSON as text from the database to a client, without parsed values in between.

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};
use serde_transcode::Transcoder;

/// JSON as answers show it: no blanks, numbers as `serde_json` writes them.
#[derive(Debug, Clone)]
pub struct JsonText(Box<RawValue>);

impl JsonText {
    /// The text of a value.
    pub fn of(value: &impl Serialize) -> Self {
        // Fails only for maps whose keys are not texts.
        Self(to_raw_value(value).unwrap_or_default())
    }

    pub fn as_str(&self) -> &str {
        self.0.get()
    }
}

impl Serialize for JsonText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// Rewrites the text while it is read. PostgreSQL writes numbers out, 1e300 with 300 zeros: as it stands, an answer
/// could be fifty times as long as what clients sent. Members remain in their order.
impl<'de> Deserialize<'de> for JsonText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let rewritten = to_raw_value(&Transcoder::new(deserializer));
        rewritten.map(Self).map_err(D::Error::custom)
    }
}

/// By their texts: two with the members of an object in another order differ.
impl PartialEq for JsonText {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for JsonText {}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn stored_text_loses_its_blanks_and_keeps_its_members_in_order() {
        for (stored, expected) in [
            ("{}", "{}"),
            (" [ ] ", "[]"),
            (
                r#"{"b": 1, "aa": {"d": [], "c": [1, "x: , y"]}}"#,
                r#"{"b":1,"aa":{"d":[],"c":[1,"x: , y"]}}"#,
            ),
            (
                r#"["\\", "\"]\u0001", "é", true, false, null]"#,
                r#"["\\","\"]\u0001","é",true,false,null]"#,
            ),
        ] {
            let text: JsonText = serde_json::from_str(stored).unwrap();
            assert_eq!(text.as_str(), expected);
            assert_eq!(serde_json::to_string(&text).unwrap(), expected);
        }
    }

    #[test]
    fn numbers_are_written_as_those_of_values() {
        for (stored, expected) in [
            ("-12", "-12"),
            ("18446744073709551615", "18446744073709551615"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("1.50", "1.5"),
            ("0.0000001", "1e-7"),
            (&format!("1{}", "0".repeat(300)), "1e+300"),
        ] {
            let value: Value = serde_json::from_str(stored).unwrap();
            assert_eq!(JsonText::of(&value).as_str(), expected);
            let text: JsonText = serde_json::from_str(stored).unwrap();
            assert_eq!(text.as_str(), expected);
        }
    }

    #[test]
    fn text_that_is_not_json_is_refused() {
        for stored in ["", "{", "[1,]", r#"{"a":}"#, "1 2", "1e400"] {
            let text = serde_json::from_str::<JsonText>(stored);
            assert!(text.is_err(), "{stored}");
        }
    }
}
