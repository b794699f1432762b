//! Reads bodies of requests: unknown members are ignored, and `null` counts as absent.

use serde::de::DeserializeOwned;

use crate::shown;

/// A body that is not what the request needs: the path of the value, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Undecodable(String);

/// Reads a body of exactly one JSON value.
pub(super) fn body<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Undecodable> {
    let undecodable = |error: &dyn std::fmt::Display| Undecodable(shown(&error.to_string()));
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|e| undecodable(&e))?;
    reader.end().map_err(|error| undecodable(&error))?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Body {
        a: Vec<Item>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Item {
        b: String,
    }

    #[test]
    fn unknown_members_are_ignored() {
        let read = body(br#" {"x": [1], "a": [{"b": "c", "d": null}]} "#);
        let b = "c".to_owned();
        assert_eq!(
            read,
            Ok(Body {
                a: vec![Item { b }]
            })
        );
    }

    #[test]
    fn an_error_names_the_path_and_the_place() {
        for (text, message) in [
            ("", "EOF while parsing a value at line 1 column 0"),
            (r#"{"a":[]} {}"#, "trailing characters at line 1 column 10"),
            (
                r#"{"a":[{"b":1}]}"#,
                "a[0].b: invalid type: integer `1`, expected a string at line 1 column 12",
            ),
            (
                r#"{"a":[{"b":"\ud800"}]}"#,
                "a[0].b: unexpected end of hex escape at line 1 column 19",
            ),
        ] {
            let error = body::<Body>(text.as_bytes()).unwrap_err();
            assert_eq!(error.to_string(), message, "{text}");
        }
    }

    #[test]
    fn deep_nesting_of_what_is_ignored_costs_no_stack() {
        let deep = "[".repeat(500_000) + &"]".repeat(500_000);
        let text = format!(r#"{{"x":{deep},"a":[]}}"#);
        assert_eq!(body(text.as_bytes()), Ok(Body { a: Vec::new() }));
    }
}
