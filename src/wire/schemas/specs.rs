//! The operator's schemas of specs in the service's own document.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::domain::schema::SpecSchema;

const PREFIX: &str = "#/components/schemas/";

/// A schema under the name `target`, with every component that it refers to, however far away.
/// These stand below its name (`ClusterSpec.Platform`), where no schema of the service's own is.
pub(super) fn components(target: &str, schema: &SpecSchema) -> Vec<(String, Value)> {
    let all = schema.components();
    let mut names = BTreeMap::from([(schema.name(), target.to_owned())]);
    let mut waiting = vec![schema.name()];
    while let Some((_, component)) = waiting.pop().and_then(|name| all.get_key_value(name)) {
        let mut found = Vec::new();
        references(component, &mut found);
        for name in found {
            let Some((name, _)) = all.get_key_value(name) else {
                continue;
            };
            if !names.contains_key(name.as_str()) {
                names.insert(name, format!("{target}.{name}"));
                waiting.push(name);
            }
        }
    }
    let components = names.iter().map(|(name, renamed)| {
        let mut component = all.get(*name).cloned().unwrap_or_default();
        rename(&mut component, &names);
        (renamed.clone(), component)
    });
    components.collect()
}

/// The component that a reference leads into, and the rest of the reference.
fn split(reference: &str) -> Option<(&str, &str)> {
    let pointer = reference.strip_prefix(PREFIX)?;
    Some(pointer.split_at(pointer.find('/').unwrap_or(pointer.len())))
}

fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        Value::Object(members) => {
            let reference = members.get("$ref").and_then(Value::as_str);
            found.extend(reference.and_then(split).map(|(name, _)| name));
            members
                .values()
                .for_each(|member| references(member, found));
        }
        _ => {}
    }
}

fn rename(value: &mut Value, names: &BTreeMap<&str, String>) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, names)),
        Value::Object(members) => {
            rename_reference(members, names);
            members
                .values_mut()
                .for_each(|member| rename(member, names));
        }
        _ => {}
    }
}

fn rename_reference(members: &mut Map<String, Value>, names: &BTreeMap<&str, String>) {
    let Some(Value::String(reference)) = members.get_mut("$ref") else {
        return;
    };
    let renamed = split(reference)
        .and_then(|(name, rest)| Some(format!("{PREFIX}{}{rest}", names.get(name)?)));
    if let Some(renamed) = renamed {
        *reference = renamed;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::schema::SchemaDocument;

    #[test]
    fn what_a_schema_refers_to_comes_with_it() {
        let document = json!({"openapi": "3.0.3", "components": {"schemas": {
            "Spec": {"properties": {
                "a": {"$ref": "#/components/schemas/A/properties/x"},
                "self": {"nullable": true, "allOf": [{"$ref": "#/components/schemas/Spec"}]},
                "$ref": {"type": "string"},
            }},
            "A": {"properties": {"x": {"$ref": "#/components/schemas/B"}}},
            "B": {"items": {"$ref": "#/components/schemas/A"}},
            "Unused": {},
        }}});
        let schema = SchemaDocument::parse(document)
            .unwrap()
            .compile("Spec")
            .unwrap()
            .unwrap();
        let found: BTreeMap<_, _> = components("ClusterSpec", &schema).into_iter().collect();
        let expected = json!({
            "ClusterSpec": {"properties": {
                "a": {"$ref": "#/components/schemas/ClusterSpec.A/properties/x"},
                "self": {"nullable": true, "allOf": [{"$ref": "#/components/schemas/ClusterSpec"}]},
                "$ref": {"type": "string"},
            }},
            "ClusterSpec.A": {"properties": {"x": {"$ref": "#/components/schemas/ClusterSpec.B"}}},
            "ClusterSpec.B": {"items": {"$ref": "#/components/schemas/ClusterSpec.A"}},
        });
        assert_eq!(json!(found), expected);
    }
}
