//! Limits of JSON documents that clients send: a spec, the data of a report, an entire body.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;

/// Largest document, in bytes without blanks: as large as the body of a request.
pub const DOCUMENT_BYTES_MAX: usize = 1024 * 1024;
/// Deepest nesting of arrays and objects.
pub const DEPTH_MAX: usize = 64;
/// Arrays and objects at most. Small ones take a hundred times as much memory as text: this limits a body to about 20
/// MiB.
pub const NESTS_MAX: usize = 20_000;

/// The depth of a document, and its number of arrays and objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Nesting {
    /// Levels of arrays and objects, the document's own included.
    pub depth: usize,
    /// Arrays and objects, the document itself included.
    pub nests: usize,
}

impl Nesting {
    /// Measures a document. Its parser has limited the depth.
    pub fn of(value: &Value) -> Self {
        let below = |values: &mut dyn Iterator<Item = &Value>| {
            values.map(Self::of).fold(Self::default(), Self::join)
        };
        let inner = match value {
            Value::Array(elements) => below(&mut elements.iter()),
            Value::Object(members) => below(&mut members.values()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                return Self::default();
            }
        };
        Self {
            depth: inner.depth + 1,
            nests: inner.nests + 1,
        }
    }

    fn join(self, other: Self) -> Self {
        Self {
            depth: self.depth.max(other.depth),
            nests: self.nests + other.nests,
        }
    }
}

/// Checks that the body of a request could contain the document, which has this many bytes without blanks.
///
/// # Errors
///
/// Says which limit the document exceeds.
pub fn check_document(document: &Value, bytes: usize) -> Result<(), String> {
    if bytes > DOCUMENT_BYTES_MAX {
        return Err(format!(
            "it has {bytes} bytes, more than {DOCUMENT_BYTES_MAX}"
        ));
    }
    let Nesting { depth, nests } = Nesting::of(document);
    // A request's body has one more level and object around it.
    if depth >= DEPTH_MAX {
        return Err(format!("it is nested deeper than {} levels", DEPTH_MAX - 1));
    }
    if nests >= NESTS_MAX {
        return Err(format!(
            "it has {nests} arrays and objects, more than {}",
            NESTS_MAX - 1
        ));
    }
    Ok(())
}

/// The length of a value as JSON without blanks, in bytes.
pub fn bytes_of(value: &impl Serialize) -> usize {
    let mut counter = Counter(0);
    // Fails only for maps whose keys are not texts.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}

/// Counts what is written.
struct Counter(usize);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arrays_and_objects_are_counted_and_their_levels() {
        for (value, depth, nests) in [
            (json!(1), 0, 0),
            (json!({}), 1, 1),
            (json!({"a": 1, "b": "x"}), 1, 1),
            (json!({"a": [1, [2], {}], "b": {}}), 3, 5),
        ] {
            assert_eq!(Nesting::of(&value), Nesting { depth, nests }, "{value}");
        }
    }

    #[test]
    fn the_length_of_a_value_is_that_of_its_text() {
        for value in [
            json!(null),
            json!({"a": [1, 2.5, "ü\n"], "b": {}}),
            json!("x"),
        ] {
            assert_eq!(bytes_of(&value), value.to_string().len(), "{value}");
        }
    }

    #[test]
    fn a_document_is_as_large_as_a_body_allows() {
        let text = |bytes: usize| json!({"a": "x".repeat(bytes - 8)});
        let nested = |depth| (1..depth).fold(json!({}), |inner, _| json!({"a": inner}));
        let many = |nests: usize| json!({"a": vec![json!([]); nests - 2]});
        for (document, expected) in [
            (text(DOCUMENT_BYTES_MAX), Ok(())),
            (
                text(DOCUMENT_BYTES_MAX + 1),
                Err("it has 1048577 bytes, more than 1048576".to_owned()),
            ),
            (nested(DEPTH_MAX - 1), Ok(())),
            (
                nested(DEPTH_MAX),
                Err("it is nested deeper than 63 levels".to_owned()),
            ),
            (many(NESTS_MAX - 1), Ok(())),
            (
                many(NESTS_MAX),
                Err("it has 20000 arrays and objects, more than 19999".to_owned()),
            ),
        ] {
            assert_eq!(check_document(&document, bytes_of(&document)), expected);
        }
    }
}
