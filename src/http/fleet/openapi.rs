//! The OpenAPI document of fleet's API: made from the table of its routes and the schemas of its bodies.

use serde_json::Value;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{
    HttpMethod, OperationBuilder, Parameter, ParameterBuilder, ParameterIn, PathItem,
    PathItemBuilder,
};
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::schema::{ArrayBuilder, Object, Schema, SchemaType, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    Components, Content, ContentBuilder, InfoBuilder, LicenseBuilder, OpenApiBuilder, PathsBuilder,
    Ref, RefOr, Required, Response, ResponseBuilder, Server,
};

use super::PREFIXES;
use super::routes::{ENDPOINTS, Operation};
use crate::http::openapi::convert;
use crate::wire::fleet::{CHANGES_MAX, EVENT_STREAM, schemas};

const DESCRIPTION: &str = "\
Units are systemd unit files with what is wanted of them; fleet places them on machines and says what became of them.

Every path is found below `/fleet/v1` and below `/v1-alpha`, and on the listeners of fleetd without a prefix, too. \
Unknown query parameters are passed over, and so is the body of a `GET` or `DELETE`. Members that are empty are left \
out of answers: an empty page is `{}`. While it is not known what there is, every path answers 503.";

/// A status that is no success: number, name of its answer in the document, what it means.
type Refusal = (u16, &'static str, &'static str);

#[rustfmt::skip]
const REFUSALS: [Refusal; 10] = [
    (400, "BadRequest", "The body, a parameter or the unit is not what it must be."),
    (401, "Unauthorized", "No token, or none that is taken. Only where tokens are checked."),
    (403, "Forbidden", "A tenant asks for what belongs to none. Only where requests are made for tenants."),
    (404, "NotFound", "There is no such unit, or no such state."),
    (408, "RequestTimeout", "The body takes too long to come."),
    (409, "Conflict", "What is there does not allow it, or does not suffice for it; or a newer program has written it."),
    (413, "PayloadTooLarge", "The body has more than 1 MiB."),
    (415, "UnsupportedMediaType", "The body is not said to be JSON by exactly one `Content-Type`, or is packed in a way that is not understood."),
    (429, "TooManyRequests", "The caller sends more requests than it may."),
    (500, "InternalServerError", "A fault of the service; its log has the cause."),
];
const UNAVAILABLE: Refusal = (
    503,
    "ServiceUnavailable",
    "etcd cannot be reached, too many requests are under way, or too many clients are watching.",
);
/// Of a path that may be asked for by anybody.
const OPEN: [u16; 1] = [500];
/// Of every other path.
const ADMITTED: [u16; 4] = [401, 403, 429, 500];

/// Makes the document (OpenAPI 3.0). `version` is the service's.
#[must_use]
pub fn openapi(version: &str) -> Value {
    let mut paths = PathsBuilder::new();
    for endpoint in ENDPOINTS.iter().filter(|e| !e.operations.is_empty()) {
        paths = paths.path(endpoint.path, item(endpoint.operations));
    }
    let license = LicenseBuilder::new()
        .name("Apache 2.0")
        .url(Some("https://www.apache.org/licenses/LICENSE-2.0"));
    let info = InfoBuilder::new()
        .title("HyperFleet fleet API")
        .version(version)
        .description(Some(DESCRIPTION))
        .license(Some(license.build()));
    let openapi = OpenApiBuilder::new()
        .info(info)
        .servers(Some(PREFIXES.map(Server::new)))
        .paths(paths)
        .components(Some(components()))
        .security(Some([
            SecurityRequirement::default(),
            SecurityRequirement::new("BearerAuth", Vec::<String>::new()),
        ]))
        .build();
    // Plain data: turning it into a value cannot fail.
    convert::to_3_0(serde_json::to_value(openapi).unwrap_or_default())
}

fn components() -> Components {
    let mut components = schemas::components();
    for (status, name, text) in REFUSALS.iter().chain([&UNAVAILABLE]) {
        let mut answer = ResponseBuilder::new()
            .description(*text)
            .content("application/json", content(Ref::from_schema_name("Error")));
        if matches!(status, 429 | 503) {
            let seconds = HeaderBuilder::new()
                .schema(Some(Object::with_type(Type::Integer)))
                .description(Some("When to come back, in seconds."));
            answer = answer.header("Retry-After", seconds.build());
        }
        let answer: RefOr<Response> = answer.build().into();
        components.responses.insert((*name).to_owned(), answer);
    }
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .bearer_format("JWT")
        .description(Some("Where the service is set to check tokens."));
    components.add_security_scheme("BearerAuth", SecurityScheme::Http(bearer.build()));
    components
}

