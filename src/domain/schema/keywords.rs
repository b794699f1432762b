//! Finds schemas within a document and within a schema, and knows their keywords.

use serde_json::{Map, Value};

/// Prefix of references to components. The rest is a place: the name of a component, and a JSON pointer within it,
/// which may be empty.
pub const COMPONENTS: &str = "#/components/schemas/";

/// The schema at a place.
pub fn find<'a>(components: &'a Map<String, Value>, place: &str) -> Option<&'a Value> {
    let (name, rest) = split(place);
    components.get(name)?.pointer(rest)
}

/// The two parts of a place.
pub(super) fn split(place: &str) -> (&str, &str) {
    place.split_at(place.find('/').unwrap_or(place.len()))
}

/// The values that the schemas below a keyword apply to.
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
    /// None, unless a reference leads to them.
    Nothing,
}

/// The form in which a keyword has schemas.
#[derive(Debug, Clone, Copy)]
enum Holds {
    One,
    List,
    Named,
}

/// Keywords that have schemas, the form of these, and the values that they apply to.
const HOLDING: [(&str, Holds, Applies); 21] = [
    ("$defs", Holds::Named, Applies::Nothing),
    ("additionalItems", Holds::One, Applies::Elements),
    ("additionalProperties", Holds::One, Applies::OtherMembers),
    ("allOf", Holds::List, Applies::Same),
    ("anyOf", Holds::List, Applies::Same),
    ("contains", Holds::One, Applies::Elements),
    ("contentSchema", Holds::One, Applies::Nothing),
    ("definitions", Holds::Named, Applies::Nothing),
    ("dependentSchemas", Holds::Named, Applies::Same),
    ("else", Holds::One, Applies::Same),
    ("if", Holds::One, Applies::Same),
    ("items", Holds::One, Applies::Elements),
    ("not", Holds::One, Applies::Same),
    ("oneOf", Holds::List, Applies::Same),
    ("patternProperties", Holds::Named, Applies::AnyMember),
    ("prefixItems", Holds::List, Applies::Elements),
    ("properties", Holds::Named, Applies::Member),
    ("propertyNames", Holds::One, Applies::AnyMember),
    ("then", Holds::One, Applies::Same),
    ("unevaluatedItems", Holds::One, Applies::Elements),
    ("unevaluatedProperties", Holds::One, Applies::AnyMember),
];

fn holding(keyword: &str) -> Option<(Holds, Applies)> {
    let found = HOLDING.iter().find(|(name, ..)| *name == keyword)?;
    Some((found.1, found.2))
}

/// All other keywords.
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

/// Whether a schema may have a member of that name (`x-` is free for everyone). `nullable` is a keyword of 3.0 alone.
pub(super) fn is_known(name: &str, is_30: bool) -> bool {
    PLAIN.contains(&name)
        || holding(name).is_some()
        || name.starts_with("x-")
        || (is_30 && name == "nullable")
}

/// The schemas one level below, each with the values that it applies to and its place below the schema, as the end of
/// a JSON pointer.
pub(super) fn below(schema: &Map<String, Value>) -> Vec<(Applies, String)> {
    let mut found = Vec::new();
    for (name, value) in schema {
        match (holding(name), value) {
            (Some((Holds::One, applies)), _) => found.push((applies, format!("/{name}"))),
            (Some((Holds::List, applies)), Value::Array(items)) => {
                let places = 0..items.len();
                found.extend(places.map(|place| (applies, format!("/{name}/{place}"))));
            }
            (Some((Holds::Named, applies)), Value::Object(members)) => {
                found.extend(members.keys().map(|member| {
                    let member = member.replace('~', "~0").replace('/', "~1");
                    (applies, format!("/{name}/{member}"))
                }));
            }
            _ => {}
        }
    }
    found
}

/// The schemas themselves, for changing them.
pub(super) fn below_mut(schema: &mut Map<String, Value>) -> Vec<&mut Value> {
    let mut found = Vec::new();
    for (name, value) in schema {
        match (holding(name), value) {
            (Some((Holds::One, _)), value) => found.push(value),
            (Some((Holds::List, _)), Value::Array(items)) => found.extend(items),
            (Some((Holds::Named, _)), Value::Object(members)) => found.extend(members.values_mut()),
            _ => {}
        }
    }
    found
}
