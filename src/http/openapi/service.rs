//! Operations that are about no list: what the service says of itself, and the audit trail.

use serde_json::{Value, json};
use utoipa::openapi::path::OperationBuilder;
use utoipa::openapi::schema::{Object, Schema, Type};
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{ContentBuilder, Ref, Response, ResponseBuilder};

use super::operations::{json_answer, refusals, text};
use super::problems;
use crate::http::routes::Operation;
use crate::wire::schemas::{examples, parameters};

/// Tag of what the service says of itself.
pub(super) const SERVICE: &str = "Service";
/// Tag of the audit trail.
pub(super) const AUDIT: &str = "Audit";

/// What such an operation does; `created` is an example of a resource. None of those of lists.
pub(super) fn describe(operation: Operation, created: Option<&Value>) -> Option<OperationBuilder> {
    use Operation as O;
    let (id, summary, answer) = match operation {
        O::Document => (
            "getOpenapi",
            "This document",
            json_answer("The OpenAPI document.", anything(), None),
        ),
        O::Page => (
            "getOpenapiPage",
            "This document as a page",
            ResponseBuilder::new().description("The page.").content(
                "text/html",
                ContentBuilder::new().schema(Some(text())).build(),
            ),
        ),
        O::Metadata => ("getService", "Which program this is", metadata()),
        O::Audit => return Some(audit(created)),
        O::List
        | O::Create
        | O::Get
        | O::Patch
        | O::Delete
        | O::ForceDelete
        | O::Reports
        | O::Report => {
            return None;
        }
    };
    let answer = problems::with_request_id(answer).build();
    let described = OperationBuilder::new()
        .operation_id(Some(id))
        .summary(Some(summary))
        .tag(SERVICE)
        .securities(Some(Vec::<SecurityRequirement>::new()))
        .parameter_ref(Ref::new("#/components/parameters/X-Request-Id"))
        .response("200", answer);
    let described = match operation {
        O::Document => described.response("304", unchanged()),
        _ => described,
    };
    Some(refusals(described, &[405, 500]))
}

fn audit(created: Option<&Value>) -> OperationBuilder {
    let example = created.map(|resource| {
        let text = |member: &str| resource[member].as_str().unwrap_or_default();
        examples::audit(text("kind"), text("name"))
    });
    let list = Ref::from_schema_name("AuditList");
    let answer = json_answer("A page of the trail, newest first.", list, example);
    let mut described = OperationBuilder::new()
        .operation_id(Some("getAudit"))
        .summary(Some("List changes"))
        .description(Some(
            "Every create, patch, delete, removal and force-delete, newest first.",
        ))
        .tag(AUDIT)
        .parameter_ref(Ref::new("#/components/parameters/X-Request-Id"))
        .response("200", problems::with_headers(answer).build());
    for parameter in parameters::audit() {
        described = described.parameter(parameter);
    }
    refusals(described, &[400, 401, 403, 405, 429, 500, 503])
}

fn metadata() -> ResponseBuilder {
    let mut schema = Object::with_type(Type::Object);
    for member in ["id", "href", "kind", "version", "build_time"] {
        schema.properties.insert(member.to_owned(), text().into());
        schema.required.push(member.to_owned());
    }
    let example = json!({
        "id": "hyperfleet",
        "href": "/api/hyperfleet",
        "kind": "API",
        "version": "0.1.0",
        "build_time": "2026-01-01T10:00:00Z",
    });
    json_answer(
        "Which program this is.",
        Schema::Object(schema),
        Some(example),
    )
}

/// To those whose `If-None-Match` says that they have it.
fn unchanged() -> Response {
    let answer = ResponseBuilder::new().description("You have this document already.");
    problems::with_request_id(answer).build()
}

fn anything() -> Schema {
    Schema::Object(Object::with_type(Type::Object))
}
