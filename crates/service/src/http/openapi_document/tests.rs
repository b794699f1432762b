use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use hyperfleet_server_kit::openapi::yaml;

use super::*;
use crate::http::routes::endpoints;
use crate::wire::Params;
use hyperfleet_domain::entity_config::{EntityConfig, ReferenceConfig, attach, built_in, registry};
use hyperfleet_domain::schema::SchemaDocument;

fn kind(kind: &str, plural: &str, parent: &str) -> EntityConfig {
    EntityConfig {
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        parent_kind: parent.to_owned(),
        ..EntityConfig::default()
    }
}

/// Three levels, required references, names that collide in every way.
fn unusual() -> Vec<EntityConfig> {
    let mut linked = kind("Resource", "ours", "Top");
    linked.references = vec![ReferenceConfig {
        ref_type: "uses".to_owned(),
        target_kind: "Top".to_owned(),
        min: 1,
        max: 2,
    }];
    linked.name_min_len = 20;
    linked.name_max_len = 20;
    vec![
        kind("Top", "tops", ""),
        kind("top", "others", "Top"),
        linked,
        kind("Bottom", "bottoms", "Resource"),
        kind("bottom-most", "bottom-mosts", "Bottom"),
        kind("Adapter", "adapters", ""),
        kind("Error", "errors", ""),
        kind("Apple", "top-by-id", ""),
    ]
}

fn registries() -> Vec<EntityRegistry> {
    let examples = include_str!("../../../../../examples/entities.yaml");
    let examples: BTreeMap<String, Vec<EntityConfig>> = yaml_serde::from_str(examples).unwrap();
    let all = [built_in(), examples["entities"].clone(), unusual(), vec![]];
    let mut all: Vec<_> = all
        .iter()
        .map(|configs| registry(configs).unwrap())
        .collect();
    all.push(with_spec_schemas());
    all
}

/// The built-in kinds with the example of schemas for them.
fn with_spec_schemas() -> EntityRegistry {
    let schemas = include_str!("../../../../../openapi/spec-schemas.yaml");
    let schemas = SchemaDocument::parse(yaml_serde::from_str(schemas).unwrap()).unwrap();
    let kinds = built_in();
    let attached = attach(registry(&kinds).unwrap(), &kinds, Some(&schemas));
    attached.unwrap().registry
}

fn document(registry: &EntityRegistry) -> Value {
    openapi(registry, env!("CARGO_PKG_VERSION"))
}