fn item(operations: &[Operation]) -> PathItem {
    operations
        .iter()
        .fold(PathItemBuilder::new(), |item, operation| {
            item.operation(method(*operation), described(*operation))
        })
        .build()
}

fn method(operation: Operation) -> HttpMethod {
    match operation.method() {
        "PUT" => HttpMethod::Put,
        "DELETE" => HttpMethod::Delete,
        "PATCH" => HttpMethod::Patch,
        _ => HttpMethod::Get,
    }
}

/// Name, group, what it does in a few words, and in more.
#[rustfmt::skip]
fn texts(operation: Operation) -> (&'static str, &'static str, &'static str, &'static str) {
    use Operation as O;
    const WATCH: &str = "With `watch=true`: server-sent events instead. `put` has an item that is there or has changed, \
        `delete` the name of one that is gone, `listed` says that everything there is was told. Ids of events are revisions.";
    match operation {
        O::Discovery => ("getDiscovery", "Service", "The API in Google's discovery format", ""),
        O::Document => ("getOpenapi", "Service", "This document", ""),
        O::Units => ("listUnits", "Units", "List units, or watch them", WATCH),
        O::Unit => ("getUnit", "Units", "Get a unit", ""),
        O::SetUnit => ("setUnit", "Units", "Create, replace or change a unit",
            "Creates the unit if it is not there, replaces its file if that is another one, and otherwise sets what is wanted of it."),
        O::DestroyUnit => ("destroyUnit", "Units", "Destroy a unit", ""),
        O::Explain => ("explainUnit", "Units", "Say why a unit is where it is, or nowhere", ""),
        O::States => ("listStates", "States", "List what machines report of units, or watch it", WATCH),
        O::State => ("getState", "States", "Get what a machine reports of a unit", "Of several machines, the one with the lowest id."),
        O::Machines => ("listMachines", "Machines", "List machines", ""),
        O::PatchMachines => ("patchMachines", "Machines", "Change the metadata of machines",
            "All changes are looked at before the first is made. The changes of one machine are made together. The machine need not be there."),
    }
}

fn described(operation: Operation) -> OperationBuilder {
    use Operation as O;
    let (id, tag, summary, description) = texts(operation);
    let mut described = OperationBuilder::new()
        .operation_id(Some(id))
        .tag(tag)
        .summary(Some(summary))
        .description(Some(description).filter(|text| !text.is_empty()))
        .request_body(body(operation));
    if operation.wish().is_none() {
        described = described.securities(Some(Vec::<SecurityRequirement>::new()));
    }
    for parameter in parameters(operation) {
        described = described.parameter(parameter);
    }
    for (status, answer) in successes(operation) {
        described = described.response(status, answer);
    }
    let more: &[u16] = match operation {
        O::Discovery | O::Document => &[],
        O::Units | O::States | O::Machines => &[400],
        O::Unit | O::State | O::Explain | O::DestroyUnit => &[404, 409],
        // 404: a slash in the name.
        O::SetUnit => &[400, 404, 408, 409, 413, 415],
        O::PatchMachines => &[400, 408, 409, 413, 415],
    };
    let common: &[u16] = match operation.wish() {
        None => &OPEN,
        Some(_) => &ADMITTED,
    };
    let is_one = |status: u16| more.contains(&status) || common.contains(&status);
    let refusals = REFUSALS.iter().filter(|refusal| is_one(refusal.0));
    for (status, name, _) in refusals.chain([&UNAVAILABLE]) {
        let answer = Ref::from_response_name(*name);
        described = described.response(status.to_string(), answer);
    }
    described
}

