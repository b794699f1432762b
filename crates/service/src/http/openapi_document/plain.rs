//! The document without dry runs, watches and headers of requests. Each operation has one success with at most one
//! type, and a body in JSON only, which some generators demand; and methods of generated clients have the parameters that clients of the older
//! service know.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::http::openapi::operations::{HEADER_PARAMS, QUERY_PARAMS};

const PARAMETERS: &str = "#/components/parameters/";
const JSON: &str = "application/json";
/// Parameters of dry runs and watches.
const LEFT_OUT: [&str; 4] = ["dryRun", "initial", "position", "watch"];
/// The member of answers to dry runs.
const DRY_RUN: &str = "dry_run";

/// Reduces a document of [`super::openapi`].
pub fn plain(mut document: Value) -> Value {
    let items = document["paths"].as_object_mut().into_iter();
    let items = items.flat_map(|paths| paths.values_mut().filter_map(Value::as_object_mut));
    for operation in items.flat_map(|item| item.values_mut()) {
        if let Some(Value::Array(parameters)) = operation.get_mut("parameters") {
            parameters.retain(is_plain);
        }
        if let Some(content) = operation.pointer_mut("/requestBody/content") {
            retain_json(content);
        }
        if let Some(Value::Object(responses)) = operation.get_mut("responses") {
            retain_one_success(responses);
        }
    }
    let schemas = document.pointer_mut("/components/schemas");
    let schemas = schemas.and_then(Value::as_object_mut).into_iter();
    for schema in schemas.flat_map(|schemas| schemas.values_mut()) {
        if let Some(Value::Object(members)) = schema.get_mut("properties") {
            members.remove(DRY_RUN);
        }
    }
    remove_unused(&mut document);
    document
}

fn is_plain(parameter: &Value) -> bool {
    let name = parameter["$ref"].as_str();
    let Some(name) = name.and_then(|name| name.strip_prefix(PARAMETERS)) else {
        return true;
    };
    let is_left_out = |name: &str| LEFT_OUT.contains(&name);
    !name.starts_with(HEADER_PARAMS) && !name.strip_prefix(QUERY_PARAMS).is_some_and(is_left_out)
}

/// Retains the lowest success, in JSON if it can be.
fn retain_one_success(responses: &mut Map<String, Value>) {
    let successes = responses.keys().filter(|status| status.starts_with('2'));
    let Some(lowest) = successes.min().cloned() else {
        return;
    };
    responses.retain(|status, _| !status.starts_with('2') || *status == lowest);
    if let Some(content) = responses[&lowest].get_mut("content") {
        retain_json(content);
    }
}

/// Retains JSON, if it is one of the types.
fn retain_json(content: &mut Value) {
    if let Value::Object(content) = content
        && content.contains_key(JSON)
    {
        content.retain(|media, _| media == JSON);
    }
}

/// Removes unreferenced components, and components that only these reference.
fn remove_unused(document: &mut Value) {
    let mut used = BTreeSet::new();
    references(&document["paths"], &mut used);
    let mut waiting: Vec<_> = used.iter().cloned().collect();
    while let Some(reference) = waiting.pop() {
        let mut found = BTreeSet::new();
        if let Some(component) = document.pointer(reference.trim_start_matches('#')) {
            references(component, &mut found);
        }
        waiting.extend(found.difference(&used).cloned().collect::<Vec<_>>());
        used.extend(found);
    }
    let sections = document["components"].as_object_mut().into_iter().flatten();
    for (section, components) in sections.filter(|(section, _)| *section != "securitySchemes") {
        if let Some(components) = components.as_object_mut() {
            components.retain(|name, _| used.contains(&format!("#/components/{section}/{name}")));
        }
    }
}

fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get("$ref") {
                found.insert(reference.clone());
            }
            members
                .values()
                .for_each(|member| references(member, found));
        }
        Value::Array(elements) => elements
            .iter()
            .for_each(|element| references(element, found)),
        _ => {}
    }
}
