//! Reads the bodies of patches, in each of their formats.

use serde_json::Map;
use serde_json::value::RawValue;
use strum::{EnumIter, IntoEnumIterator as _};

use super::json::{BodyError, Members, ViolationSink, array_body, body, object_body};
use super::requests::{check_spec, labels, references, spec};
use hyperfleet_domain::patch::{
    JsonPatch, MergePatch, PatchMember, RequestedOperation, RequestedParts, RequestedPatch,
};
use hyperfleet_domain::{Constraint, Entity, Violation, excerpt};

/// The format of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumIter)]
pub enum PatchFormat {
    /// Parts that replace the stored ones.
    Parts,
    /// RFC 7396.
    Merge,
    /// RFC 6902.
    Operations,
}

impl PatchFormat {
    /// The media type of its bodies.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Parts => "application/json",
            Self::Merge => "application/merge-patch+json",
            Self::Operations => "application/json-patch+json",
        }
    }

    /// The format of a `Content-Type`, whose parameters do not matter. A blank one belongs to a request without the
    /// header.
    pub fn of(content_type: &str) -> Option<Self> {
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        if media_type.is_empty() {
            return Some(Self::Parts);
        }
        Self::iter().find(|format| format.media_type().eq_ignore_ascii_case(media_type))
    }

    /// The media types of all formats, as in `Accept-Patch`.
    pub fn media_types() -> String {
        let types: Vec<_> = Self::iter().map(Self::media_type).collect();
        types.join(", ")
    }
}

/// Reads the body of a patch. Unknown members are violations: a misspelt one would change nothing.
///
/// The spec of a patch in plain JSON is checked against `entity`; if the path does not name the kind, the use case
/// checks it once it has found the resource.
pub fn patch(
    format: PatchFormat,
    bytes: &[u8],
    entity: Option<&Entity>,
) -> Result<RequestedPatch, BodyError> {
    match format {
        PatchFormat::Parts => parts(bytes, entity).map(RequestedPatch::Parts),
        PatchFormat::Merge => merge(bytes).map(RequestedPatch::Merge),
        PatchFormat::Operations => operations(bytes).map(RequestedPatch::Operations),
    }
}

fn parts(bytes: &[u8], entity: Option<&Entity>) -> Result<RequestedParts, BodyError> {
    let violations = &ViolationSink::default();
    let body = body(bytes, violations);
    let mut body = body.map_err(|error| naming_operations(error, bytes))?;
    let spec = spec(&mut body);
    check_spec(entity, spec.as_ref(), violations);
    let parts = RequestedParts {
        spec,
        labels: labels(&mut body),
        references: references(&mut body),
    };
    refuse_unknown(&body)?;
    violations.check()?;
    if parts.spec.is_none() && parts.labels.is_none() && parts.references.is_none() {
        return Err(BodyError::NothingToUpdate);
    }
    Ok(parts)
}

fn merge(bytes: &[u8]) -> Result<MergePatch, BodyError> {
    let violations = &ViolationSink::default();
    let body = object_body(bytes, violations);
    let mut body = body.map_err(|error| naming_operations(error, bytes))?;
    let mut patch = Map::new();
    for member in PatchMember::iter() {
        let name = member.name();
        patch.extend(body.value(name).map(|value| (name.to_owned(), value)));
    }
    refuse_unknown(&body)?;
    violations.check()?;
    MergePatch::parse(patch).map_err(BodyError::Invalid)
}

/// A list in place of an object is most likely a JSON patch with the `Content-Type` of another format.
fn naming_operations(error: BodyError, bytes: &[u8]) -> BodyError {
    if !matches!(error, BodyError::Invalid(_)) || !bytes.trim_ascii_start().starts_with(b"[") {
        return error;
    }
    let operations = PatchFormat::Operations.media_type();
    let message = format!("the body must be an object; a list of operations is {operations}");
    BodyError::Invalid(Violation::new("", Constraint::Format, message).into())
}

fn operations(bytes: &[u8]) -> Result<JsonPatch, BodyError> {
    let violations = &ViolationSink::default();
    let elements = array_body(bytes)?.into_iter().enumerate();
    let operations = elements.map(|(index, raw)| operation(raw, index, violations));
    let operations = operations.map(Option::unwrap_or_default).collect();
    violations.check()?;
    JsonPatch::parse(operations).map_err(BodyError::Invalid)
}

/// Reads an operation. Unknown members are ignored, as RFC 6902 demands.
fn operation(
    raw: &RawValue,
    index: usize,
    violations: &ViolationSink,
) -> Option<RequestedOperation> {
    let mut members = violations.members(raw, &format!("operations[{index}]"))?;
    Some(RequestedOperation {
        op: members.text("op"),
        path: members.text("path"),
        from: members.text("from"),
        value: members.value("value"),
    })
}