fn parameters(operation: Operation) -> Vec<Parameter> {
    use Operation as O;
    let query = |name: &str, text: &str, kind: Type| {
        ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Query)
            .required(Required::False)
            .description(Some(text))
            .schema(Some(Object::with_type(kind)))
            .build()
    };
    let page = || query("nextPageToken", "As the page before gave it.", Type::String);
    let watch = || {
        [
            query("watch", "Whether changes are asked for.", Type::Boolean),
            query(
                "revision",
                "With `watch`: only what changes after it. `Last-Event-ID` counts more.",
                Type::Integer,
            ),
        ]
    };
    match operation {
        O::Discovery | O::Document | O::PatchMachines => Vec::new(),
        O::Machines => vec![page()],
        O::Units => [page()].into_iter().chain(watch()).collect(),
        O::States => {
            let filters = [
                query("unitName", "Only those of this unit.", Type::String),
                query(
                    "machineID",
                    "Only those of this machine, by its whole id.",
                    Type::String,
                ),
                page(),
            ];
            filters.into_iter().chain(watch()).collect()
        }
        O::Unit | O::SetUnit | O::DestroyUnit | O::Explain | O::State => {
            let name = ParameterBuilder::new()
                .name("unitName")
                .parameter_in(ParameterIn::Path)
                .required(Required::True)
                .description(Some("The name of a unit, such as `web@1.service`."))
                .schema(Some(Object::with_type(Type::String)));
            vec![name.build()]
        }
    }
}

fn body(operation: Operation) -> Option<RequestBody> {
    let schema: RefOr<Schema> = match operation {
        Operation::SetUnit => Ref::from_schema_name("UnitRequest").into(),
        Operation::PatchMachines => {
            let change = Ref::from_schema_name("MetadataChange");
            let changes = ArrayBuilder::new()
                .items(change)
                .max_items(Some(CHANGES_MAX));
            let changes = changes.schema_type(SchemaType::from_iter([Type::Array, Type::Null]));
            Schema::Array(changes.build()).into()
        }
        _ => return None,
    };
    let body = RequestBodyBuilder::new()
        .required(Some(Required::True))
        .content("application/json", content(schema));
    Some(body.build())
}

fn successes(operation: Operation) -> Vec<(&'static str, Response)> {
    use Operation as O;
    let named = |schema: &str| RefOr::from(Ref::from_schema_name(schema));
    let nothing = |status: &'static str, text: &str| {
        (status, ResponseBuilder::new().description(text).build())
    };
    let json = |text: &str, schema: RefOr<Schema>| {
        ResponseBuilder::new()
            .description(text)
            .content("application/json", content(schema))
    };
    let anything = || RefOr::from(Schema::Object(Object::with_type(Type::Object)));
    let events = |answer: ResponseBuilder| {
        let text = Schema::Object(Object::with_type(Type::String));
        vec![("200", answer.content(EVENT_STREAM, content(text)).build())]
    };
    let one = |answer: ResponseBuilder| vec![("200", answer.build())];
    match operation {
        O::Discovery => one(json("The discovery document.", anything())),
        O::Document => one(json("The OpenAPI document.", anything())),
        O::Units => events(json("Some units, by name.", named("UnitPage"))),
        O::Unit => one(json("The unit.", named("Unit"))),
        O::SetUnit => vec![
            nothing("201", "It is created, or its file is replaced."),
            nothing("204", "What is wanted of it is set."),
        ],
        O::DestroyUnit => vec![nothing("204", "It is gone.")],
        O::Explain => one(json("Why.", named("Explanation"))),
        O::States => {
            let text = "Some states, by unit and machine.";
            events(json(text, named("UnitStatePage")))
        }
        O::State => one(json("The state.", named("UnitState"))),
        O::Machines => one(json("Some machines, by id.", named("MachinePage"))),
        O::PatchMachines => vec![nothing("204", "They are made.")],
    }
}

fn content(schema: impl Into<RefOr<Schema>>) -> Content {
    ContentBuilder::new().schema(Some(schema)).build()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::http::yaml;

    fn document() -> Value {
        openapi(env!("CARGO_PKG_VERSION"))
    }

    #[test]
    fn the_committed_document_is_up_to_date() {
        let committed = include_str!("../../../openapi/fleet.yaml");
        assert!(
            yaml(&document()).unwrap() == committed,
            "openapi/fleet.yaml is out of date: run `make openapi`"
        );
    }

    #[test]
    fn it_is_valid_by_the_official_schema() {
        let schema = include_str!("../../../tests/fixtures/openapi-3.0.schema.json");
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
                let method = operation.method().to_lowercase();
                let said = &document["paths"][endpoint.path][&method];
                assert!(
                    said["operationId"].is_string(),
                    "{method} {}",
                    endpoint.path
                );
                let is_open = operation.wish().is_none();
                assert_eq!(said["security"] == json!([]), is_open, "{}", endpoint.path);
            }
        }
    }
}
