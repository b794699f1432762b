use serde_json::{Value, json};

use super::*;
use crate::Constraint;

fn document(schemas: &Value) -> SchemaDocument {
    let document =
        json!({"openapi": "3.0.3", "info": {}, "paths": {}, "components": {"schemas": schemas}});
    SchemaDocument::parse(document).unwrap()
}

/// The violations of a spec as `(field, constraint, message)`.
fn violations(schema: &Value, spec: &Value) -> Vec<(String, Constraint, String)> {
    let schema = document(&json!({"S": schema}))
        .compile("S")
        .unwrap()
        .unwrap();
    let mut violations = Violations::default();
    schema.check(spec.as_object().unwrap(), &mut violations);
    let violations = violations.into_vec().into_iter();
    violations
        .map(|f| (f.field, f.constraint, f.message))
        .collect()
}

/// The messages of the older service, one schema for the member `a` each.
#[test]
fn each_keyword_has_its_words() {
    use Constraint::*;
    #[rustfmt::skip]
    let cases = [
        (json!({"type": "string"}), json!(1), Format, "value must be a string"),
        (json!({"type": "number"}), json!("x"), Format, "value must be a number"),
        (json!({"type": "boolean"}), json!(1), Format, "value must be a boolean"),
        (json!({"type": "integer"}), json!("x"), Format, "value must be an integer"),
        (json!({"type": "integer"}), json!(1.5), Format, "value must be an integer"),
        (json!({"type": "object"}), json!([]), Format, "value must be an object"),
        (json!({"type": "array"}), json!({}), Format, "value must be an array"),
        (json!({"type": "string"}), json!(null), Format, "Value is not nullable"),
        (json!({"type": "string", "nullable": true}), json!(1), Format, "value must be a string"),
        (json!({"enum": ["a", 2]}), json!("b"), Enum, "value is not one of the allowed values [\"a\",2]"),
        (json!({"const": {"a": 1}}), json!("b"), Enum, "value must be {\"a\":1}"),
        (json!({"minimum": 2}), json!(1), Min, "number must be at least 2"),
        (json!({"maximum": 2.5}), json!(3), Max, "number must be at most 2.5"),
        (json!({"minimum": 2, "exclusiveMinimum": true}), json!(2), Min, "number must be more than 2"),
        (json!({"maximum": 2, "exclusiveMaximum": true}), json!(2), Max, "number must be less than 2"),
        (json!({"type": "integer", "format": "int32"}), json!(2_147_483_648_i64), Max, "number must be at most 2147483647"),
        (json!({"multipleOf": 2}), json!(3), Format, "number must be a multiple of 2"),
        (json!({"minLength": 2}), json!("é"), MinLength, "minimum string length is 2"),
        (json!({"maxLength": 1}), json!("éé"), MaxLength, "maximum string length is 1"),
        (json!({"pattern": "^x+$"}), json!("y"), Pattern, "string doesn't match the regular expression \"^x+$\""),
        (json!({"format": "date-time"}), json!("y"), Format, "string doesn't match the format \"date-time\""),
        (json!({"format": "byte"}), json!("?"), Format, "string doesn't match the format \"byte\""),
        (json!({"format": "ipv4"}), json!("1.2.3"), Format, "string doesn't match the format \"ipv4\""),
        (json!({"minItems": 1}), json!([]), MinLength, "minimum number of items is 1"),
        (json!({"maxItems": 1}), json!([1, 2]), MaxLength, "maximum number of items is 1"),
        (json!({"uniqueItems": true}), json!([1, 1]), Unique, "duplicate items found"),
        (json!({"minProperties": 1}), json!({}), MinLength, "there must be at least 1 properties"),
        (json!({"maxProperties": 0}), json!({"x": 1}), MaxLength, "there must be at most 0 properties"),
        (json!({"oneOf": [{"minimum": 1}, {"minimum": 2}]}), json!(0), Format, "value doesn't match any schema from \"oneOf\""),
        (json!({"oneOf": [{"minimum": 1}, {"minimum": 2}]}), json!(3), Format, "value matches more than one schema from \"oneOf\""),
        (json!({"anyOf": [{"minimum": 1}, {"minimum": 2}]}), json!(0), Format, "doesn't match any schema from \"anyOf\""),
        (json!({"not": {"minimum": 1}}), json!(3), Format, "value matches the schema from \"not\""),
        (json!({"additionalProperties": false}), json!({"x": 1}), Enum, "property \"x\" is unsupported"),
    ];
    for (schema, value, constraint, message) in cases {
        let found = violations(&json!({"properties": {"a": schema}}), &json!({"a": value}));
        let expected = ("spec.a".to_owned(), constraint, message.to_owned());
        assert_eq!(found, [expected], "{schema}");
    }
}

