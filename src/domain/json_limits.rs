//! Limits of JSON documents that clients send: a spec, the data of a report, a whole body.

use serde_json::Value;

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
}
