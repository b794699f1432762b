//! Schemas of OpenAPI 3.1, which utoipa and operators write, as schemas of OpenAPI 3.0, which clients' generators read.
//!
//! | 3.1 | 3.0 |
//! | --- | --- |
//! | `type: [string, "null"]` | `type: string`, `nullable: true` |
//! | `oneOf: [{type: "null"}, X]` | X, `nullable: true`, with the type of X |
//! | `const: 1` | `enum: [1]` |
//! | `examples: [1, 2]` of a schema | `example: 1` |
//! | `exclusiveMinimum: 1` | `minimum: 1`, `exclusiveMinimum: true`, and so for the maximum |
//! | `$ref` with siblings | `allOf: [{$ref}]` with siblings |
//! | `prefixItems`, `propertyNames`, `$defs` and the like | left out: 3.0 cannot say it |
//!
//! Everything else is the same in both versions.

use serde_json::{Map, Value, json};

/// Schemas that refer to schemas may refer in a circle.
const REFERENCES_MAX: usize = 10;
/// Keywords of schemas that 3.0 has no equivalent for.
#[rustfmt::skip]
const UNKNOWN_WORDS: [&str; 21] = [
    "$anchor", "$comment", "$defs", "$dynamicAnchor", "$dynamicRef", "$id", "$schema", "contains", "contentEncoding",
    "contentMediaType", "contentSchema", "dependentRequired", "dependentSchemas", "else", "if", "maxContains", "minContains",
    "patternProperties", "propertyNames", "then", "unevaluatedProperties",
];

/// Converts the schemas of a document.
pub(super) fn to_3_0(schemas: &mut Map<String, Value>) {
    schemas.values_mut().for_each(schema);
    let all = Value::Object(schemas.clone());
    for schema in schemas.values_mut() {
        typed_nullables(schema, &all);
    }
}

/// Adds the type to "nullable or another schema": 3.0 gives `nullable` a meaning only beside `type`.
fn typed_nullables(value: &mut Value, schemas: &Value) {
    match value {
        Value::Object(members) => {
            if members.get("nullable") == Some(&json!(true))
                && let Some(found) = type_of(members, schemas, REFERENCES_MAX)
            {
                members.insert("type".to_owned(), found);
            }
            for (name, member) in members {
                if !matches!(name.as_str(), "example" | "examples") {
                    typed_nullables(member, schemas);
                }
            }
        }
        Value::Array(elements) => {
            for element in elements {
                typed_nullables(element, schemas);
            }
        }
        _ => {}
    }
}

/// The type of a schema, or of the only one that it consists of, within `depth` steps.
fn type_of(schema: &Map<String, Value>, schemas: &Value, depth: usize) -> Option<Value> {
    if let Some(found) = schema.get("type") {
        return Some(found.clone());
    }
    let next = match schema.get("$ref") {
        Some(reference) => &schemas[reference.as_str()?.strip_prefix("#/components/schemas/")?],
        None => match schema.get("allOf")?.as_array()?.as_slice() {
            [only] => only,
            _ => return None,
        },
    };
    type_of(next.as_object()?, schemas, depth.checked_sub(1)?)
}

/// Converts one schema and those within it.
fn schema(value: &mut Value) {
    match value {
        // `true` and `false` are schemas only in 3.1.
        Value::Bool(true) => *value = json!({}),
        Value::Bool(false) => *value = json!({"not": {}}),
        Value::Object(schema) => object(schema),
        _ => {}
    }
}

fn object(schema: &mut Map<String, Value>) {
    inner(schema);
    if schema.contains_key("patternProperties") {
        // Without the patterns it would forbid what they allow.
        schema.remove("additionalProperties");
    }
    schema.retain(|word, _| !UNKNOWN_WORDS.contains(&word.as_str()));
    types(schema);
    null_alternative(schema);
    if let Some(only) = schema.remove("const") {
        schema.insert("enum".to_owned(), json!([only]));
    }
    if let Some(Value::Array(examples)) = schema.remove("examples")
        && let Some(first) = examples.into_iter().next()
    {
        schema.entry("example").or_insert(first);
    }
    bound(schema, "exclusiveMinimum", "minimum", 1.0);
    bound(schema, "exclusiveMaximum", "maximum", -1.0);
    if schema.len() > 1
        && let Some(reference) = schema.remove("$ref")
    {
        schema.insert("allOf".to_owned(), json!([{"$ref": reference}]));
    }
}

