//! Reads bodies as the older server's decoder did, because its clients may rely on it: only the first JSON
//! value counts, unknown members are ignored, names of members are case-insensitive, and `null` counts as
//! absent. A value of a wrong type is refused with its path.

use serde::Deserialize as _;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

use crate::shown;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Undecodable {
    /// Empty. The older decoder's message.
    #[error("EOF")]
    Empty,
    /// It ends within the first value. The older decoder's message.
    #[error("unexpected EOF")]
    Cut,
    #[error("{0}")]
    Malformed(String),
    #[error("{path} must be {expected}")]
    Type {
        /// `the body` for all of it.
        path: String,
        expected: &'static str,
    },
}

/// A value and its path.
#[derive(Debug, Clone)]
pub(super) struct Part<'a> {
    path: String,
    raw: &'a RawValue,
}

/// The first value of a body.
pub(super) fn body(bytes: &[u8]) -> Result<Part<'_>, Undecodable> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    // The end is not checked.
    match <&RawValue>::deserialize(&mut reader) {
        Ok(raw) => Ok(Part {
            path: String::new(),
            raw,
        }),
        Err(error) if error.is_eof() => {
            let is_blank = bytes.iter().all(u8::is_ascii_whitespace);
            Err(if is_blank {
                Undecodable::Empty
            } else {
                Undecodable::Cut
            })
        }
        Err(error) => Err(malformed(&error)),
    }
}

impl<'a> Part<'a> {
    pub(super) fn is_null(&self) -> bool {
        self.raw.get() == "null"
    }

    /// Its members in their order, each under its name in `known`. Other members are left out.
    pub(super) fn members(
        &self,
        known: &[&'static str],
    ) -> Result<Vec<(&'static str, Part<'a>)>, Undecodable> {
        if self.is_null() {
            return Ok(Vec::new());
        }
        if !self.raw.get().starts_with('{') {
            return Err(self.must_be("an object"));
        }
        let mut reader = serde_json::Deserializer::from_str(self.raw.get());
        let members = reader.deserialize_map(Members { known });
        let members = members.map_err(|error| self.malformed(&error))?;
        let part = |(name, raw)| {
            let path = match self.path.as_str() {
                "" => String::from(name),
                path => format!("{path}.{name}"),
            };
            (name, Part { path, raw })
        };
        Ok(members.into_iter().map(part).collect())
    }

    /// Its elements: at most `most`, and one more if there are more.
    pub(super) fn elements(&self, most: usize) -> Result<Vec<Part<'a>>, Undecodable> {
        if self.is_null() {
            return Ok(Vec::new());
        }
        if !self.raw.get().starts_with('[') {
            return Err(self.must_be("an array"));
        }
        let elements: Vec<&RawValue> =
            serde_json::from_str(self.raw.get()).map_err(|error| self.malformed(&error))?;
        let part = |(index, raw)| Part {
            path: format!("{}[{index}]", self.path),
            raw,
        };
        let some = elements.into_iter().take(most + 1);
        Ok(some.enumerate().map(part).collect())
    }

    /// Its text; `None` for `null`.
    pub(super) fn text(&self) -> Result<Option<String>, Undecodable> {
        if self.is_null() {
            return Ok(None);
        }
        if !self.raw.get().starts_with('"') {
            return Err(self.must_be("a string"));
        }
        let text = serde_json::from_str(self.raw.get());
        Ok(Some(text.map_err(|error| self.malformed(&error))?))
    }

    /// Its number, if it is an integer in range.
    pub(super) fn number(&self) -> Option<u32> {
        serde_json::from_str(self.raw.get()).ok()
    }

    /// Invalid JSON after all: texts are checked only when they are read. The position counts from the start of
    /// this part, so the message names the part.
    fn malformed(&self, error: &serde_json::Error) -> Undecodable {
        if self.path.is_empty() {
            return malformed(error);
        }
        let said = error.to_string();
        let (what, _) = said.split_once(" at line ").unwrap_or((&said, ""));
        Undecodable::Malformed(shown(&format!("{}: {what}", self.path)))
    }

    /// A wrong type.
    pub(super) fn must_be(&self, expected: &'static str) -> Undecodable {
        let path = match self.path.as_str() {
            "" => "the body".to_owned(),
            path => path.to_owned(),
        };
        Undecodable::Type { path, expected }
    }
}