/// The official schema of OpenAPI 3.0 documents.
fn assert_valid(document: &Value) {
    let schema = include_str!("../../../../../tests/fixtures/openapi-3.0.schema.json");
    let schema = serde_json::from_str(schema).unwrap();
    let validator = jsonschema::draft4::new(&schema).unwrap();
    let errors: Vec<_> = validator
        .iter_errors(document)
        .map(|error| format!("{}: {error:.300}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

/// Every operation: path, method, description.
fn operations(document: &Value) -> Vec<(&str, &str, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    let operations = paths.iter().flat_map(|(path, item)| {
        let item = item.as_object().unwrap().iter();
        item.map(move |(method, operation)| (&**path, &**method, operation))
    });
    operations.collect()
}

/// Every value under a name, anywhere.
fn all<'a>(value: &'a Value, name: &str, found: &mut Vec<&'a Value>) {
    match value {
        Value::Object(members) => {
            found.extend(members.get(name));
            members.values().for_each(|member| all(member, name, found));
        }
        Value::Array(elements) => elements
            .iter()
            .for_each(|element| all(element, name, found)),
        _ => {}
    }
}

#[test]
fn the_committed_document_is_that_of_the_built_in_kinds() {
    let made = yaml(&document(&registry(&built_in()).unwrap())).unwrap();
    let committed = include_str!("../../../../../openapi/openapi.yaml");
    assert!(
        made == committed,
        "openapi/openapi.yaml is out of date: run `make openapi`"
    );
}

#[test]
fn yaml_says_what_json_says() {
    for registry in registries() {
        let document = document(&registry);
        let read: Value = yaml_serde::from_str(&yaml(&document).unwrap()).unwrap();
        assert_eq!(read, document);
    }
}

#[test]
fn every_document_is_valid() {
    for registry in registries() {
        assert_valid(&document(&registry));
    }
    // The validator finds errors.
    let mut invalid = document(&registry(&built_in()).unwrap());
    invalid["components"]["schemas"]["Cluster"]["type"] = json!(["object", "null"]);
    let schema = include_str!("../../../../../tests/fixtures/openapi-3.0.schema.json");
    let schema = serde_json::from_str(schema).unwrap();
    assert!(!jsonschema::draft4::new(&schema).unwrap().is_valid(&invalid));
}

#[test]
fn what_is_mounted_is_described_and_nothing_else() {
    for registry in registries() {
        let document = document(&registry);
        let shape = |path: &str| {
            let segments = path
                .split('/')
                .map(|s| if s.starts_with('{') { "{}" } else { s });
            segments.collect::<Vec<_>>().join("/")
        };
        let endpoints = endpoints(&registry);
        let mounted: BTreeSet<_> = endpoints
            .iter()
            .flat_map(|e| {
                let methods = e.operations.iter().map(|o| o.method.to_lowercase());
                methods.map(|method| (shape(&e.path), method))
            })
            .collect();
        let described = operations(&document);
        let described: BTreeSet<_> = described
            .iter()
            .map(|(path, method, _)| (shape(path), (*method).to_owned()))
            .collect();
        assert_eq!(mounted, described);
    }
}

#[test]
fn every_reference_leads_somewhere() {
    for registry in registries() {
        let document = document(&registry);
        let mut references = Vec::new();
        all(&document, "$ref", &mut references);
        assert!(references.len() > 50);
        for reference in references {
            let pointer = reference.as_str().unwrap().strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{pointer}");
        }
    }
}

#[test]
fn operations_have_names_of_their_own_and_say_what_they_take() {
    for registry in registries() {
        let document = document(&registry);
        let mut names = BTreeSet::new();
        for (path, method, operation) in operations(&document) {
            let at = format!("{method} {path}");
            let name = operation["operationId"].as_str().unwrap().to_lowercase();
            assert!(names.insert(name), "{at}: {}", operation["operationId"]);
            assert!(
                operation["summary"].is_string() && operation["tags"][0].is_string(),
                "{at}"
            );
            let parameters = operation["parameters"].as_array().unwrap().iter();
            let in_path = parameters.filter(|p| p["in"] == "path");
            let in_path: BTreeSet<_> = in_path.map(|p| p["name"].as_str().unwrap()).collect();
            let segments = path
                .split('/')
                .filter_map(|s| s.strip_prefix('{')?.strip_suffix('}'));
            let segments: Vec<_> = segments.collect();
            assert_eq!(in_path.len(), segments.len(), "{at}");
            assert!(
                segments.iter().all(|s| in_path.contains(s)),
                "{at}: {in_path:?}"
            );
        }
    }
}

#[test]
fn names_of_operations_are_those_that_clients_know() {
    let document = document(&registry(&built_in()).unwrap());
    let base = "/api/hyperfleet/v1";
    for (path, method, name) in [
        ("/clusters", "get", "getClusters"),
        ("/clusters", "post", "postCluster"),
        ("/clusters/{cluster_id}", "get", "getClusterById"),
        ("/clusters/{cluster_id}", "patch", "patchClusterById"),
        ("/clusters/{cluster_id}", "delete", "deleteClusterById"),
        (
            "/clusters/{cluster_id}/force-delete",
            "post",
            "forceDeleteCluster",
        ),
        (
            "/clusters/{cluster_id}/statuses",
            "get",
            "getClusterStatuses",
        ),
        (
            "/clusters/{cluster_id}/statuses",
            "put",
            "putClusterStatuses",
        ),
        ("/nodepools", "get", "getNodePools"),
        (
            "/clusters/{cluster_id}/nodepools",
            "get",
            "getNodePoolsByClusterId",
        ),
        ("/clusters/{cluster_id}/nodepools", "post", "createNodePool"),
        (
            "/clusters/{cluster_id}/nodepools/{nodepool_id}",
            "get",
            "getNodePoolById",
        ),
        (
            "/clusters/{cluster_id}/nodepools/{nodepool_id}/statuses",
            "get",
            "getNodePoolsStatuses",
        ),
        ("/resources", "get", "getResources"),
        ("/resources/{resource_id}", "get", "getResourceById"),
    ] {
        let operation = &document["paths"][format!("{base}{path}")][method];
        assert_eq!(operation["operationId"], name, "{method} {path}");
    }
}

/// The members that types of existing clients require.
#[test]
fn required_members_are_those_that_clients_know() {
    let document = document(&registry(&built_in()).unwrap());
    let of_kind =
        "created_by created_time generation kind name spec status updated_by updated_time";
    for (schema, members) in [
        ("Cluster", of_kind.to_owned()),
        ("NodePool", format!("{of_kind} owner_references")),
        ("Resource", format!("{of_kind} id")),
        (
            "ResourceCondition",
            "created_time last_transition_time last_updated_time observed_generation status type"
                .to_owned(),
        ),
        (
            "AdapterStatus",
            "adapter conditions created_time last_report_time observed_generation".to_owned(),
        ),
        ("ClusterList", "items page size total".to_owned()),
        ("AdapterStatusList", "items page size total".to_owned()),
        ("ClusterCreateRequest", "kind name spec".to_owned()),
        (
            "AdapterStatusCreateRequest",
            "adapter conditions observed_generation observed_time".to_owned(),
        ),
        ("ConditionRequest", "status type".to_owned()),
        ("ObjectReference", "kind".to_owned()),
        ("ResourceCreateRequest", "kind name spec".to_owned()),
        ("ForceDeleteRequest", "reason".to_owned()),
        ("Error", "status title type".to_owned()),
    ] {
        let required = document["components"]["schemas"][schema]["required"].as_array();
        let required = required.unwrap().iter().map(|name| name.as_str().unwrap());
        let expected: BTreeSet<_> = members.split(' ').collect();
        assert_eq!(required.collect::<BTreeSet<_>>(), expected, "{schema}");
    }
}

/// Generators make types of these. With another one, code of existing clients does not compile.
#[test]
fn types_of_members_are_those_that_clients_know() {
    let document = document(&registry(&built_in()).unwrap());
    let schema = |path: &str| document["components"]["schemas"].pointer(path).unwrap();
    let number = |format: &str| json!({"type": "integer", "format": format});
    let text = json!({"type": "string"});
    let several =
        json!({"type": "array", "items": {"$ref": "#/components/schemas/ObjectReference"}});
    for (path, expected) in [
        ("/ResourceList/properties/total", number("int64")),
        ("/ResourceList/properties/page", number("int32")),
        ("/ResourceList/properties/size", number("int32")),
        ("/ClusterList/properties/total", number("int32")),
        ("/NodePoolList/properties/total", number("int32")),
        ("/AdapterStatusList/properties/total", number("int32")),
        ("/Cluster/properties/generation", number("int32")),
        ("/Error/properties/status", json!({"type": "integer"})),
        ("/ObjectReference/properties/id", text.clone()),
        ("/ObjectReference/properties/href", text.clone()),
        ("/ClusterCreateRequest/properties/kind", text.clone()),
        ("/ClusterCreateRequest/properties/id", text.clone()),
        ("/ClusterCreateRequest/properties/href", text.clone()),
        ("/NodePoolCreateRequest/properties/kind", text.clone()),
        ("/ResourceCreateRequest/properties/kind", text),
        (
            "/ResourceCreateRequest/properties/references/additionalProperties",
            several.clone(),
        ),
        (
            "/Resource/properties/references/additionalProperties",
            several,
        ),
    ] {
        let mut found = schema(path).as_object().unwrap().clone();
        found.retain(|word, _| ["type", "format", "enum", "items", "nullable"].contains(&&**word));
        assert_eq!(json!(found), expected, "{path}");
    }
    for inline in ["AdapterStatus", "AdapterStatusCreateRequest"] {
        let metadata = schema(&format!("/{inline}/properties/metadata/properties"));
        let names = metadata.as_object().unwrap().keys();
        let expected = "attempt completed_time duration job_name job_namespace started_time";
        assert_eq!(names.cloned().collect::<Vec<_>>().join(" "), expected);
    }
    let mut nullable = Vec::new();
    all(&document, "nullable", &mut nullable);
    assert!(nullable.is_empty(), "{nullable:?}");
}

/// Several generators make one type of the lowest success.
#[test]
fn the_lowest_success_is_the_real_one() {
    for registry in registries() {
        let document = document(&registry);
        for (path, method, operation) in operations(&document) {
            let responses = operation["responses"].as_object().unwrap();
            let mut successes: Vec<_> = responses.keys().filter(|s| s.starts_with('2')).collect();
            successes.sort();
            let expected: &[&str] = match operation["operationId"].as_str().unwrap() {
                id if id.starts_with("postFlat") => &[],
                "putLease" => &["200"],
                "deleteLease" => &["204"],
                id if id.starts_with("put") => &["201", "204"],
                id if id.starts_with("forceDelete") => &["204", "2XX"],
                id if id.starts_with("delete") => &["202"],
                _ if method == "post" => &["201"],
                _ => &["200"],
            };
            assert_eq!(successes, expected, "{method} {path}");
        }
    }
}

/// oapi-codegen makes a Go type of every schema, shared parameter and response: the names may not be the same in Go.
#[test]
fn components_have_names_of_their_own() {
    let responses = problems::REFUSALS.map(|(_, name, _)| kind(name, &name.to_lowercase(), ""));
    let mut registries = registries();
    registries.push(registry(&responses).unwrap());
    for registry in registries {
        let document = document(&registry);
        let mut names = BTreeSet::new();
        for section in ["schemas", "parameters", "responses"] {
            for name in document["components"][section].as_object().unwrap().keys() {
                let mut in_go = name.replace(|c: char| !c.is_ascii_alphanumeric(), "");
                in_go.make_ascii_lowercase();
                assert!(names.insert(in_go), "{section}: {name}");
            }
        }
    }
}

#[test]
fn a_plain_document_has_one_success_and_no_headers() {
    for registry in registries() {
        let full = document(&registry);
        let plain = plain(full.clone());
        assert_valid(&plain);
        assert_eq!(operations(&plain).len(), operations(&full).len());
        for (path, method, operation) in operations(&plain) {
            let contents = &operation["requestBody"]["content"];
            let types = contents.as_object().map_or(0, serde_json::Map::len);
            assert!(types <= 1, "{method} {path}: {contents}");
            let responses = operation["responses"].as_object().unwrap().iter();
            let successes: Vec<_> = responses.filter(|(s, _)| s.starts_with('2')).collect();
            assert!(successes.len() <= 1, "{method} {path}: {successes:?}");
            for (_, success) in successes {
                let contents = success["content"]
                    .as_object()
                    .map_or(0, serde_json::Map::len);
                assert!(contents <= 1, "{method} {path}: {success}");
            }
        }
        // Every component is referred to, and every reference leads to one.
        let mut references = Vec::new();
        all(&plain, "$ref", &mut references);
        let references: BTreeSet<_> = references.iter().filter_map(|r| r.as_str()).collect();
        let components = plain["components"].as_object().unwrap().iter();
        let components = components.filter(|(section, _)| *section != "securitySchemes");
        let components: BTreeSet<_> = components
            .flat_map(|(section, all)| {
                let names = all.as_object().unwrap().keys();
                names.map(move |name| format!("#/components/{section}/{name}"))
            })
            .collect();
        let components: BTreeSet<_> = components.iter().map(String::as_str).collect();
        assert_eq!(references, components);
        for left_out in [
            "HeaderParams.",
            "dryRun",
            "DryRun",
            "dry_run",
            "WatchEvent",
            "QueryParams.watch",
            "MergePatch",
            "JsonPatch",
        ] {
            let is_named = |component: &&&str| component.contains(left_out);
            assert_eq!(components.iter().find(is_named), None);
        }
        let schemas = plain["components"]["schemas"].as_object().unwrap();
        assert!(
            schemas
                .values()
                .all(|schema| schema["properties"].get("dry_run").is_none())
        );
    }
}

/// A schema of the document as JSON Schema, with everything that it refers to.
fn validator(document: &Value, schema: &Value) -> jsonschema::Validator {
    let mut root = json!({"allOf": [schema], "components": document["components"]});
    nullable(&mut root);
    jsonschema::draft4::new(&root).unwrap()
}

fn nullable(value: &mut Value) {
    match value {
        Value::Object(members) => {
            if members.remove("nullable") == Some(json!(true))
                && let Some(one) = members.get_mut("type")
            {
                *one = json!([one.take(), "null"]);
            }
            members.values_mut().for_each(nullable);
        }
        Value::Array(elements) => elements.iter_mut().for_each(nullable),
        _ => {}
    }
}

#[test]
fn examples_fit_their_schemas() {
    for registry in registries() {
        let document = document(&registry);
        let contents = ["application/json", "application/problem+json"].map(|kind| {
            let mut found = Vec::new();
            all(&document, kind, &mut found);
            found
        });
        let mut count = 0;
        for content in contents.iter().flatten() {
            let validator = validator(&document, &content["schema"]);
            let several = content["examples"].as_object().into_iter().flatten();
            let several = several.map(|(_, example)| &example["value"]);
            for example in content.get("example").into_iter().chain(several) {
                let errors: Vec<_> = validator
                    .iter_errors(example)
                    .map(|f| f.to_string())
                    .collect();
                assert!(errors.is_empty(), "{example}: {errors:?}");
                count += 1;
            }
        }
        assert!(count > 10, "{count}");
    }
}

/// Finds new parameters that are missing in the list of parameters with one value.
#[test]
fn only_list_parameters_may_have_two_values() {
    let document = document(&registry(&built_in()).unwrap());
    let shared = document["components"]["parameters"].as_object().unwrap();
    let items = document["paths"].as_object().unwrap().values();
    let operations = items.flat_map(|item| item.as_object().unwrap().values());
    let own = operations.filter_map(|operation| operation["parameters"].as_array());
    let queries = shared.values().chain(own.flatten());
    let queries = queries.filter(|parameter| parameter["in"] == "query");
    let names: BTreeSet<_> = queries
        .map(|parameter| parameter["name"].as_str().unwrap())
        .collect();
    assert!(names.len() > 15, "{names:?}");
    for name in names {
        let pairs = ["1", "2"].map(|value| (name.to_owned(), value.to_owned()));
        let is_refused = Params::new(pairs.into()).checked().is_err();
        let is_list = ["order", "orderBy", "fields", "dryRun"].contains(&name);
        assert_eq!(is_refused, !is_list, "{name}");
    }
}

/// In its description if the page would fill it in and find nothing.
#[test]
fn every_parameter_and_header_shows_a_value() {
    let shows = |name: &str, parameter: &Value| {
        let text = parameter["description"].as_str().unwrap_or_default();
        let has = |example: &Value| !example.is_null();
        let is_explained = text.contains("such as `") || text.contains(&format!("`{name}="));
        is_explained || has(&parameter["example"]) || has(&parameter["schema"]["example"])
    };
    for registry in registries() {
        let document = document(&registry);
        let components = &document["components"];
        let mut seen = 0;
        let headers = components["headers"].as_object().unwrap().iter();
        let shared = components["parameters"].as_object().unwrap().iter();
        for (name, parameter) in headers.chain(shared) {
            let name = parameter["name"].as_str().unwrap_or(name);
            assert!(shows(name, parameter), "{name}: {parameter}");
            seen += 1;
        }
        let items = document["paths"].as_object().unwrap().values();
        for operation in items.flat_map(|item| item.as_object().unwrap().values()) {
            let own = operation["parameters"].as_array().into_iter().flatten();
            for parameter in own.filter(|parameter| parameter["$ref"].is_null()) {
                let name = parameter["name"].as_str().unwrap();
                assert!(shows(name, parameter), "{name}: {parameter}");
                seen += 1;
            }
        }
        assert!(seen > 15, "{seen}");
    }
}

#[test]
fn schemas_of_specs_are_taken_in() {
    let spec = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": ["object", "null"],
        "required": ["region"],
        "properties": {
            "region": {"const": "eu"},
            "nodes": {"$ref": "#/components/schemas/Count"},
        },
        "example": {"region": "eu"},
    });
    let count = json!({"type": "integer", "exclusiveMinimum": 0});
    let schemas = json!({"openapi": "3.1.0", "components": {"schemas": {"ClusterSpec": spec, "Count": count}}});
    let schemas = SchemaDocument::parse(schemas).unwrap();
    let kinds = built_in();
    let attached = attach(registry(&kinds).unwrap(), &kinds, Some(&schemas)).unwrap();
    let document = openapi(&attached.registry, "1");
    assert_valid(&document);
    let expected = json!({
        "type": "object",
        "nullable": true,
        "required": ["region"],
        "properties": {
            "region": {"enum": ["eu"]},
            "nodes": {"$ref": "#/components/schemas/ClusterSpec.Count"},
        },
        "example": {"region": "eu"},
    });
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["ClusterSpec"], expected);
    let count = json!({"type": "integer", "minimum": 0, "exclusiveMinimum": true});
    assert_eq!(schemas["ClusterSpec.Count"], count);
    // A stored spec need not fit: requests must, answers have any object.
    let spec = |name: &str| schemas[name]["properties"]["spec"].clone();
    let reference = json!({"$ref": "#/components/schemas/ClusterSpec"});
    assert_eq!(spec("ClusterCreateRequest"), reference);
    assert_eq!(spec("ClusterPatchRequest"), reference);
    assert_eq!(spec("Cluster")["type"], "object");
    assert_eq!(spec("Cluster")["properties"], Value::Null);
    let create = &document["paths"]["/api/hyperfleet/v1/clusters"]["post"];
    let example = &create["requestBody"]["content"]["application/json"]["example"];
    assert_eq!(example["spec"], json!({"region": "eu"}));
}
