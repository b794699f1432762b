//! What the document says of each operation.

use serde_json::Value;
use utoipa::openapi::path::{
    HttpMethod, OperationBuilder, Parameter, ParameterBuilder, ParameterIn, PathItem,
    PathItemBuilder,
};
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::schema::{Object, Schema, Type};
use utoipa::openapi::{
    ComponentsBuilder, Content, ContentBuilder, Ref, Required, Response, ResponseBuilder,
};

use super::subject::Subject;
use super::{problems, service};
use crate::domain::{EntityRegistry, ListFilterKind};
use crate::http::request::Route;
use crate::http::routes::{Endpoint, Operation};
use crate::wire::schemas::examples::{self, Examples};
use crate::wire::schemas::{Names, parameters};

/// Describes the operations of a service.
pub(super) struct Describer<'a> {
    registry: &'a EntityRegistry,
    names: &'a Names,
}

impl<'a> Describer<'a> {
    /// For these kinds, under these names.
    pub(super) fn new(registry: &'a EntityRegistry, names: &'a Names) -> Self {
        Self { registry, names }
    }

    /// A path, as the document spells it, with its operations.
    pub(super) fn path(&self, endpoint: &'a Endpoint) -> (String, PathItem) {
        let mut item = PathItemBuilder::new();
        let mut path = endpoint.path.clone();
        for &operation in endpoint.operations {
            let described = match &endpoint.about {
                None => service::describe(operation, self.first_created().as_ref()),
                Some(about) => {
                    let subject = self.subject(operation, about);
                    path = endpoint
                        .path
                        .replace("{parent_id}", &format!("{{{}}}", subject.parent_id()));
                    path = path.replace("{id}", &format!("{{{}}}", subject.id()));
                    Some(self.of_resources(&subject))
                }
            };
            if let Some(described) = described {
                item = item.operation(method(operation), described);
            }
        }
        (path, item.build())
    }

    /// The groups of operations, with what they are about.
    pub(super) fn tags(&self) -> Vec<(String, String)> {
        let kinds = self.registry.entities().iter().map(|entity| {
            let many = &self.names.of(Some(&entity.kind)).many;
            (
                many.clone(),
                format!("Resources of kind `{}`.", entity.kind),
            )
        });
        let any = self.names.of(None).many.clone();
        let others = [
            (any, "Resources of every kind.".to_owned()),
            (service::AUDIT.to_owned(), "Who changed what.".to_owned()),
            (
                service::SERVICE.to_owned(),
                "The service itself.".to_owned(),
            ),
        ];
        kinds.chain(others).collect()
    }

