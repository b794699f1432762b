//! The OpenAPI document of fleet's API, built from its route table and the schemas of its bodies.

use hyperfleet_server_kit::openapi::{DocumentInfo, assemble};
use serde_json::{Map, Value};

use super::PREFIXES;
use super::endpoints::ENDPOINTS;
use super::operations::{components, described};

const DESCRIPTION: &str = "\
Units are systemd unit files with what is wanted of them; fleet places them on machines and says what became of them.

Every path is found below `/fleet/v1` and below `/v1-alpha`, and on the listeners of fleetd without a prefix, too. \
Unknown query parameters are ignored, and so is the body of a `GET` or `DELETE`. Members that are empty are left \
out of answers: an empty page is `{}`. While it is not known what there is, every path answers 503.";

/// Builds the document (OpenAPI 3.0) for a version of the service.
pub fn openapi(version: &str) -> Value {
    let endpoints = ENDPOINTS.iter().filter(|e| !e.operations.is_empty());
    let paths = endpoints.map(|endpoint| {
        let operations = endpoint.operations.iter();
        let operations = operations.map(|operation| {
            let needs_token = operation.permission.is_some();
            let described = described(&operation.describe, needs_token);
            (operation.method.to_lowercase(), described)
        });
        (
            endpoint.path.to_owned(),
            operations.collect::<Map<_, _>>().into(),
        )
    });
    let about = DocumentInfo {
        title: "HyperFleet fleet API",
        version,
        description: DESCRIPTION,
        servers: &PREFIXES,
        tags: Vec::new(),
    };
    assemble(&about, paths.collect(), components())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use hyperfleet_server_kit::openapi::yaml;

    fn document() -> Value {
        openapi(env!("CARGO_PKG_VERSION"))
    }

    #[test]
    fn the_committed_document_is_up_to_date() {
        let committed = include_str!("../../../../openapi/fleet.yaml");
        assert!(
            yaml(&document()).unwrap() == committed,
            "openapi/fleet.yaml is out of date: run `make openapi`"
        );
    }

    #[test]
    fn it_is_valid_by_the_official_schema() {
        let schema = include_str!("../../../../tests/fixtures/openapi-3.0.schema.json");
        let schema = serde_json::from_str(schema).unwrap();
        let validator = jsonschema::draft4::new(&schema).unwrap();
        let document = document();
        let faults: Vec<_> = validator
            .iter_errors(&document)
            .map(|fault| format!("{}: {fault:.300}", fault.instance_path()))
            .collect();
        assert!(faults.is_empty(), "{faults:#?}");
    }

    #[test]
    fn every_reference_leads_somewhere_and_every_schema_is_used() {
        let document = document();
        let text = document.to_string();
        let references: std::collections::BTreeSet<&str> = text
            .split("\"$ref\":\"#")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect();
        for reference in &references {
            assert!(document.pointer(reference).is_some(), "{reference}");
        }
        for part in ["schemas", "responses"] {
            for name in document["components"][part].as_object().unwrap().keys() {
                let reference = format!("/components/{part}/{name}");
                assert!(references.contains(&*reference), "{reference}");
            }
        }
    }

    #[test]
    fn every_operation_of_the_table_is_in_it() {
        let document = document();
        for endpoint in &ENDPOINTS {
            for operation in endpoint.operations {
                let method = operation.method.to_lowercase();
                let said = &document["paths"][endpoint.path][&method];
                assert!(
                    said["operationId"].is_string(),
                    "{method} {}",
                    endpoint.path
                );
                let is_open = operation.permission.is_none();
                assert_eq!(said["security"] == json!([]), is_open, "{}", endpoint.path);
            }
        }
    }
}
