//! The body of `PATCH …/machines`: changes of machines' metadata.

use super::decode::{Part, Undecodable, body};

/// Most changes of one request. The older server had no limit. Each machine takes a transaction.
pub const CHANGES_MAX: usize = 1000;

/// One change of the metadata of one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetadataChange {
    /// The machine need not exist.
    pub machine: String,
    pub key: String,
    /// `None` hides the configured value.
    pub value: Option<String>,
}

/// Why such a body is refused, in the older server's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidChange {
    #[error(transparent)]
    Undecodable(#[from] Undecodable),
    /// `op` is unknown.
    #[error("invalid op: expect add, remove, or replace")]
    Op,
    /// `path` is not `/<machine>/metadata/<key>`.
    #[error("machine metadata path invalid")]
    Path,
    /// `add` or `replace` without a value, or with an empty one.
    #[error("invalid value: add and replace require a value")]
    Value,
    #[error("too many changes: {CHANGES_MAX} at most")]
    TooMany,
}

/// Reads all changes of a body, an array of `{"op", "path", "value": {"value": "…"}}`, in their order. `add`
/// and `replace` mean the same.
///
/// # Errors
/// The first fault. Nothing of a list with a fault may be done.
pub fn metadata_changes(bytes: &[u8]) -> Result<Vec<MetadataChange>, InvalidChange> {
    let elements = body(bytes)?.elements(CHANGES_MAX)?;
    // As in the older decoder, the shape of the whole body is checked before any content.
    let written: Vec<_> = elements
        .iter()
        .map(Written::read)
        .collect::<Result<_, _>>()?;
    if written.len() > CHANGES_MAX {
        return Err(InvalidChange::TooMany);
    }
    written.into_iter().map(Written::checked).collect()
}

/// A change as it is written.
#[derive(Debug, Default)]
struct Written {
    op: String,
    path: String,
    value: String,
}

impl Written {
    fn read(part: &Part<'_>) -> Result<Self, Undecodable> {
        let mut written = Self::default();
        for (name, part) in part.members(&["op", "path", "value"])? {
            match name {
                "op" => written.op = part.text()?.unwrap_or(written.op),
                "path" => written.path = part.text()?.unwrap_or(written.path),
                _ => {
                    for (_, inner) in part.members(&["value"])? {
                        written.value = inner.text()?.unwrap_or(written.value);
                    }
                }
            }
        }
        Ok(written)
    }

    fn checked(self) -> Result<MetadataChange, InvalidChange> {
        let is_removal = match self.op.as_str() {
            "add" | "replace" => false,
            "remove" => true,
            _ => return Err(InvalidChange::Op),
        };
        let segments: Vec<_> = self.path.split('/').collect();
        let ["", machine, "metadata", key] = segments[..] else {
            return Err(InvalidChange::Path);
        };
        let is_key = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
        if machine.is_empty() || key.is_empty() || !key.bytes().all(is_key) {
            return Err(InvalidChange::Path);
        }
        if !is_removal && self.value.is_empty() {
            return Err(InvalidChange::Value);
        }
        Ok(MetadataChange {
            machine: machine.to_owned(),
            key: key.to_owned(),
            value: (!is_removal).then_some(self.value),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<MetadataChange>, String> {
        metadata_changes(text.as_bytes()).map_err(|fault| fault.to_string())
    }

    #[test]
    fn changes_are_read_in_their_order() {
        let changes = read(
            r#"[{"op":"add","path":"/m1/metadata/a","value":{"value":"x"}},
                {"OP":"replace","Path":"/m1/metadata/A_b.c-9","VALUE":{"Value":"y","more":1}},
                {"op":"remove","path":"/m2/metadata/a","value":null}]"#,
        );
        let change = |machine: &str, key: &str, value: Option<&str>| MetadataChange {
            machine: machine.to_owned(),
            key: key.to_owned(),
            value: value.map(str::to_owned),
        };
        let expected = [
            change("m1", "a", Some("x")),
            change("m1", "A_b.c-9", Some("y")),
            change("m2", "a", None),
        ];
        assert_eq!(changes.unwrap(), expected);
        assert_eq!(read("[]"), Ok(vec![]));
        assert_eq!(read("null"), Ok(vec![]));
    }

    #[test]
    fn faults_are_found_by_operation_then_path_then_value() {
        let (op, path, value) = (
            "invalid op: expect add, remove, or replace",
            "machine metadata path invalid",
            "invalid value: add and replace require a value",
        );
        for (text, fault) in [
            ("[null]", op),
            (r#"[{"op":"Add","path":"x"}]"#, op),
            (r#"[{"op":"add","path":"/m/metadata"}]"#, path),
            (r#"[{"op":"add","path":"//metadata/k"}]"#, path),
            (r#"[{"op":"add","path":"/m/metadata/"}]"#, path),
            (r#"[{"op":"add","path":"/m/metadata/a b"}]"#, path),
            (r#"[{"op":"add","path":"/m/metadata/a\n"}]"#, path),
            (r#"[{"op":"add","path":"/m/metadata/a/b"}]"#, path),
            (r#"[{"op":"add","path":"m/metadata/a"}]"#, path),
            (r#"[{"op":"add","path":"/m/metadata/a"}]"#, value),
            (
                r#"[{"op":"replace","path":"/m/metadata/a","value":{"value":""}}]"#,
                value,
            ),
            (r#"[{"op":"remove","path":"/m/metadata/a"},{"op":"x"}]"#, op),
            (
                r#"[{"op":"add","path":"/m/metadata/a","value":"b"}]"#,
                "[0].value must be an object",
            ),
            (r#"{"op":"add"}"#, "the body must be an array"),
            // The shape of the whole body comes first.
            (r#"[{"op":"x"},5]"#, "[1] must be an object"),
            ("", "EOF"),
            ("[", "unexpected EOF"),
        ] {
            assert_eq!(read(text), Err(fault.to_owned()), "{text}");
        }
    }

    #[test]
    fn there_is_a_most() {
        let one = r#"{"op":"remove","path":"/m/metadata/a"}"#;
        let many = |count: usize| format!("[{}]", vec![one; count].join(","));
        assert_eq!(read(&many(CHANGES_MAX)).unwrap().len(), CHANGES_MAX);
        let refused = read(&many(CHANGES_MAX + 1)).unwrap_err();
        assert_eq!(refused, "too many changes: 1000 at most");
    }
}