#[test]
fn every_violation_has_its_path() {
    let schema = json!({
        "type": "object",
        "required": ["region", "nodes"],
        "additionalProperties": false,
        "properties": {
            "region": {"type": "string"},
            "nodes": {"type": "array", "items": {"$ref": "#/components/schemas/Node"}},
            "a/b~c": {"type": "string"},
        },
    });
    let node = json!({"type": "object", "required": ["name"], "properties": {"port": {"type": "integer"}}});
    let document = document(&json!({"S": schema, "Node": node}));
    let schema = document.compile("S").unwrap().unwrap();
    let spec = json!({"nodes": [{"name": "x"}, {"port": "y"}], "a/b~c": 1, "typo": 1, "tipo": 2});
    let mut violations = Violations::default();
    schema.check(spec.as_object().unwrap(), &mut violations);
    let mut found: Vec<_> = violations
        .as_slice()
        .iter()
        .map(|f| format!("{}: {}", f.field, f.message))
        .collect();
    found.sort();
    assert_eq!(
        found,
        [
            "spec.a/b~c: value must be a string",
            "spec.nodes.1.name: property \"name\" is missing",
            "spec.nodes.1.port: value must be an integer",
            "spec.region: property \"region\" is missing",
            "spec: property \"tipo\" is unsupported",
            "spec: property \"typo\" is unsupported",
        ]
    );
    let fitting = json!({"region": "x", "nodes": [{"name": "n", "port": 1}]});
    let mut violations = Violations::default();
    schema.check(fitting.as_object().unwrap(), &mut violations);
    assert!(violations.is_empty());
}

#[test]
fn no_value_of_a_spec_is_repeated() {
    let found = violations(
        &json!({"properties": {"a": {"type": "integer"}, "b": {"enum": ["x"]}, "c": {"pattern": "^x$"}}}),
        &json!({"a": "s3cret", "b": "s3cret", "c": "s3cret"}),
    );
    assert_eq!(found.len(), 3);
    assert!(
        found
            .iter()
            .all(|(_, _, message)| !message.contains("s3cret")),
        "{found:?}"
    );
}

#[test]
fn a_response_has_a_limited_number_of_violations() {
    let many: Map<String, Value> = (0..200).map(|n| (format!("p{n}"), json!(n))).collect();
    let many = Value::Object(many);
    let each = violations(&json!({"additionalProperties": {"type": "string"}}), &many);
    assert_eq!(each.len(), Violations::COUNT_MAX);
    let none = violations(&json!({"additionalProperties": false}), &many);
    assert_eq!(none.len(), Violations::COUNT_MAX);
}

#[test]
fn what_is_nullable_may_be_null_and_3_1_needs_no_conversion() {
    for schema in [
        json!({"type": "string", "nullable": true, "enum": ["x"]}),
        json!({"$ref": "#/components/schemas/T", "nullable": true}),
        json!({"allOf": [{"$ref": "#/components/schemas/T"}], "nullable": true}),
    ] {
        let document = document(
            &json!({"S": {"properties": {"a": schema}}, "T": {"type": "object", "required": ["x"]}}),
        );
        let compiled = document.compile("S").unwrap().unwrap();
        let mut violations = Violations::default();
        compiled.check(json!({"a": null}).as_object().unwrap(), &mut violations);
        assert!(violations.is_empty(), "{schema}");
        compiled.check(json!({"a": {}}).as_object().unwrap(), &mut violations);
        assert!(!violations.is_empty(), "{schema}");
    }
    let document = json!({"openapi": "3.1.0", "components": {"schemas": {"S": {
        "properties": {"a": {"type": ["string", "null"]}, "n": {"exclusiveMinimum": 0}},
    }}}});
    let schema = SchemaDocument::parse(document)
        .unwrap()
        .compile("S")
        .unwrap()
        .unwrap();
    let mut violations = Violations::default();
    schema.check(
        json!({"a": null, "n": 0}).as_object().unwrap(),
        &mut violations,
    );
    assert_eq!(violations.as_slice().len(), 1);
}