fn refuse_unknown(body: &Members<'_>) -> Result<(), BodyError> {
    let Some(unknown) = body.unknown() else {
        return Ok(());
    };
    let unknown = excerpt(unknown);
    let text = format!("Invalid request format: json: unknown field \"{unknown}\"");
    Err(BodyError::Malformed(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_type_names_a_format() {
        use PatchFormat::{Merge, Operations, Parts};
        for (content_type, expected) in [
            ("", Some(Parts)),
            ("application/json", Some(Parts)),
            ("Application/JSON; charset=utf-8", Some(Parts)),
            ("application/merge-patch+json", Some(Merge)),
            ("application/merge-patch+json;charset=utf-8", Some(Merge)),
            ("application/json-patch+json ; a=b", Some(Operations)),
            ("application/x-www-form-urlencoded", None),
            ("application/strategic-merge-patch+json", None),
            ("application/json, application/merge-patch+json", None),
            ("*/*", None),
            ("json", None),
        ] {
            assert_eq!(PatchFormat::of(content_type), expected, "{content_type}");
        }
    }

    fn violations(format: PatchFormat, body: &str) -> Vec<(String, &'static str, String)> {
        match patch(format, body.as_bytes(), None) {
            Err(BodyError::Invalid(violations)) => violations
                .into_vec()
                .into_iter()
                .map(|violation| {
                    (
                        violation.field,
                        violation.constraint.into_str(),
                        violation.message,
                    )
                })
                .collect(),
            other => panic!("{body}: {other:?}"),
        }
    }

    #[test]
    fn every_violation_of_an_operation_is_named() {
        for (operation, field, constraint) in [
            (r#"{"path": "/spec"}"#, "op", "required"),
            (
                r#"{"op": "ADD", "path": "/spec", "value": 1}"#,
                "op",
                "enum",
            ),
            (r#"{"op": 1, "path": "/spec"}"#, "op", "format"),
            (r#"{"op": "remove"}"#, "path", "required"),
            (r#"{"op": "remove", "path": null}"#, "path", "required"),
            (r#"{"op": "remove", "path": "spec"}"#, "path", "format"),
            (r#"{"op": "remove", "path": "/spec/~2"}"#, "path", "format"),
            (r#"{"op": "remove", "path": ""}"#, "path", "enum"),
            (r#"{"op": "remove", "path": "/name"}"#, "path", "enum"),
            (
                r#"{"op": "test", "path": "/generation", "value": 1}"#,
                "path",
                "enum",
            ),
            (r#"{"op": "remove", "path": "/specs/a"}"#, "path", "enum"),
            (r#"{"op": "add", "path": "/spec/a"}"#, "value", "required"),
            (
                r#"{"op": "replace", "path": "/spec/a"}"#,
                "value",
                "required",
            ),
            (r#"{"op": "test", "path": "/spec/a"}"#, "value", "required"),
            (r#"{"op": "move", "path": "/spec/a"}"#, "from", "required"),
            (
                r#"{"op": "copy", "path": "/spec/a", "from": "/status"}"#,
                "from",
                "enum",
            ),
            (
                r#"{"op": "move", "path": "/spec/a/b", "from": "/spec/a"}"#,
                "path",
                "format",
            ),
            (
                r#"{"op": "add", "path": "/spec/a", "path": "/spec/b", "value": 1}"#,
                "path",
                "unique",
            ),
        ] {
            let all = violations(PatchFormat::Operations, &format!("[{operation}]"));
            let expected = format!("operations[0].{field}");
            assert_eq!(
                (&*all[0].0, all[0].1),
                (&*expected, constraint),
                "{operation}"
            );
            assert_eq!(all.len(), 1, "{operation}");
        }
    }

    #[test]
    fn operations_may_have_null_and_unknown_members() {
        let body = br#"[{"op": "add", "path": "/spec/a", "value": null, "note": 1}]"#;
        assert!(patch(PatchFormat::Operations, body, None).is_ok());
        assert!(patch(PatchFormat::Operations, b"[]", None).is_ok());
    }

    #[test]
    fn operations_have_a_limit() {
        let many = |count| {
            let one = r#"{"op": "remove", "path": "/spec/a"}"#;
            format!("[{}]", vec![one; count].join(","))
        };
        let body = many(JsonPatch::OPERATIONS_MAX);
        assert!(patch(PatchFormat::Operations, body.as_bytes(), None).is_ok());
        let all = violations(
            PatchFormat::Operations,
            &many(JsonPatch::OPERATIONS_MAX + 1),
        );
        let message = "a patch must have at most 256 operations".to_owned();
        assert_eq!(all, [("operations".to_owned(), "max", message)]);
    }

    #[test]
    fn a_body_of_another_type_is_refused() {
        let object = "the body must be an object";
        let operations =
            "the body must be an object; a list of operations is application/json-patch+json";
        let array = "the body must be an array";
        for (format, body, message) in [
            (PatchFormat::Merge, "null", object),
            (PatchFormat::Merge, "[]", operations),
            (PatchFormat::Parts, " [{}]", operations),
            (PatchFormat::Parts, "1", object),
            (PatchFormat::Merge, "1", object),
            (PatchFormat::Operations, "null", array),
            (PatchFormat::Operations, "{}", array),
        ] {
            assert_eq!(violations(format, body)[0].2, message, "{body}");
        }
    }

    #[test]
    fn a_merge_patch_cannot_remove_the_spec() {
        let all = violations(PatchFormat::Merge, r#"{"spec": null, "labels": null}"#);
        let message = "spec is required".to_owned();
        assert_eq!(all, [("spec".to_owned(), "required", message)]);
    }

    #[test]
    fn a_label_without_a_value_is_refused_in_plain_json() {
        let all = violations(PatchFormat::Parts, r#"{"labels": {"a": null, "b": "c"}}"#);
        let message = "label value must be a string, not null".to_owned();
        assert_eq!(all, [("labels[a]".to_owned(), "format", message)]);
    }

    #[test]
    fn unknown_members_are_refused_in_every_object() {
        for format in [PatchFormat::Parts, PatchFormat::Merge] {
            let read = patch(format, br#"{"name": "x"}"#, None);
            let text = "Invalid request format: json: unknown field \"name\"".to_owned();
            assert!(matches!(read, Err(BodyError::Malformed(found)) if found == text));
        }
    }
}
