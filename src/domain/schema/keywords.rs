//! Where schemas stand within a document and within a schema, and which words there are in one.

use serde_json::{Map, Value};

/// What references to components begin with. What comes after it is a place: the name of a component,
/// and a JSON pointer within that, which may be empty.
pub const COMPONENTS: &str = "#/components/schemas/";

/// What stands at a place.
pub fn find<'a>(components: &'a Map<String, Value>, place: &str) -> Option<&'a Value> {
    let (name, rest) = split(place);
    components.get(name)?.pointer(rest)
}

/// The two parts of a place.
pub(super) fn split(place: &str) -> (&str, &str) {
    place.split_at(place.find('/').unwrap_or(place.len()))
}

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
pub(super) fn below(schema: &Map<String, Value>) -> Vec<(&str, String)> {
    let mut found = Vec::new();
    for (name, value) in schema {
        let name = name.as_str();
        match value {
            Value::Array(items) if LIST.contains(&name) => {
                let places = 0..items.len();
                found.extend(places.map(|place| (name, format!("/{name}/{place}"))));
            }
            Value::Object(members) if MAP.contains(&name) => {
                found.extend(members.keys().map(|member| {
                    let member = member.replace('~', "~0").replace('/', "~1");
                    (name, format!("/{name}/{member}"))
                }));
            }
            _ if SCHEMA.contains(&name) => found.push((name, format!("/{name}"))),
            _ => {}
        }
    }
    found
}

/// The schemas themselves, to be changed.
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