#[test]
fn a_document_that_cannot_be_used_says_why() {
    for (document, message) in [
        (
            json!(null),
            "it is not an OpenAPI document: its `openapi` must say \"3.0.…\" or \"3.1.…\", not null",
        ),
        (json!({"swagger": "2.0"}), "not null"),
        (json!({"openapi": "2.0"}), "not \"2.0\""),
        (json!({"openapi": 3.0}), "not 3.0"),
        (
            json!({"openapi": "3.0.3", "components": []}),
            "`components` must be an object",
        ),
        (
            json!({"openapi": "3.0.3", "components": {"schemas": {"a/b": {}}}}),
            "the component \"a/b\" must be renamed",
        ),
        (
            json!({"openapi": "3.0.3", "components": {"schemas": 1}}),
            "`components.schemas` must be an object",
        ),
    ] {
        let error = SchemaDocument::parse(document.clone())
            .unwrap_err()
            .to_string();
        assert!(error.contains(message), "{document}: {error}");
    }
    for stub in [
        json!({"openapi": "3.0.3", "paths": {}}),
        json!({"openapi": "3.1.1", "components": {"schemas": null}}),
    ] {
        let compiled = SchemaDocument::parse(stub).unwrap().compile("S");
        assert!(compiled.unwrap().is_none());
    }
    for (schema, message) in [
        (json!(3), "component \"S\" cannot be used"),
        (json!({"type": "strin"}), "(at /components/schemas/S/type)"),
        (
            json!({"properties": {"a": {"pattern": "("}}}),
            "(at /components/schemas/S/properties/a/pattern)",
        ),
        (
            json!({"pattern": "(?=a)b"}),
            "(at /components/schemas/S/pattern)",
        ),
        (
            json!({"$ref": "#/components/schemas/T"}),
            "'/components/schemas/T' does not exist",
        ),
        (
            json!({"$ref": "https://example.com/t.json"}),
            "https://example.com/t.json",
        ),
        (json!({"$ref": "other.yaml#/T"}), "other.yaml"),
    ] {
        let error = document(&json!({"S": schema}))
            .compile("S")
            .unwrap_err()
            .to_string();
        assert!(error.contains(message), "{schema}: {error}");
    }
}

#[test]
fn deep_specs_of_a_schema_of_a_tree_are_checked() {
    let tree = json!({"S": {"properties": {"d": {"$ref": "#/components/schemas/S"}}, "additionalProperties": false}});
    let schema = document(&tree).compile("S").unwrap().unwrap();
    let mut deep = json!({"x": 1});
    for _ in 0..60 {
        deep = json!({"d": deep});
    }
    let mut violations = Violations::default();
    schema.check(deep.as_object().unwrap(), &mut violations);
    assert_eq!(violations.as_slice().len(), 1);
}

#[test]
fn a_violation_of_several_alternatives_is_named_once() {
    let twice =
        json!({"allOf": [{"$ref": "#/components/schemas/A"}, {"$ref": "#/components/schemas/A"}]});
    let schemas = json!({"A": {"type": "string"}, "S": {"properties": {"a": twice}}});
    let schema = document(&schemas).compile("S").unwrap().unwrap();
    let mut violations = Violations::default();
    schema.check(json!({"a": 1}).as_object().unwrap(), &mut violations);
    assert_eq!(violations.as_slice().len(), 1);
}

#[test]
fn keywords_without_a_meaning_are_refused_with_their_place() {
    for (schema, place) in [
        (
            json!({"multipleOf": 0}),
            "(at /components/schemas/S/multipleOf)",
        ),
        (
            json!({"required": "a"}),
            "(at /components/schemas/S/required)",
        ),
    ] {
        let compiled = document(&json!({"S": schema})).compile("S");
        let error = compiled.unwrap_err().to_string();
        assert!(error.contains(place), "{schema}: {error}");
    }
}

#[test]
fn a_spec_that_costs_too_much_has_one_violation_without_a_path() {
    let plain = json!({"properties": {"a": {"items": {"type": "string"}}}});
    let several = json!({"properties": {"a": {"anyOf": [{"items": {"type": "string"}}, {"items": {"type": "object"}}]}}});
    let violations_of =
        |schema: &Value, items: usize| violations(schema, &json!({"a": vec![0; items]}));
    // The spec and its only member also count as values.
    let most = SpecSchema::VIOLATIONS_WORK_MAX - 2;
    assert_eq!(violations_of(&plain, most).len(), Violations::COUNT_MAX);
    assert_eq!(violations_of(&plain, most + 1).len(), 1);
    for schema in [plain, several] {
        let vague = violations_of(&schema, SpecSchema::VIOLATIONS_WORK_MAX);
        assert_eq!(vague.len(), 1);
        assert_eq!(vague[0].0, "spec");
        assert_eq!(
            vague[0].2,
            "spec does not fit the schema \"S\", and is too large to say where"
        );
        assert!(violations_of(&schema, 10)[0].0.starts_with("spec.a"));
    }
}