fn malformed(error: &serde_json::Error) -> Undecodable {
    Undecodable::Malformed(shown(&error.to_string()))
}

/// Keeps members with a known name in any case.
struct Members<'k> {
    known: &'k [&'static str],
}

impl<'de> Visitor<'de> for Members<'_> {
    type Value = Vec<(&'static str, &'de RawValue)>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(name) = map.next_key::<Name<'de>>()? {
            let known = self.known.iter();
            let known = known.copied().find(|k| name.0.eq_ignore_ascii_case(k));
            let raw: &RawValue = map.next_value()?;
            members.extend(known.map(|known| (known, raw)));
        }
        Ok(members)
    }
}

/// The name of a member, copied only if it has escapes.
#[derive(serde::Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_value_counts_and_what_follows_is_passed_over() {
        for text in [
            "{\"a\":\"x\"}",
            " {\"A\":\"x\"} trailing",
            "{\"b\":[],\"a\":\"x\"}{",
        ] {
            let members = body(text.as_bytes()).unwrap().members(&["a"]).unwrap();
            let texts: Vec<_> = members.iter().map(|(n, p)| (*n, p.text())).collect();
            assert_eq!(texts, [("a", Ok(Some("x".to_owned())))], "{text}");
        }
        assert!(body(b"null").unwrap().members(&["a"]).unwrap().is_empty());
    }

    #[test]
    fn what_is_nothing_and_what_is_cut_have_the_older_words() {
        for (text, words) in [
            ("", "EOF"),
            (" \n", "EOF"),
            ("{", "unexpected EOF"),
            ("{\"a\":\"", "unexpected EOF"),
            ("[1,", "unexpected EOF"),
        ] {
            assert_eq!(
                body(text.as_bytes()).unwrap_err().to_string(),
                words,
                "{text}"
            );
        }
        for text in ["x", "}", "{]", "{\"a\":\"\\x\"}", "\u{feff}{}"] {
            let fault = body(text.as_bytes()).unwrap_err();
            assert!(
                matches!(fault, Undecodable::Malformed(_)),
                "{text}: {fault}"
            );
        }
        assert!(body(b"{\"a\":\"\xff\"}").is_err());
    }

    #[test]
    fn a_fault_in_a_text_is_reported_by_its_path() {
        let part = body(b"{\"a\":[{\"b\":\"\\ud800\"}]}").unwrap();
        let a = part.members(&["a"]).unwrap().remove(0).1;
        let first = a.elements(9).unwrap().remove(0);
        let b = first.members(&["b"]).unwrap().remove(0).1;
        let said = b.text().unwrap_err().to_string();
        assert_eq!(said, "a[0].b: unexpected end of hex escape");
        let part = body(b"{\"a\":[{\"\\ud800\":1}]}").unwrap();
        let a = part.members(&["a"]).unwrap().remove(0).1;
        let first = a.elements(9).unwrap().remove(0);
        let said = first.members(&["b"]).unwrap_err().to_string();
        assert_eq!(said, "a[0]: unexpected end of hex escape");
    }

    #[test]
    fn other_types_are_refused_by_their_path() {
        let part = body(b"{\"a\":[{\"b\":1}]}").unwrap();
        let a = part.members(&["a"]).unwrap().remove(0).1;
        let first = a.elements(9).unwrap().remove(0);
        let b = first.members(&["b"]).unwrap().remove(0).1;
        let said = |fault: Undecodable| fault.to_string();
        assert_eq!(said(b.text().unwrap_err()), "a[0].b must be a string");
        assert_eq!(said(a.text().unwrap_err()), "a must be a string");
        assert_eq!(said(a.members(&[]).unwrap_err()), "a must be an object");
        assert_eq!(
            said(part.elements(9).unwrap_err()),
            "the body must be an array"
        );
    }

    #[test]
    fn deep_nesting_costs_no_stack() {
        let deep = "[".repeat(500_000) + &"]".repeat(500_000);
        let text = format!("{{\"x\":{deep},\"a\":\"y\"}}");
        let members = body(text.as_bytes()).unwrap().members(&["a"]).unwrap();
        assert_eq!(members[0].1.text(), Ok(Some("y".to_owned())));
        assert!(body(deep.as_bytes()).unwrap().text().is_err());
    }
}
