//! What a schema finds wrong, in the words that clients of the older service know.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use serde_json::{Map, Value};

use crate::domain::{Constraint, Violation, Violations, shown};

/// The format `byte`.
pub(super) fn is_base64(text: &str) -> bool {
    BASE64_STANDARD.decode(text).is_ok()
}

/// Each misfit is one violation, but for members that nobody knows: one each.
pub(super) fn violations(error: &ValidationError<'_>, spec: &Value) -> Vec<Violation> {
    let field = field(error.instance_path().as_str());
    match error.kind() {
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            unsupported(&field, unexpected.iter())
        }
        // A schema that names no property at all.
        Kind::FalseSchema
            if error
                .schema_path()
                .as_str()
                .ends_with("/additionalProperties") =>
        {
            // The error holds the first member alone.
            let object = spec.pointer(error.instance_path().as_str());
            let members = object.and_then(Value::as_object);
            unsupported(&field, members.into_iter().flat_map(Map::keys))
        }
        Kind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            let message = format!("property \"{name}\" is missing");
            let field = format!("{field}.{name}");
            vec![Violation::new(field, Constraint::Required, message)]
        }
        kind => {
            let (constraint, message) = told(kind, error.instance());
            vec![Violation::new(field, constraint, message)]
        }
    }
}

/// One violation for each member that the schema does not know, where they stand.
fn unsupported<'a>(field: &str, names: impl Iterator<Item = &'a String>) -> Vec<Violation> {
    let violations = names.map(|name| {
        let message = format!("property \"{}\" is unsupported", shown(name));
        Violation::new(field, Constraint::Enum, message)
    });
    violations.take(Violations::COUNT_MAX).collect()
}

/// `/nodes/1/port` of a spec is `spec.nodes.1.port`.
fn field(pointer: &str) -> String {
    let mut field = "spec".to_owned();
    for segment in pointer.split('/').skip(1) {
        field.push('.');
        field.push_str(&shown(&segment.replace("~1", "/").replace("~0", "~")));
    }
    field
}

fn told(kind: &Kind, instance: &Value) -> (Constraint, String) {
    let text = |constraint, text: &str| (constraint, text.to_owned());
    match kind {
        Kind::Type { .. } if instance.is_null() => {
            text(Constraint::Format, "Value is not nullable")
        }
        Kind::Type { kind } => (Constraint::Format, format!("value must be {}", types(kind))),
        Kind::Enum { options } => (
            Constraint::Enum,
            format!(
                "value is not one of the allowed values {}",
                shown_json(options)
            ),
        ),
        Kind::Constant { expected_value } => (
            Constraint::Enum,
            format!("value must be {}", shown_json(expected_value)),
        ),
        Kind::FalseSchema => text(Constraint::Enum, "value is not allowed here"),
        Kind::PropertyNames { error } => (
            Constraint::Pattern,
            format!(
                "the name \"{}\" of a property does not fit: {}",
                shown(error.instance().as_str().unwrap_or_default()),
                told(error.kind(), error.instance()).1
            ),
        ),
        Kind::Pattern { pattern } => (
            Constraint::Pattern,
            format!("string doesn't match the regular expression \"{pattern}\""),
        ),
        Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } => text(
            Constraint::Pattern,
            "string is too much for the regular expression of the schema",
        ),
        Kind::Format { format } => (
            Constraint::Format,
            format!("string doesn't match the format \"{format}\""),
        ),
        Kind::UniqueItems => text(Constraint::Unique, "duplicate items found"),
        Kind::Contains => text(Constraint::Format, "no item is as one of them must be"),
        Kind::AdditionalItems { .. } | Kind::UnevaluatedItems { .. } => text(
            Constraint::MaxLength,
            "there are more items than the schema describes",
        ),
        Kind::MultipleOf { multiple_of } => (
            Constraint::Format,
            format!("number must be a multiple of {multiple_of}"),
        ),
        Kind::OneOfNotValid { .. } => text(
            Constraint::Format,
            "value doesn't match any schema from \"oneOf\"",
        ),
        Kind::OneOfMultipleValid { .. } => text(
            Constraint::Format,
            "value matches more than one schema from \"oneOf\"",
        ),
        Kind::AnyOf { .. } => text(
            Constraint::Format,
            "doesn't match any schema from \"anyOf\"",
        ),
        Kind::Not { .. } => text(Constraint::Format, "value matches the schema from \"not\""),
        Kind::ContentEncoding { .. }
        | Kind::ContentMediaType { .. }
        | Kind::FromUtf8 { .. }
        | Kind::Custom { .. }
        | Kind::Referencing(_) => text(Constraint::Format, "value doesn't fit the schema"),
        limit => limits(limit),
    }
}

/// Keywords that compare with a number.
fn limits(kind: &Kind) -> (Constraint, String) {
    match kind {
        Kind::Minimum { limit } => (Constraint::Min, format!("number must be at least {limit}")),
        Kind::Maximum { limit } => (Constraint::Max, format!("number must be at most {limit}")),
        Kind::ExclusiveMinimum { limit } => {
            (Constraint::Min, format!("number must be more than {limit}"))
        }
        Kind::ExclusiveMaximum { limit } => {
            (Constraint::Max, format!("number must be less than {limit}"))
        }
        Kind::MinLength { limit } => (
            Constraint::MinLength,
            format!("minimum string length is {limit}"),
        ),
        Kind::MaxLength { limit } => (
            Constraint::MaxLength,
            format!("maximum string length is {limit}"),
        ),
        Kind::MinItems { limit } => (
            Constraint::MinLength,
            format!("minimum number of items is {limit}"),
        ),
        Kind::MaxItems { limit } => (
            Constraint::MaxLength,
            format!("maximum number of items is {limit}"),
        ),
        Kind::MinProperties { limit } => (
            Constraint::MinLength,
            format!("there must be at least {limit} properties"),
        ),
        Kind::MaxProperties { limit } => (
            Constraint::MaxLength,
            format!("there must be at most {limit} properties"),
        ),
        other => (
            Constraint::Format,
            format!("value doesn't fit the schema's \"{}\"", other.keyword()),
        ),
    }
}

fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => words(&one.to_string()).to_owned(),
        TypeKind::Multiple(several) => {
            let names = several.iter().map(|one| one.to_string());
            let names: Vec<_> = names.filter(|name| name != "null").collect();
            match names.as_slice() {
                [one] => words(one).to_owned(),
                several => format!("one of {}", several.join(", ")),
            }
        }
    }
}

fn words(name: &str) -> &str {
    match name {
        "string" => "a string",
        "number" => "a number",
        "boolean" => "a boolean",
        "integer" => "an integer",
        "object" => "an object",
        "array" => "an array",
        other => other,
    }
}

/// Values of the schema, which the operator wrote, are not as short as one might wish, either.
fn shown_json(value: &Value) -> String {
    const CHARACTERS_MAX: usize = 1000;
    value.to_string().chars().take(CHARACTERS_MAX).collect()
}
