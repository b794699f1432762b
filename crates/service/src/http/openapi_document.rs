//! The OpenAPI document: built from the routes and the registry, in version 3.0.
//!
//! ```text
//! routes::endpoints ─▶ openapi::operations ─┐
//! wire::schemas ────────────────────────────┼─▶ server-kit (3.1, then 3.0)
//! problem ─▶ openapi::problems ─────────────┘
//! ```

use std::collections::BTreeSet;

use hyperfleet_server_kit::openapi::{DocumentInfo, assemble};
use serde_json::{Value, json};

use super::openapi::operations::{self, Subject};
use super::openapi::problems;
use super::routes;
use crate::wire::schemas::{self, Names};
use hyperfleet_domain::EntityRegistry;

mod plain;
#[cfg(test)]
mod tests;

pub use plain::plain;

const DESCRIPTION: &str = "\
Control plane for fleets of clusters. Clients declare resources; adapters report what they achieved; \
the service aggregates the reports into conditions and runs the delete lifecycle.

One trailing slash of a path is ignored. `HEAD` works wherever `GET` does. Bodies have 1 MiB at most, \
unpacked, nest 64 levels at most, and have 20,000 arrays and objects at most. Unknown query parameters are ignored; blank ones count as absent. \
Answers are for their caller and may not be stored (`Cache-Control: no-store`), but for this document \
and what else needs no token.";

/// Makes the document (OpenAPI 3.0) of a service with these kinds: every path, parameter, body,
/// header and problem. `version` is the service's.
pub fn openapi(registry: &EntityRegistry, version: &str) -> Value {
    let names = Names::new(registry);
    let endpoints = routes::endpoints(registry);
    let paths = endpoints.iter().map(|endpoint| {
        let subject = Subject::new(registry, &names, endpoint.about.as_ref());
        subject.item(&endpoint.path, endpoint.operations)
    });
    let mut schemas = problems::schemas();
    schemas.extend(schemas::all(registry, &names));
    let about = DocumentInfo {
        title: "HyperFleet API",
        version,
        description: DESCRIPTION,
        servers: &["/"],
        tags: tags(registry, &names),
    };
    let components = json!({
        "headers": problems::headers(),
        "parameters": operations::shared_parameters(),
        "responses": problems::responses(registry),
        "schemas": schemas,
    });
    let mut document = assemble(&about, paths.collect(), components);
    make_names_unique(&mut document);
    document
}

/// The groups of operations, each with a description.
fn tags(registry: &EntityRegistry, names: &Names) -> Vec<(String, String)> {
    let kinds = registry.entities().iter().map(|entity| {
        let text = format!("Resources of kind `{}`.", entity.kind);
        (names.of(Some(&entity.kind)).many.clone(), text)
    });
    let others = [
        (names.of(None).many.as_str(), "Resources of every kind."),
        ("Audit", "Who changed what."),
        ("Leases", "Which of several copies of an adapter works."),
        ("Service", "The service itself."),
    ];
    let others = others.map(|(name, text)| (name.to_owned(), text.to_owned()));
    kinds.chain(others).collect()
}

/// Numbers operations with the same name, such as `cluster-by-id`, the plural of one kind, and the operation on a
/// `Cluster` by id.
fn make_names_unique(document: &mut Value) {
    let mut taken = BTreeSet::new();
    let items = document["paths"].as_object_mut().into_iter();
    let items = items.flat_map(|paths| paths.values_mut().filter_map(Value::as_object_mut));
    for operation in items.flat_map(|item| item.values_mut()) {
        let Some(name) = operation["operationId"].as_str() else {
            continue;
        };
        let mut unique = name.to_owned();
        let mut count = 1;
        while !taken.insert(unique.to_lowercase()) {
            count += 1;
            unique = format!("{name}{count}");
        }
        operation["operationId"] = json!(unique);
    }
}