/// Converts the parts of a schema.
fn inner(schema: &mut Map<String, Value>) {
    if schema.remove("prefixItems").is_some() {
        // An array of anything: 3.0 has no schema per position.
        schema.insert("items".to_owned(), json!({}));
    }
    for (word, member) in schema.iter_mut() {
        match (word.as_str(), member) {
            ("properties", Value::Object(properties)) => {
                properties.values_mut().for_each(self::schema);
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(parts)) => {
                parts.iter_mut().for_each(self::schema);
            }
            ("additionalProperties", member) if member.is_object() => self::schema(member),
            ("items" | "not", member) => self::schema(member),
            _ => {}
        }
    }
}

/// Converts a list of types: with `null` the type becomes nullable, and several become alternatives.
fn types(schema: &mut Map<String, Value>) {
    let mut types = match schema.remove("type") {
        None => return,
        Some(Value::Array(types)) => types,
        Some(only) => vec![only],
    };
    let count = types.len();
    types.retain(|one| one != "null");
    if types.is_empty() {
        schema.insert("enum".to_owned(), json!([null]));
    }
    if types.len() < count {
        schema.insert("nullable".to_owned(), json!(true));
        if let Some(Value::Array(values)) = schema.get_mut("enum")
            && !values.contains(&Value::Null)
        {
            values.push(Value::Null);
        }
    }
    let mut all = types.into_iter().map(|one| match one.as_str() {
        Some("array") => json!({"type": "array", "items": {}}),
        _ => json!({"type": one}),
    });
    if all.len() > 1 {
        // The schema may have alternatives of its own, and both must hold.
        let either = json!({"anyOf": all.collect::<Value>()});
        let parts = schema.entry("allOf").or_insert(json!([]));
        if let Some(parts) = parts.as_array_mut() {
            parts.push(either);
        }
    } else if let Some(Value::Object(one)) = all.next() {
        for (word, value) in one {
            schema.entry(word).or_insert(value);
        }
    }
}

/// Converts "null or another schema" into a nullable schema.
fn null_alternative(schema: &mut Map<String, Value>) {
    for word in ["oneOf", "anyOf"] {
        let Some(Value::Array(parts)) = schema.get_mut(word) else {
            continue;
        };
        let count = parts.len();
        // `type: null` is converted already.
        parts.retain(|part| part["enum"] != json!([null]));
        let rest = parts.len();
        if rest == count {
            continue;
        }
        schema.insert("nullable".to_owned(), json!(true));
        if rest < 2
            && let Some(parts) = schema.remove(word)
        {
            let (word, rest) = if rest == 0 {
                ("enum", json!([null]))
            } else {
                ("allOf", parts)
            };
            schema.insert(word.to_owned(), rest);
        }
    }
}