    fn subject(&self, operation: Operation, about: &'a Route) -> Subject<'a> {
        let (kind, parent) = match about {
            Route::All => (None, None),
            Route::Kind(kind) => (Some(kind.as_str()), None),
            Route::Owned { kind, parent } => (Some(kind.as_str()), Some(parent.as_str())),
        };
        Subject {
            operation,
            entity: kind.and_then(|kind| self.registry.get(kind)),
            names: self.names.of(kind),
            parent: parent.map(|parent| self.names.of(Some(parent))),
        }
    }

    fn of_resources(&self, subject: &Subject<'a>) -> OperationBuilder {
        let (summary, description) = subject.texts();
        let mut described = OperationBuilder::new()
            .operation_id(Some(subject.operation_id()))
            .summary(Some(summary))
            .description(Some(description).filter(|text| !text.is_empty()))
            .tag(subject.names.many.clone())
            .request_body(self.body(subject));
        for parameter in subject.path_parameters() {
            described = described.parameter(parameter);
        }
        described = described.parameter_ref(Ref::new("#/components/parameters/X-Request-Id"));
        described = self.query_parameters(described, subject);
        for (status, answer) in self.successes(subject) {
            described = described.response(status, answer);
        }
        refusals(described, &subject.refusals())
    }

    fn query_parameters(
        &self,
        mut described: OperationBuilder,
        subject: &Subject<'a>,
    ) -> OperationBuilder {
        let shared = match subject.operation {
            Operation::List => parameters::resources(),
            Operation::Reports => parameters::page(),
            Operation::Get => vec![parameters::fields()],
            _ => Vec::new(),
        };
        if subject.operation == Operation::List && subject.entity.is_none() {
            let kinds = self.registry.entities().iter().map(|e| e.kind.as_str());
            let kinds: Vec<_> = kinds.collect();
            for parameter in parameters::filter(ListFilterKind::Kind, &kinds) {
                described = described.parameter(parameter);
            }
        }
        for parameter in shared {
            let reference = format!("#/components/parameters/{}", parameter.name);
            described = described.parameter_ref(Ref::new(reference));
        }
        described
    }

    fn body(&self, subject: &Subject<'a>) -> Option<RequestBody> {
        let examples = self.examples(subject);
        let (schema, example) = match subject.operation {
            Operation::Create => (
                subject.names.schema("CreateRequest"),
                examples.map(Examples::create),
            ),
            Operation::Patch => (
                subject.names.schema("PatchRequest"),
                examples.map(Examples::patch),
            ),
            Operation::ForceDelete => (
                "ForceDeleteRequest".to_owned(),
                Some(examples::force_delete()),
            ),
            Operation::Report => (
                "AdapterStatusCreateRequest".to_owned(),
                Some(examples::report()),
            ),
            _ => return None,
        };
        let body = RequestBodyBuilder::new()
            .required(Some(Required::True))
            .content(
                "application/json",
                content(Ref::from_schema_name(schema), example),
            );
        Some(body.build())
    }

    fn successes(&self, subject: &Subject<'a>) -> Vec<(&'static str, Response)> {
        let examples = self.examples(subject);
        let of = |suffix: &str| Ref::from_schema_name(subject.names.schema(suffix));
        let answer = |text: &str, schema: Ref, example: Option<Value>| {
            problems::with_headers(json_answer(text, schema, example)).build()
        };
        let nothing = |text: &str| {
            let empty = ResponseBuilder::new().description(text);
            problems::with_request_id(empty).build()
        };
        let created = examples.map(Examples::created);
        match subject.operation {
            Operation::List => {
                let kind = subject.entity.map(|e| e.kind.as_str());
                let listed = examples.map(|e| e.listed(kind));
                vec![("200", answer("A page of resources.", of("List"), listed))]
            }
            // Child kinds are created below their parent alone.
            Operation::Create if subject.is_flat_child() => Vec::new(),
            Operation::Create => vec![("201", answer("The new resource.", of(""), created))],
            Operation::Get => vec![("200", answer("The resource.", of(""), created))],
            Operation::Patch => {
                vec![("200", answer("The resource as it is now.", of(""), created))]
            }
            Operation::Delete => {
                let deleted = examples.map(Examples::deleted);
                vec![(
                    "202",
                    answer(
                        "The resource, being deleted or just removed.",
                        of(""),
                        deleted,
                    ),
                )]
            }
            Operation::ForceDelete => vec![("204", nothing("It is removed."))],
            Operation::Reports => {
                let list = Ref::from_schema_name("AdapterStatusList");
                vec![(
                    "200",
                    answer("A page of reports.", list, Some(examples::reports())),
                )]
            }
            Operation::Report => {
                let report = Ref::from_schema_name("AdapterStatus");
                let accepted = answer(
                    "The report as it is kept.",
                    report,
                    Some(examples::reported()),
                );
                vec![
                    ("201", accepted),
                    (
                        "204",
                        nothing(
                            "The report is discarded: a later one is known, or it is of a generation to come.",
                        ),
                    ),
                ]
            }
            Operation::Metadata | Operation::Document | Operation::Page | Operation::Audit => {
                Vec::new()
            }
        }
    }

    /// A resource of the first kind.
    fn first_created(&self) -> Option<Value> {
        let entity = self.registry.entities().first()?;
        Some(Examples::new(self.registry, entity)?.created())
    }

    /// Examples of the kind; of the first root kind where any is meant.
    fn examples(&self, subject: &Subject<'a>) -> Option<Examples<'a>> {
        let mut roots = self
            .registry
            .entities()
            .iter()
            .filter(|e| e.parent.is_none());
        let entity = subject.entity.or_else(|| roots.next())?;
        Examples::new(self.registry, entity)
    }
}

/// The parameters that several operations share.
pub(super) fn shared_parameters(builder: ComponentsBuilder) -> ComponentsBuilder {
    let shared = parameters::resources().into_iter().chain([request_id()]);
    shared.fold(builder, |builder, parameter| {
        builder.parameter(parameter.name.clone(), parameter)
    })
}

/// Adds what it answers where it is no success.
pub(super) fn refusals(mut described: OperationBuilder, statuses: &[u16]) -> OperationBuilder {
    for &status in statuses {
        if let Some(response) = problems::response(status) {
            described = described.response(status.to_string(), response);
        }
    }
    described
}

fn method(operation: Operation) -> HttpMethod {
    match operation.method() {
        "POST" => HttpMethod::Post,
        "PATCH" => HttpMethod::Patch,
        "DELETE" => HttpMethod::Delete,
        "PUT" => HttpMethod::Put,
        _ => HttpMethod::Get,
    }
}

/// The id that a caller may choose.
fn request_id() -> Parameter {
    ParameterBuilder::new()
        .name("X-Request-Id")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(
            "The id of the request, if it is to have a certain one, such as `deploy-42`: 1 to 128 of \
             `A-Za-z0-9._-`. Any other is replaced.",
        ))
        .schema(Some(text()))
        .build()
}

/// A body that is JSON.
pub(super) fn json_answer(
    text: &str,
    schema: impl Into<utoipa::openapi::RefOr<Schema>>,
    example: Option<Value>,
) -> ResponseBuilder {
    ResponseBuilder::new()
        .description(text)
        .content("application/json", content(schema, example))
}

fn content(schema: impl Into<utoipa::openapi::RefOr<Schema>>, example: Option<Value>) -> Content {
    ContentBuilder::new()
        .schema(Some(schema))
        .example(example)
        .build()
}

/// Any text.
pub(super) fn text() -> Schema {
    Schema::Object(Object::with_type(Type::String))
}
