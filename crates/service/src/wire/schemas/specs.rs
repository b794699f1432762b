//! Copies the operator's schemas of specs into the service's own document.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use hyperfleet_domain::schema::{COMPONENTS, SpecSchema, find};

/// A schema under the name `target`, with everything that it refers to, directly or not. Each target of a reference
/// becomes a component below that name (`ClusterSpec.Platform`), beside the service's own schemas: parts below a
/// keyword that 3.0 does not know would be lost.
pub(super) fn components(target: &str, schema: &SpecSchema) -> Vec<(String, Value)> {
    let all = schema.components();
    let mut bundle = Bundle {
        all,
        names: BTreeMap::from([(schema.name().to_owned(), target.to_owned())]),
        target,
    };
    let mut made = Vec::new();
    let mut waiting = vec![schema.name().to_owned()];
    while let Some(place) = waiting.pop() {
        let mut component = find(all, &place).cloned().unwrap_or_default();
        bundle.rename(&mut component, &mut waiting);
        made.push((bundle.names[&place].clone(), component));
    }
    made.sort_by(|a, b| a.0.cmp(&b.0));
    made
}

struct Bundle<'a> {
    all: &'a Map<String, Value>,
    /// New names, by the texts of references.
    names: BTreeMap<String, String>,
    target: &'a str,
}

impl Bundle<'_> {
    /// Points the references of a schema to the new names; `found` collects targets that are new.
    fn rename(&mut self, value: &mut Value, found: &mut Vec<String>) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.rename(item, found)),
            Value::Object(members) => {
                if let Some(Value::String(reference)) = members.get_mut("$ref") {
                    self.lead(reference, found);
                }
                if let Some(Value::Object(mapping)) = members
                    .get_mut("discriminator")
                    .and_then(|discriminator| discriminator.get_mut("mapping"))
                {
                    self.rename_mapping(mapping, found);
                }
                members
                    .values_mut()
                    .for_each(|member| self.rename(member, found));
            }
            _ => {}
        }
    }

    /// A mapping also names components, with or without the prefix of references.
    fn rename_mapping(&mut self, mapping: &mut Map<String, Value>, found: &mut Vec<String>) {
        for value in mapping.values_mut() {
            if let Value::String(reference) = value {
                if self.all.contains_key(reference.as_str()) {
                    reference.insert_str(0, COMPONENTS);
                }
                self.lead(reference, found);
            }
        }
    }

    fn lead(&mut self, reference: &mut String, found: &mut Vec<String>) {
        let Some(place) = reference.strip_prefix(COMPONENTS) else {
            return;
        };
        if find(self.all, place).is_none() {
            return;
        }
        if !self.names.contains_key(place) {
            found.push(place.to_owned());
            self.names.insert(place.to_owned(), self.free(place));
        }
        let name = &self.names[place];
        *reference = format!("{COMPONENTS}{name}");
    }

    /// A name that OpenAPI allows and no other component has.
    fn free(&self, place: &str) -> String {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let plain = place.chars().map(|c| if is_plain(c) { c } else { '.' });
        let mut name: String = format!("{}.", self.target).chars().chain(plain).collect();
        while self.names.values().any(|other| *other == name) {
            name.push('_');
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use hyperfleet_domain::schema::SchemaDocument;

    fn bundled(name: &str, schemas: &Value) -> Value {
        let document = json!({"openapi": "3.1.0", "components": {"schemas": schemas}});
        let schema = SchemaDocument::parse(document)
            .unwrap()
            .compile(name)
            .unwrap()
            .unwrap();
        let found: BTreeMap<_, _> = components("ClusterSpec", &schema).into_iter().collect();
        json!(found)
    }

    #[test]
    fn what_a_schema_refers_to_comes_with_it() {
        let found = bundled(
            "Spec",
            &json!({
                "Spec": {"properties": {
                    "a": {"$ref": "#/components/schemas/A"},
                    "self": {"allOf": [{"$ref": "#/components/schemas/Spec"}]},
                    "own": {"$ref": "#/components/schemas/Spec/$defs/q"},
                    "$ref": {"type": "string"},
                }, "$defs": {"q": {"maxLength": 3}}},
                "A": {"properties": {"x": {"$ref": "#/components/schemas/B"}}},
                "B": {"items": {"$ref": "#/components/schemas/A"}},
                "Unused": {},
            }),
        );
        let expected = json!({
            "ClusterSpec": {"properties": {
                "a": {"$ref": "#/components/schemas/ClusterSpec.A"},
                "self": {"allOf": [{"$ref": "#/components/schemas/ClusterSpec"}]},
                "own": {"$ref": "#/components/schemas/ClusterSpec.Spec..defs.q"},
                "$ref": {"type": "string"},
            }, "$defs": {"q": {"maxLength": 3}}},
            "ClusterSpec.A": {"properties": {"x": {"$ref": "#/components/schemas/ClusterSpec.B"}}},
            "ClusterSpec.B": {"items": {"$ref": "#/components/schemas/ClusterSpec.A"}},
            "ClusterSpec.Spec..defs.q": {"maxLength": 3},
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn mappings_lead_where_references_do() {
        let found = bundled(
            "S",
            &json!({
                "S": {
                    "oneOf": [{"$ref": "#/components/schemas/A"}, {"$ref": "#/components/schemas/B"}],
                    "discriminator": {"propertyName": "t", "mapping": {
                        "a": "#/components/schemas/A", "b": "B", "c": "https://example.com/c",
                    }},
                },
                "A": {"type": "object"},
                "B": {"type": "object"},
            }),
        );
        let mapping = &found["ClusterSpec"]["discriminator"]["mapping"];
        assert_eq!(
            mapping,
            &json!({
                "a": "#/components/schemas/ClusterSpec.A",
                "b": "#/components/schemas/ClusterSpec.B",
                "c": "https://example.com/c",
            })
        );
    }

    #[test]
    fn specs_of_similar_kinds_have_distinct_names() {
        let found = bundled(
            "S",
            &json!({
                "S": {"anyOf": [{"$ref": "#/components/schemas/A/not"}, {"$ref": "#/components/schemas/A.not"}]},
                "A": {"not": {"type": "string"}},
                "A.not": {"type": "integer"},
            }),
        );
        let names: Vec<_> = found
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(
            names,
            ["ClusterSpec", "ClusterSpec.A.not", "ClusterSpec.A.not_"]
        );
    }
}