/// The harm that counting the work prevents: `jsonschema` reuses results of recursive schemas to say
/// whether a spec fits, but not to gather violations. 16 levels of `oneOf` took 5 s and 850 MB.
#[test]
fn violations_double_with_each_level_of_a_spec() {
    let branch =
        |own: &str| json!({"properties": {own: {"type": "integer"}, "child": {"$ref": "#"}}});
    let schema = json!({"allOf": [branch("a"), branch("b")]});
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut spec = json!({"a": "x"});
    for levels in 1..=8 {
        spec = json!({"child": spec});
        assert_eq!(validator.iter_errors(&spec).count(), 1 << levels);
    }
}

/// Such a schema doubles the violations of a small spec with each of its levels.
#[test]
fn deep_specs_of_a_schema_that_recurs_twice_are_too_much_work() {
    let itself = json!({"$ref": "#/components/schemas/S"});
    let branch = |own: &str| json!({"required": [own], "properties": {own: {"type": "integer"}, "child": itself}});
    let others = json!({"additionalProperties": itself, "type": "object"});
    let any = json!({"patternProperties": {"^c": itself}, "type": "object"});
    for schema in [
        json!({"oneOf": [branch("a"), branch("b")]}),
        json!({"anyOf": [branch("a"), branch("b")]}),
        json!({"allOf": [branch("a"), branch("b")]}),
        json!({"allOf": [others, others]}),
        json!({"allOf": [any, any]}),
    ] {
        let spec = |levels: usize| (0..levels).fold(json!(1), |spec, _| json!({"child": spec}));
        let deep = violations(&schema, &spec(60));
        assert_eq!(deep.len(), 1, "{schema}: {deep:?}");
        assert!(deep[0].2.ends_with("is too large to say where"), "{schema}");
        let shallow = violations(&schema, &spec(3));
        assert!(!shallow[0].2.ends_with("to say where"), "{schema}");
    }
}

#[test]
fn trees_and_alternatives_of_different_members_are_no_burden() {
    let own = |name: &str| json!({"properties": {name: {"$ref": "#/components/schemas/S"}}});
    for schema in [
        json!({"properties": {"left": {"$ref": "#/components/schemas/S"}, "right": {"$ref": "#/components/schemas/S"}},
               "additionalProperties": {"$ref": "#/components/schemas/S"}}),
        json!({"oneOf": [own("a"), own("b"), own("c")]}),
        json!({"allOf": [own("left")], "unevaluatedProperties": false}),
        json!({"items": {"$ref": "#/components/schemas/S"}, "properties": {"x": {"$ref": "#/components/schemas/S"}}}),
    ] {
        let compiled = document(&json!({"S": schema}))
            .compile("S")
            .unwrap()
            .unwrap();
        let mut deep = json!(1);
        for _ in 0..60 {
            deep = json!({"left": deep, "a": 1});
        }
        let mut violations = Violations::default();
        compiled.check(deep.as_object().unwrap(), &mut violations);
    }
}

#[test]
fn formats_are_checked() {
    for (format, good, bad) in [
        ("date", "2026-01-31", "2026-02-31"),
        ("date-time", "2026-01-01T10:00:00Z", "2026-01-01 10:00"),
        ("time", "10:00:00Z", "25:00:00Z"),
        ("duration", "P1DT2H", "1 day"),
        ("email", "a@example.com", "a"),
        ("hostname", "a.example.com", "-a"),
        ("ipv4", "10.0.0.1", "10.0.0"),
        ("ipv6", "::1", ":1"),
        ("uri", "https://example.com/", "example"),
        ("uuid", "0190a6f0-1c2b-7def-8123-456789abcdef", "0190a6f0"),
        ("regex", "^a$", "("),
        ("json-pointer", "/a", "a"),
        ("byte", "YQ==", "YQ="),
    ] {
        let schema = json!({"properties": {"a": {"type": "string", "format": format}}});
        assert_eq!(violations(&schema, &json!({"a": good})), [], "{format}");
        assert_eq!(violations(&schema, &json!({"a": bad})).len(), 1, "{format}");
    }
    let other = json!({"properties": {"a": {"type": "string", "format": "password"}}});
    assert_eq!(violations(&other, &json!({"a": ""})), []);
}
