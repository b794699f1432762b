//! Finds schemas within a document and within a schema.

use serde_json::{Map, Value};

/// Prefix of references to components. The rest is a place: the name of a component, and a JSON pointer within it,
/// which may be empty.
pub const COMPONENTS: &str = "#/components/schemas/";

/// The schema at a place.
pub fn find<'a>(components: &'a Map<String, Value>, place: &str) -> Option<&'a Value> {
    let (name, rest) = place.split_at(place.find('/').unwrap_or(place.len()));
    components.get(name)?.pointer(rest)
}

/// The values that the schemas below a keyword apply to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Applies {
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

/// The schemas directly below a schema that apply to a value or its members, each with that value. A member may be
/// among them although its name does not match a pattern.
pub(super) fn applied<'a>(
    components: &'a Map<String, Value>,
    schema: &'a Map<String, Value>,
    value: &'a Value,
) -> Vec<(&'a Value, &'a Value)> {
    let reference = schema.get("$ref").and_then(Value::as_str);
    let target = reference.and_then(|reference| reference.strip_prefix(COMPONENTS));
    let target = target.and_then(|place| find(components, place));
    let mut found: Vec<_> = target.map(|target| (target, value)).into_iter().collect();
    let named = schema.get("properties").and_then(Value::as_object);
    let is_named = |name: &String| named.is_some_and(|named| named.contains_key(name));
    let elements = || value.as_array().into_iter().flatten();
    let members = || value.as_object().into_iter().flatten();
    for (keyword, held) in schema {
        let Some((holds, applies)) = holding(keyword) else {
            continue;
        };
        if applies == Applies::Member {
            let named = held.as_object().into_iter().flatten();
            found.extend(named.filter_map(|(name, schema)| Some((schema, value.get(name)?))));
            continue;
        }
        let schemas: Vec<_> = match (holds, held) {
            (Holds::One, schema) => vec![schema],
            (Holds::List, Value::Array(schemas)) => schemas.iter().collect(),
            (Holds::Named, Value::Object(schemas)) => schemas.values().collect(),
            _ => continue,
        };
        for schema in schemas {
            let mut add = |value| found.push((schema, value));
            match applies {
                Applies::Same => add(value),
                Applies::Elements => elements().for_each(add),
                Applies::AnyMember => members().for_each(|(_, value)| add(value)),
                Applies::OtherMembers => {
                    let others = members().filter(|(name, _)| !is_named(name));
                    others.for_each(|(_, value)| add(value));
                }
                Applies::Member | Applies::Nothing => {}
            }
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
