//! Converts the errors of a schema's validator to violations, with the wording of the older service.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use serde_json::{Map, Value};

use crate::{Constraint, Violation, Violations, excerpt};

/// The format `byte`.
pub(super) fn is_base64(text: &str) -> bool {
    BASE64_STANDARD.decode(text).is_ok()
}

/// One violation for each error of the validator, and one for each unknown member.
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
            // The error has only the first member.
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
            let message = message(kind, error.instance());
            vec![Violation::new(field, constraint(kind), message)]
        }
    }
}

/// One violation for each member that the schema does not have, at its path.
fn unsupported<'a>(field: &str, names: impl Iterator<Item = &'a String>) -> Vec<Violation> {
    let violations = names.map(|name| {
        let message = format!("property \"{}\" is unsupported", excerpt(name));
        Violation::new(field, Constraint::Enum, message)
    });
    violations.take(Violations::COUNT_MAX).collect()
}

/// `/nodes/1/port` of a spec is `spec.nodes.1.port`.
fn field(pointer: &str) -> String {
    let mut field = "spec".to_owned();
    for segment in pointer.split('/').skip(1) {
        field.push('.');
        field.push_str(&excerpt(&segment.replace("~1", "/").replace("~0", "~")));
    }
    field
}

fn constraint(kind: &Kind) -> Constraint {
    match kind {
        Kind::Enum { .. } | Kind::Constant { .. } | Kind::FalseSchema => Constraint::Enum,
        Kind::PropertyNames { .. }
        | Kind::Pattern { .. }
        | Kind::BacktrackLimitExceeded { .. }
        | Kind::RegexEngineFailure { .. } => Constraint::Pattern,
        Kind::UniqueItems => Constraint::Unique,
        Kind::Minimum { .. } | Kind::ExclusiveMinimum { .. } => Constraint::Min,
        Kind::Maximum { .. } | Kind::ExclusiveMaximum { .. } => Constraint::Max,
        Kind::MinLength { .. } | Kind::MinItems { .. } | Kind::MinProperties { .. } => {
            Constraint::MinLength
        }
        Kind::MaxLength { .. }
        | Kind::MaxItems { .. }
        | Kind::MaxProperties { .. }
        | Kind::AdditionalItems { .. }
        | Kind::UnevaluatedItems { .. } => Constraint::MaxLength,
        _ => Constraint::Format,
    }
}

fn message(kind: &Kind, instance: &Value) -> String {
    match kind {
        Kind::Type { .. } if instance.is_null() => "Value is not nullable".to_owned(),
        Kind::Type { kind } => format!("value must be {}", types(kind)),
        Kind::Enum { options } => {
            let options = json_excerpt(options);
            format!("value is not one of the allowed values {options}")
        }
        Kind::Constant { expected_value } => {
            format!("value must be {}", json_excerpt(expected_value))
        }
        Kind::FalseSchema => "value is not allowed here".to_owned(),
        Kind::PropertyNames { error } => {
            let name = excerpt(error.instance().as_str().unwrap_or_default());
            let why = message(error.kind(), error.instance());
            format!("the name \"{name}\" of a property does not fit: {why}")
        }
        Kind::Pattern { pattern } => {
            format!("string doesn't match the regular expression \"{pattern}\"")
        }
        Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } => {
            "string is too much for the regular expression of the schema".to_owned()
        }
        Kind::Format { format } => format!("string doesn't match the format \"{format}\""),
        Kind::UniqueItems => "duplicate items found".to_owned(),
        Kind::Contains => "no item is as one of them must be".to_owned(),
        Kind::AdditionalItems { .. } | Kind::UnevaluatedItems { .. } => {
            "there are more items than the schema describes".to_owned()
        }
        Kind::MultipleOf { multiple_of } => format!("number must be a multiple of {multiple_of}"),
        Kind::OneOfNotValid { .. } => "value doesn't match any schema from \"oneOf\"".to_owned(),
        Kind::OneOfMultipleValid { .. } => {
            "value matches more than one schema from \"oneOf\"".to_owned()
        }
        Kind::AnyOf { .. } => "doesn't match any schema from \"anyOf\"".to_owned(),
        Kind::Not { .. } => "value matches the schema from \"not\"".to_owned(),
        Kind::ContentEncoding { .. }
        | Kind::ContentMediaType { .. }
        | Kind::FromUtf8 { .. }
        | Kind::Custom { .. }
        | Kind::Referencing(_) => "value doesn't fit the schema".to_owned(),
        Kind::Minimum { limit } => format!("number must be at least {limit}"),
        Kind::Maximum { limit } => format!("number must be at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("number must be more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("number must be less than {limit}"),
        Kind::MinLength { limit } => format!("minimum string length is {limit}"),
        Kind::MaxLength { limit } => format!("maximum string length is {limit}"),
        Kind::MinItems { limit } => format!("minimum number of items is {limit}"),
        Kind::MaxItems { limit } => format!("maximum number of items is {limit}"),
        Kind::MinProperties { limit } => format!("there must be at least {limit} properties"),
        Kind::MaxProperties { limit } => format!("there must be at most {limit} properties"),
        other => format!("value doesn't fit the schema's \"{}\"", other.keyword()),
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

/// Values of the operator's schema may be long as well.
fn json_excerpt(value: &Value) -> String {
    const CHARACTERS_MAX: usize = 1000;
    value.to_string().chars().take(CHARACTERS_MAX).collect()
}
