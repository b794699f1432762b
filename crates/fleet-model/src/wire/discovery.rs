//! What the API says of itself in Google's API Discovery format, as the older server said it: dynamic clients and
//! generators of code read it. Served as it is; `rootUrl` is for the client to replace.
//!
//! `PATCH …/machines`, watching and explaining are not in it: the older document has no word for them. They are in
//! the OpenAPI document.

use serde_json::{Value, json};

/// The document.
pub fn document() -> Value {
    json!({
        "kind": "discovery#restDescription",
        "discoveryVersion": "v1",
        "id": "fleet:v1",
        "name": "schema",
        "version": "v1",
        "title": "fleet API",
        "description": "",
        "documentationLink": "$ENDPOINT/fleet/v1/openapi",
        "protocol": "rest",
        "icons": {"x16": "", "x32": ""},
        "labels": [],
        "baseUrl": "$ENDPOINT/fleet/v1/",
        "basePath": "/fleet/v1/",
        "rootUrl": "$ENDPOINT/",
        "servicePath": "fleet/v1/",
        "batchPath": "batch",
        "parameters": {},
        "auth": {},
        "schemas": schemas(),
        "resources": {
            "Machines": {"methods": {"List": list("fleet.Machine.List", "machines", &[], "MachinePage")}},
            "UnitState": {"methods": {
                "Get": of_unit("fleet.UnitState.Get", "GET", "state/{unitName}", Some("UnitState")),
                "List": list("fleet.UnitState.List", "state", &["unitName", "machineID"], "UnitStatePage"),
            }},
            "Units": {"methods": {
                "Delete": of_unit("fleet.Unit.Delete", "DELETE", "units/{unitName}", None),
                "Get": of_unit("fleet.Unit.Get", "GET", "units/{unitName}", Some("Unit")),
                "List": list("fleet.Unit.List", "units", &[], "UnitPage"),
                "Set": set(),
            }},
        },
    })
}

fn schemas() -> Value {
    let text = || json!({"type": "string"});
    let state = || json!({"type": "string", "enum": ["inactive", "loaded", "launched"]});
    let many = |name: &str| json!({"type": "array", "items": {"$ref": name}});
    let page = |id: &str, member: &str, of: &str| {
        schema(id, &json!({member: many(of), "nextPageToken": text()}))
    };
    json!({
        "Machine": schema("Machine", &json!({
            "id": text(),
            "primaryIP": text(),
            "metadata": {"type": "object", "additionalProperties": text()},
        })),
        "MachinePage": page("MachinePage", "machines", "Machine"),
        "Unit": schema("Unit", &json!({
            "name": text(),
            "options": many("UnitOption"),
            "desiredState": state(),
            "currentState": state(),
            "machineID": {"type": "string", "required": true},
        })),
        "UnitOption": schema("UnitOption", &json!({"section": text(), "name": text(), "value": text()})),
        "UnitPage": page("UnitPage", "units", "Unit"),
        "UnitState": schema("UnitState", &json!({
            "name": text(),
            "hash": text(),
            "machineID": text(),
            "systemdLoadState": text(),
            "systemdActiveState": text(),
            "systemdSubState": text(),
        })),
        "UnitStatePage": page("UnitStatePage", "states", "UnitState"),
    })
}

fn schema(id: &str, properties: &Value) -> Value {
    json!({"id": id, "type": "object", "properties": properties})
}

fn list(id: &str, path: &str, filters: &[&str], page: &str) -> Value {
    let parameter = || json!({"type": "string", "location": "query"});
    let names = filters.iter().chain(&["nextPageToken"]);
    let parameters: Value = names
        .map(|name| ((*name).to_owned(), parameter()))
        .collect::<serde_json::Map<_, _>>()
        .into();
    json!({
        "id": id,
        "description": format!("Retrieve a page of {} objects.", page.trim_end_matches("Page")),
        "httpMethod": "GET",
        "path": path,
        "parameters": parameters,
        "response": {"$ref": page},
    })
}

fn of_unit(id: &str, method: &str, path: &str, response: Option<&str>) -> Value {
    let of = match response {
        Some(response) => format!("Retrieve a single {response} object."),
        None => "Delete the referenced Unit object.".to_owned(),
    };
    let mut described = json!({
        "id": id,
        "description": of,
        "httpMethod": method,
        "path": path,
        "parameters": {"unitName": {"type": "string", "location": "path", "required": true}},
        "parameterOrder": ["unitName"],
    });
    if let Some(response) = response {
        described["response"] = json!({"$ref": response});
    }
    described
}

fn set() -> Value {
    let mut described = of_unit("fleet.Unit.Set", "PUT", "units/{unitName}", None);
    described["description"] = json!("Create or update a Unit.");
    described["request"] = json!({"$ref": "Unit"});
    described
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Every value under a name, anywhere.
    fn all<'v>(value: &'v Value, name: &str, found: &mut Vec<&'v Value>) {
        match value {
            Value::Object(members) => {
                found.extend(members.get(name));
                members.values().for_each(|member| all(member, name, found));
            }
            Value::Array(elements) => elements.iter().for_each(|e| all(e, name, found)),
            _ => {}
        }
    }

    #[test]
    fn it_has_the_members_of_the_older_document() {
        let document = document();
        let members: BTreeSet<_> = document.as_object().unwrap().keys().cloned().collect();
        let expected = "kind discoveryVersion id name version title description documentationLink protocol \
            icons labels baseUrl basePath rootUrl servicePath batchPath parameters auth schemas resources";
        let expected = expected.split_whitespace().map(str::to_owned);
        assert_eq!(members, expected.collect());
        let machine_id = &document["schemas"]["Unit"]["properties"]["machineID"];
        assert_eq!(machine_id["required"], true);
        let state = &document["resources"]["UnitState"]["methods"]["List"]["parameters"];
        let names: Vec<_> = state.as_object().unwrap().keys().collect();
        assert_eq!(names, ["machineID", "nextPageToken", "unitName"]);
    }

    #[test]
    fn every_schema_is_used_and_every_reference_leads_to_one() {
        let document = document();
        let mut references = Vec::new();
        all(&document, "$ref", &mut references);
        let references: BTreeSet<_> = references.iter().filter_map(|r| r.as_str()).collect();
        let schemas = document["schemas"].as_object().unwrap();
        let names: BTreeSet<_> = schemas.keys().map(String::as_str).collect();
        assert_eq!(references, names);
        assert!(schemas.iter().all(|(name, schema)| schema["id"] == *name));
    }
}
