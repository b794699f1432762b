//! The body of `PATCH …/machines`: changes of machines' metadata.

use serde::Deserialize;
use utoipa::ToSchema;

use super::decode::{Undecodable, body};

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
    let changes: Option<Vec<ChangeBody>> = body(bytes)?;
    let changes = changes.unwrap_or_default();
    if changes.len() > CHANGES_MAX {
        return Err(InvalidChange::TooMany);
    }
    changes.into_iter().map(ChangeBody::checked).collect()
}

/// One change of the metadata of one machine.
#[derive(Deserialize, ToSchema)]
#[serde(expecting = "an object")]
#[schema(as = MetadataChange)]
pub(super) struct ChangeBody {
    /// The operation; `add` and `replace` mean the same.
    op: Operation,
    /// Machine and key.
    #[schema(
        pattern = "^/([^/]+)/metadata/([A-Za-z0-9_.-]+)$",
        example = "/2b0d5b1e3c6f4a7f9d7e1a2b3c4d5e6f/metadata/region"
    )]
    path: String,
    /// The new value; not for `remove`.
    #[schema(nullable = true)]
    value: Option<MetadataValue>,
}

#[derive(PartialEq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = Change)]
pub(super) enum Operation {
    Add,
    Remove,
    Replace,
}

/// A value of metadata.
#[derive(Deserialize, ToSchema)]
#[serde(expecting = "an object")]
pub(super) struct MetadataValue {
    /// The value.
    #[schema(min_length = 1, example = "eu")]
    value: String,
}

impl ChangeBody {
    fn checked(self) -> Result<MetadataChange, InvalidChange> {
        let segments: Vec<_> = self.path.split('/').collect();
        let ["", machine, "metadata", key] = segments[..] else {
            return Err(InvalidChange::Path);
        };
        let is_key = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
        if machine.is_empty() || key.is_empty() || !key.bytes().all(is_key) {
            return Err(InvalidChange::Path);
        }
        let value = self.value.map(|value| value.value);
        let value = value.filter(|_| self.op != Operation::Remove);
        if self.op != Operation::Remove && value.as_deref().unwrap_or_default().is_empty() {
            return Err(InvalidChange::Value);
        }
        Ok(MetadataChange {
            machine: machine.to_owned(),
            key: key.to_owned(),
            value,
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
                {"op":"replace","path":"/m1/metadata/A_b.c-9","value":{"value":"y","more":1}},
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
    fn wrong_changes_are_refused() {
        let (path, value) = (
            "machine metadata path invalid",
            "invalid value: add and replace require a value",
        );
        for (text, start) in [
            ("[null]", "[0]: invalid type: null"),
            (
                r#"[{"op":"Add","path":"x"}]"#,
                "[0].op: unknown variant `Add`",
            ),
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
            (
                r#"[{"op":"add","path":"/m/metadata/a","value":"b"}]"#,
                "[0].value: invalid type",
            ),
            (r#"{"op":"add"}"#, "invalid type: map, expected a sequence"),
            ("", "EOF while parsing"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(start), "{text}: {error}");
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