/// An exclusive bound is a number in 3.1, and a property of the inclusive bound in 3.0. `sign` is 1 if a higher bound is
/// tighter, and -1 if a lower one is.
fn bound(schema: &mut Map<String, Value>, exclusive: &str, inclusive: &str, sign: f64) {
    let Some(limit) = schema.get(exclusive).and_then(Value::as_f64) else {
        return;
    };
    let other = schema.get(inclusive).and_then(Value::as_f64);
    if let Some(exact) = schema.remove(exclusive)
        && other.is_none_or(|other| other * sign <= limit * sign)
    {
        schema.insert(inclusive.to_owned(), exact);
        schema.insert(exclusive.to_owned(), json!(true));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_converted(mut schemas: Value) -> Value {
        to_3_0(schemas.as_object_mut().unwrap());
        schemas
    }

    fn converted(schema: &Value) -> Value {
        all_converted(json!({"it": schema}))["it"].take()
    }

    #[test]
    fn what_3_0_does_not_know_is_said_in_its_words() {
        for (before, after) in [
            (
                json!({"type": ["string", "null"]}),
                json!({"type": "string", "nullable": true}),
            ),
            (
                json!({"type": ["string", "null"], "enum": ["a"]}),
                json!({"type": "string", "nullable": true, "enum": ["a", null]}),
            ),
            (
                json!({"type": ["string", "array"]}),
                json!({"allOf": [{"anyOf": [{"type": "string"}, {"type": "array", "items": {}}]}]}),
            ),
            (
                json!({"type": ["array"]}),
                json!({"type": "array", "items": {}}),
            ),
            (
                json!({"type": "null"}),
                json!({"nullable": true, "enum": [null]}),
            ),
            (
                json!({"oneOf": [{"type": "null"}, {"$ref": "#/a"}], "description": "d"}),
                json!({"allOf": [{"$ref": "#/a"}], "nullable": true, "description": "d"}),
            ),
            (
                json!({"anyOf": [{"type": "null"}, {"type": "string"}, {"type": "integer"}]}),
                json!({"anyOf": [{"type": "string"}, {"type": "integer"}], "nullable": true}),
            ),
            (
                json!({"anyOf": [{"type": "null"}]}),
                json!({"enum": [null], "nullable": true}),
            ),
            (
                json!({"patternProperties": {"^x": {}}, "additionalProperties": false}),
                json!({}),
            ),
            (json!({"const": 1}), json!({"enum": [1]})),
            (json!({"examples": [1, 2]}), json!({"example": 1})),
            (
                json!({"examples": [1], "example": 2}),
                json!({"example": 2}),
            ),
            (json!({"examples": []}), json!({})),
            (
                json!({"exclusiveMinimum": 1, "exclusiveMaximum": 5}),
                json!({"minimum": 1, "exclusiveMinimum": true, "maximum": 5, "exclusiveMaximum": true}),
            ),
            (
                json!({"exclusiveMinimum": 1, "minimum": 2}),
                json!({"minimum": 2}),
            ),
            (
                json!({"exclusiveMaximum": 1, "maximum": 2}),
                json!({"maximum": 1, "exclusiveMaximum": true}),
            ),
            (json!({"$ref": "#/a"}), json!({"$ref": "#/a"})),
            (
                json!({"$ref": "#/a", "description": "d"}),
                json!({"allOf": [{"$ref": "#/a"}], "description": "d"}),
            ),
            (
                json!({"type": "array", "prefixItems": [{"const": 1}]}),
                json!({"type": "array", "items": {}}),
            ),
            (
                json!({"propertyNames": {}, "$defs": {}, "$comment": "c"}),
                json!({}),
            ),
            (json!(true), json!({})),
            (json!(false), json!({"not": {}})),
        ] {
            assert_eq!(converted(&before), after, "{before}");
            // Nested schemas are also converted.
            for wrap in [
                |inner: &Value| json!({"type": "object", "properties": {"const": inner}}),
                |inner: &Value| json!({"type": "array", "items": inner}),
                |inner: &Value| json!({"allOf": [inner]}),
                |inner: &Value| json!({"not": inner}),
            ] {
                assert_eq!(converted(&wrap(&before)), wrap(&after), "{before}");
            }
            assert_eq!(converted(&after), after, "what is 3.0 stays as it is");
        }
    }

    #[test]
    fn a_nullable_reference_has_the_type_of_its_target() {
        let converted = all_converted(json!({
            "target": {"type": "object"},
            "free": {},
            "circle": {"$ref": "#/components/schemas/circle"},
            "it": {"properties": {
                "one": {"oneOf": [{"type": "null"}, {"$ref": "#/components/schemas/target"}]},
                "other": {"oneOf": [{"type": "null"}, {"$ref": "#/components/schemas/free"}]},
                "inline": {"oneOf": [{"type": "null"}, {"type": "string"}]},
                "described": {"oneOf": [{"type": "null"}, {"$ref": "#/components/schemas/target", "description": "d"}]},
                "circle": {"oneOf": [{"type": "null"}, {"$ref": "#/components/schemas/circle"}]},
            }},
        }));
        let properties = &converted["it"]["properties"];
        let target = |name: &str| json!([{"$ref": format!("#/components/schemas/{name}")}]);
        let expected = json!({
            "one": {"type": "object", "nullable": true, "allOf": target("target")},
            "other": {"nullable": true, "allOf": target("free")},
            "inline": {"type": "string", "nullable": true, "allOf": [{"type": "string"}]},
            "described": {
                "type": "object",
                "nullable": true,
                "allOf": [{"allOf": target("target"), "description": "d"}],
            },
            "circle": {"nullable": true, "allOf": target("circle")},
        });
        assert_eq!(*properties, expected);
    }

    #[test]
    fn examples_are_data() {
        let example = json!({"const": 1, "schema": {"const": 1}, "type": ["a", "null"]});
        let before = json!({"it": {"example": example, "const": 1}});
        let after = json!({"it": {"example": example, "enum": [1]}});
        assert_eq!(all_converted(before), after);
    }
}
