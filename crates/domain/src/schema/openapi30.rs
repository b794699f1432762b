//! Converts schemas of OpenAPI 3.0 to JSON Schema (draft 2020-12), which differ in a few keywords.

use serde_json::{Map, Value, json};

use super::keywords::below_mut;

/// Keywords that combine other schemas.
const COMPOSING: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// Converts a schema and every schema in it, but no other values: a property with the name `nullable`, or an example
/// that looks like a schema, stays as it is.
pub(super) fn convert(schema: &mut Value) {
    let Value::Object(keywords) = schema else {
        return;
    };
    let nullable = keywords.remove("nullable") == Some(Value::Bool(true));
    if let Some(reference) = keywords.remove("$ref") {
        // Beside a reference no other keyword counts in 3.0; many authors write `nullable` there all the same.
        keywords.clear();
        keywords.insert("$ref".to_owned(), reference);
    }
    below_mut(keywords).into_iter().for_each(convert);
    exclusive(keywords, "minimum", "exclusiveMinimum");
    exclusive(keywords, "maximum", "exclusiveMaximum");
    integer_format(keywords);
    if nullable {
        allow_null(schema);
    }
}

/// `minimum: 0, exclusiveMinimum: true` is `exclusiveMinimum: 0`.
fn exclusive(keywords: &mut Map<String, Value>, limit: &str, exclusive: &str) {
    if !keywords.get(exclusive).is_some_and(Value::is_boolean) {
        return;
    }
    if keywords.remove(exclusive) == Some(Value::Bool(true))
        && let Some(number) = keywords.remove(limit)
    {
        keywords.insert(exclusive.to_owned(), number);
    }
}

/// `int32` and `int64` are ranges; other formats of numbers do not limit them.
fn integer_format(keywords: &mut Map<String, Value>) {
    let range = match keywords.get("format").and_then(Value::as_str) {
        Some("int32") => json!({"minimum": i32::MIN, "maximum": i32::MAX}),
        Some("int64") => json!({"minimum": i64::MIN, "maximum": i64::MAX}),
        _ => return,
    };
    let all = keywords.entry("allOf").or_insert_with(|| json!([]));
    if let Some(all) = all.as_array_mut() {
        all.push(range);
    }
}

fn allow_null(schema: &mut Value) {
    let Value::Object(keywords) = schema else {
        return;
    };
    let is_composed = COMPOSING.iter().any(|name| keywords.contains_key(*name));
    if is_composed || keywords.contains_key("$ref") {
        // Not `anyOf`: that would hide the violations of a value that is not null behind its own.
        *schema = json!({"if": {"type": "null"}, "else": schema.take()});
        return;
    }
    if let Some(name) = keywords.get("type").and_then(Value::as_str) {
        let types = json!([name, "null"]);
        keywords.insert("type".to_owned(), types);
    }
    if let Some(Value::Array(values)) = keywords.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_converted() {
        for (schema, expected) in [
            (
                json!({"type": "string", "nullable": true}),
                json!({"type": ["string", "null"]}),
            ),
            (
                json!({"type": "string", "nullable": false}),
                json!({"type": "string"}),
            ),
            (
                json!({"enum": ["a"], "nullable": true}),
                json!({"enum": ["a", null]}),
            ),
            (
                json!({"$ref": "#/x", "nullable": true, "type": "string"}),
                json!({"if": {"type": "null"}, "else": {"$ref": "#/x"}}),
            ),
            (
                json!({"allOf": [{"nullable": true, "type": "string"}], "nullable": true}),
                json!({"if": {"type": "null"}, "else": {"allOf": [{"type": ["string", "null"]}]}}),
            ),
            (
                json!({"minimum": 0, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": false}),
                json!({"exclusiveMinimum": 0, "maximum": 9}),
            ),
            (json!({"exclusiveMinimum": true}), json!({})),
            (
                json!({"exclusiveMaximum": 5}),
                json!({"exclusiveMaximum": 5}),
            ),
            (
                json!({"format": "int32", "allOf": [{}]}),
                json!({"format": "int32", "allOf": [{}, {"minimum": i32::MIN, "maximum": i32::MAX}]}),
            ),
            (
                json!({"items": {"nullable": true, "type": "number"}, "not": {"minimum": 1, "exclusiveMinimum": true},
                       "additionalProperties": {"oneOf": [{"format": "int64"}]}}),
                json!({"items": {"type": ["number", "null"]}, "not": {"exclusiveMinimum": 1},
                       "additionalProperties": {"oneOf": [{"format": "int64", "allOf": [{"minimum": i64::MIN, "maximum": i64::MAX}]}]}}),
            ),
        ] {
            let mut converted = schema.clone();
            convert(&mut converted);
            assert_eq!(converted, expected, "{schema}");
        }
    }

    #[test]
    fn data_that_looks_like_a_schema_is_unchanged() {
        let same = json!({
            "properties": {"nullable": {"type": "boolean"}, "properties": {"type": "object"}, "allOf": {}},
            "example": {"nullable": true}, "default": {"nullable": true}, "enum": [{"nullable": true}],
            "additionalProperties": false, "x-extension": {"nullable": true}, "items": 3, "oneOf": "x",
        });
        let mut converted = same.clone();
        convert(&mut converted);
        assert_eq!(converted, same);
    }
}
