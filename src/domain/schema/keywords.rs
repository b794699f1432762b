//! Where schemas stand within a schema, and which words there are in it.

use serde_json::{Map, Value};

/// Keywords that hold a schema.
const SCHEMA: [&str; 12] = [
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "additionalItems",
];
/// Keywords that hold a list of schemas.
const LIST: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
/// Keywords that hold schemas by name.
const MAP: [&str; 5] = [
    "$defs",
    "definitions",
    "dependentSchemas",
    "patternProperties",
    "properties",
];
/// All the others.
const PLAIN: [&str; 37] = [
    "$comment",
    "$ref",
    "$schema",
    "const",
    "contentEncoding",
    "contentMediaType",
    "default",
    "dependentRequired",
    "deprecated",
    "description",
    "discriminator",
    "enum",
    "example",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "externalDocs",
    "format",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "pattern",
    "readOnly",
    "required",
    "title",
    "type",
    "uniqueItems",
    "writeOnly",
    "xml",
];

/// Whether a schema may have a member of that name (`x-` is for everybody). `nullable` is a word of
/// 3.0 alone.
pub(super) fn is_known(name: &str, is_30: bool) -> bool {
    let lists: [&[&str]; 4] = [&SCHEMA, &LIST, &MAP, &PLAIN];
    lists.iter().any(|list| list.contains(&name))
        || name.starts_with("x-")
        || (is_30 && name == "nullable")
}

/// What the schemas below a keyword are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Applies {
    /// The same value.
    Same,
    /// A member of it, by name.
    Member,
    /// Members that are not named.
    OtherMembers,
    /// Members of any name.
    AnyMember,
    /// Its elements.
    Elements,
    /// Nothing, unless something refers to them.
    Nothing,
}

/// What the schemas below a keyword are about.
pub(super) fn applies(keyword: &str) -> Applies {
    match keyword {
        "allOf" | "anyOf" | "dependentSchemas" | "else" | "if" | "not" | "oneOf" | "then" => {
            Applies::Same
        }
        "properties" => Applies::Member,
        "additionalProperties" => Applies::OtherMembers,
        "patternProperties" | "propertyNames" | "unevaluatedProperties" => Applies::AnyMember,
        "additionalItems" | "contains" | "items" | "prefixItems" | "unevaluatedItems" => {
            Applies::Elements
        }
        _ => Applies::Nothing,
    }
}

/// The schemas one level below, each with its keyword and its place below the schema, as the end of a
/// JSON pointer.
pub(super) fn below(schema: &Map<String, Value>) -> Vec<(&str, String, &Value)> {
    let mut found = Vec::new();
    for (name, value) in schema {
        let name = name.as_str();
        match value {
            Value::Array(items) if LIST.contains(&name) => {
                let items = items.iter().enumerate();
                found.extend(items.map(|(place, item)| (name, format!("/{name}/{place}"), item)));
            }
            Value::Object(members) if MAP.contains(&name) => {
                found.extend(members.iter().map(|(member, value)| {
                    let member = member.replace('~', "~0").replace('/', "~1");
                    (name, format!("/{name}/{member}"), value)
                }));
            }
            _ if SCHEMA.contains(&name) => found.push((name, format!("/{name}"), value)),
            _ => {}
        }
    }
    found
}

/// The same, to be changed.
pub(super) fn below_mut(schema: &mut Map<String, Value>) -> Vec<&mut Value> {
    let mut found = Vec::new();
    for (name, value) in schema {
        let name = name.as_str();
        if SCHEMA.contains(&name) {
            found.push(value);
        } else if LIST.contains(&name) {
            found.extend(value.as_array_mut().into_iter().flatten());
        } else if MAP.contains(&name) {
            let members = value.as_object_mut().into_iter();
            found.extend(members.flat_map(Map::values_mut));
        }
    }
    found
}
