//! Describes each operation for the document.

use serde_json::{Value, json};
use strum::IntoEnumIterator as _;
use utoipa::PartialSchema as _;
use utoipa::openapi::path::{OperationBuilder, Parameter, ParameterIn};
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::schema::{
    AdditionalProperties, Object, ObjectBuilder, Schema, SchemaType, Type,
};
use utoipa::openapi::{
    ComponentsBuilder, ContentBuilder, Ref, Required, Response, ResponseBuilder,
};

use super::problems::{
    REFUSALS, X_REQUEST_ID, with_headers, with_position, with_replayed, with_request_id, with_tag,
    with_warning,
};
use crate::domain::lease::{LeaseHolder, LeaseName};
use crate::domain::{Entity, EntityRegistry, ListFilterKind};
use crate::http::meta::Metadata;
use crate::http::request::Route;
use crate::wire::schemas::examples::{self, Examples};
use crate::wire::schemas::{KindNames, Names, parameters};
use crate::wire::{self, EventForm, PatchFormat};
use hyperfleet_server_kit::openapi::{
    self, any, empty_answer, json_answer, json_body, operation, parameter, with_parameters,
};

/// Tag of the service's own paths.
pub(in crate::http) const SERVICE: &str = "Service";
/// Tag of the leases.
pub(in crate::http) const LEASES: &str = "Leases";
/// Tag of the audit trail.
pub(in crate::http) const AUDIT: &str = "Audit";
/// Prefix of the names of shared parameters in the query.
pub(in crate::http) const QUERY_PARAMS: &str = "QueryParams.";
/// Prefix of the names of shared headers of requests.
pub(in crate::http) const HEADER_PARAMS: &str = "HeaderParams.";
/// The status of the answer to a dry run whose real answer has no body.
pub(in crate::http) const DRY_RUN_RANGE: &str = "2XX";
/// Statuses of every operation that needs a caller.
const COMMON: [u16; 6] = [401, 403, 405, 429, 500, 503];
/// `*` or tags in quotes.
const TAG_LIST: &str = r#"^(\*|(W/)?"[!#-~]{0,40}"( *, *(W/)?"[!#-~]{0,40}"){0,9})$"#;
const CHANGE_POSITION: &str = "^[0-9]{1,19}-[0-9]{1,19}$";
/// A key without quotes. In quotes it may have any printable character.
const KEY: &str = r"^[A-Za-z0-9._~:/+=@-]{1,255}$";
/// Statuses of operations with a body.
const WITH_BODY: [u16; 4] = [400, 408, 413, 415];

/// The list of an operation.
pub(in crate::http) struct Subject<'a> {
    registry: &'a EntityRegistry,
    /// The kind; `None` for resources of any kind.
    entity: Option<&'a Entity>,
    names: &'a KindNames,
    /// The names of the parent's kind, if the path has the parent.
    parent: Option<&'a KindNames>,
}

impl<'a> Subject<'a> {
    pub(in crate::http) fn new(
        registry: &'a EntityRegistry,
        names: &'a Names,
        about: Option<&'a Route>,
    ) -> Self {
        let (kind, parent) = match about {
            None | Some(Route::All) => (None, None),
            Some(Route::Kind(kind)) => (Some(kind.as_str()), None),
            Some(Route::Owned { kind, parent }) => (Some(kind.as_str()), Some(parent.as_str())),
        };
        Self {
            registry,
            entity: kind.and_then(|kind| registry.get(kind)),
            names: names.of(kind),
            parent: parent.map(|parent| names.of(Some(parent))),
        }
    }

    /// A path as the document spells it.
    pub(in crate::http) fn path(&self, path: &str) -> String {
        path.replace("{parent_id}", &format!("{{{}}}", self.parent_id()))
            .replace("{id}", &format!("{{{}}}", self.names.id))
    }

    /// Never the parameter of the resource itself, which kinds with similar names might share.
    fn parent_id(&self) -> &str {
        match self.parent {
            Some(parent) if parent.id != self.names.id => &parent.id,
            _ => "parent_id",
        }
    }

    /// Whether a child kind is addressed without its parent in the path.
    fn is_flat_child(&self) -> bool {
        self.parent.is_none() && self.entity.is_some_and(|e| e.parent.is_some())
    }

    /// The kind's name in names of operations. Those of the older document stay as they are; flat routes of child
    /// kinds, most of which it lacks, get `Flat`.
    fn one(&self) -> String {
        let flat = if self.is_flat_child() { "Flat" } else { "" };
        format!("{flat}{}", self.names.one)
    }

    fn noun(&self) -> String {
        match self.entity {
            Some(entity) => format!("`{}`", entity.kind),
            None => "resource".to_owned(),
        }
    }

    fn below(&self) -> String {
        let parent = self
            .parent
            .map(|parent| format!(" below a `{}`", parent.one));
        parent.unwrap_or_default()
    }

    /// Examples of the kind; of the first root kind for resources of any kind.
    fn examples(&self) -> Option<Examples<'a>> {
        let mut roots = self.registry.entities().iter();
        let entity = self.entity.or_else(|| roots.find(|e| e.parent.is_none()))?;
        Examples::new(self.registry, entity)
    }

    /// Begins an operation on the list.
    fn of_list(&self, id: String, summary: String, text: &str) -> OperationBuilder {
        self.operation(id, summary, text, None)
    }

    /// Begins an operation on one resource.
    fn of_one(&self, id: String, summary: String, text: &str) -> OperationBuilder {
        let own_id = path_id(&self.names.id, "Id of the resource.");
        self.operation(id, summary, text, Some(own_id))
    }

    fn operation(
        &self,
        id: String,
        summary: String,
        text: &str,
        own_id: Option<Parameter>,
    ) -> OperationBuilder {
        let parent = self
            .parent
            .map(|_| path_id(self.parent_id(), "Id of the parent."));
        let ids: Vec<_> = parent.into_iter().chain(own_id).collect();
        let missing: &[u16] = if ids.is_empty() { &[] } else { &[404] };
        let described = operation(id, self.names.many.clone(), summary, text);
        let described = refuse(with_parameters(described, ids), missing);
        refuse(with_request_id_chosen(described), &COMMON)
    }

    /// The answer with one resource.
    fn shown(&self, text: &str, example: Option<Value>) -> ResponseBuilder {
        let schema = Ref::from_schema_name(self.names.schema(""));
        with_tag(with_headers(json_answer(text, schema, example)))
    }
}

pub(in crate::http) fn list(subject: &Subject<'_>) -> OperationBuilder {
    let many = &subject.names.many;
    let id = match subject.parent {
        None => format!("get{many}"),
        Some(parent) => format!("get{many}By{}Id", parent.one),
    };
    let summary = format!("List each {}{}", subject.noun(), subject.below());
    let mut described = subject.of_list(id, summary, "Newest first.");
    if subject.entity.is_none() {
        let kinds = subject.registry.entities().iter();
        let kinds: Vec<_> = kinds.map(|entity| entity.kind.as_str()).collect();
        let kind = parameters::filter(ListFilterKind::Kind, &kinds);
        described = with_parameters(described, kind);
    }
    let kind = subject.entity.map(|entity| entity.kind.as_str());
    let listed = subject.examples().map(|examples| examples.listed(kind));
    let schema = Ref::from_schema_name(subject.names.schema("List"));
    let page = json_answer(
        "A page of resources; with `watch` their changes.",
        schema,
        listed,
    );
    let page = [EventForm::LINES_TYPE, EventForm::STREAM_TYPE]
        .into_iter()
        .fold(page, |page, media| {
            let event = Ref::from_schema_name("WatchEvent");
            page.content(media, ContentBuilder::new().schema(Some(event)).build())
        });
    let page = with_position(with_headers(page)).build();
    let described = shared(described, parameters::resources());
    let described = shared(described, vec![last_event_id()]).response("200", page);
    refuse(described, &[400, 410, 504])
}

pub(in crate::http) fn create(subject: &Subject<'_>) -> OperationBuilder {
    let id = match subject.parent {
        None => format!("post{}", subject.one()),
        Some(_) => format!("create{}", subject.one()),
    };
    let example = subject.examples().map(Examples::create);
    let schema = Ref::from_schema_name(subject.names.schema("CreateRequest"));
    let (what, body) = (subject.noun(), json_body(schema, example));
    // Child kinds are created below their parent only.
    let described = if subject.is_flat_child() {
        let summary = format!("Refused: create a {what} below its parent");
        let described = subject.of_list(id, summary, "Answers 422 once the body is right.");
        refuse(described, &[422])
    } else {
        let created = subject.examples().map(Examples::created);
        let summary = format!("Create a {what}{}", subject.below());
        let text =
            "Its required adapters then work on it: `status.conditions` says how far they are.";
        let described = subject.of_list(id, summary, text);
        let made = with_replayed(subject.shown("The new resource.", created));
        let described = described.response("201", made.build());
        refuse(keyed(tried(described)), &[409, 422])
    };
    refuse(described.request_body(body), &WITH_BODY)
}

pub(in crate::http) fn get(subject: &Subject<'_>) -> OperationBuilder {
    let id = format!("get{}ById", subject.one());
    let summary = format!("Get a {} by its id", subject.noun());
    let text = "What is declared, and in `status` what adapters have achieved.";
    let described = subject.of_one(id, summary, text);
    let created = subject.examples().map(Examples::created);
    let described = with_parameters(described, parameters::one());
    let shared_ones = vec![parameters::at(), parameters::fields()];
    let described = conditional(shared(described, shared_ones))
        .response(
            "200",
            with_position(subject.shown("The resource.", created)).build(),
        )
        .response(
            "304",
            with_position(with_tag(with_headers(empty_answer(
                "You have the resource in this state.",
            ))))
            .build(),
        );
    refuse(described, &[400, 410, 412])
}

pub(in crate::http) fn history(subject: &Subject<'_>) -> OperationBuilder {
    let text = "Newest first, with what each declares and what differs from the one before. Of a removed resource, too.";
    let summary = format!("List the generations of a {}", subject.noun());
    let described = subject.of_one(format!("get{}History", subject.one()), summary, text);
    let example = subject.examples().map(Examples::generations);
    let page = answer("A page of generations.", "GenerationList", example);
    let described = shared(described, parameters::page()).response("200", page);
    refuse(described, &[400, 504])
}

pub(in crate::http) fn events(subject: &Subject<'_>) -> OperationBuilder {
    let text = "Newest first: declared changes, deletion, removal, and every condition that took another status. Of a \
        removed resource, too.";
    let summary = format!("List what happened to a {}", subject.noun());
    let described = subject.of_one(format!("get{}Events", subject.one()), summary, text);
    let page = answer("A page of events.", "EventList", Some(examples::events()));
    let described = shared(described, parameters::page()).response("200", page);
    refuse(described, &[400, 504])
}

pub(in crate::http) fn patch(subject: &Subject<'_>) -> OperationBuilder {
    let text = "The generation rises by one if something really differs, or if `references` is sent in plain JSON. The media type \
        says how the body changes the resource.";
    let id = format!("patch{}ById", subject.one());
    let created = subject.examples().map(Examples::created);
    let patched = with_replayed(subject.shown("The resource as it is now.", created));
    let described = subject.of_one(id, format!("Change a {}", subject.noun()), text);
    let described = described
        .request_body(Some(patch_body(subject)))
        .response("200", patched.build());
    let described = keyed(conditional(tried(described)));
    refuse(refuse(described, &[409, 412, 422]), &WITH_BODY)
}

/// The body of a patch in each of its formats. Plain JSON is the first one, which generated clients take.
fn patch_body(subject: &Subject<'_>) -> RequestBody {
    let body = RequestBodyBuilder::new().required(Some(Required::True));
    let body = PatchFormat::iter().fold(body, |body, format| {
        let (name, example) = match format {
            PatchFormat::Parts => (
                subject.names.schema("PatchRequest"),
                subject.examples().map(Examples::patch),
            ),
            PatchFormat::Merge => ("MergePatch".to_owned(), Some(examples::merge_patch())),
            PatchFormat::Operations => ("JsonPatch".to_owned(), Some(examples::json_patch())),
        };
        let schema = Ref::from_schema_name(name);
        let content = ContentBuilder::new().schema(Some(schema)).example(example);
        body.content(format.media_type(), content.build())
    });
    body.build()
}

pub(in crate::http) fn delete(subject: &Subject<'_>) -> OperationBuilder {
    let text = "It keeps answering until every required adapter has reported `Finalized=True` and \
        nothing below it is left. Repeating it changes nothing.";
    let id = format!("delete{}ById", subject.one());
    let described = subject.of_one(id, format!("Delete a {}", subject.noun()), text);
    let deleted = subject.examples().map(Examples::deleted);
    let deleted = subject.shown(
        "The resource, being deleted, or just removed: without `ETag` then.",
        deleted,
    );
    let described = described.response("202", with_replayed(deleted).build());
    let described = keyed(conditional(tried(described)));
    refuse(described, &[400, 409, 412, 422])
}

pub(in crate::http) fn force_delete(subject: &Subject<'_>) -> OperationBuilder {
    let text = "With everything below it. It must be being deleted already.";
    let summary = format!(
        "Remove a {} although its adapters are not done",
        subject.noun()
    );
    let schema = Ref::from_schema_name("ForceDeleteRequest");
    let described = subject.of_one(format!("forceDelete{}", subject.one()), summary, text);
    let described = described
        .request_body(json_body(schema, Some(examples::force_delete())))
        .response(
            "204",
            with_replayed(with_request_id(empty_answer("It is removed."))).build(),
        );
    let described = keyed(conditional(planned(described)));
    refuse(refuse(described, &[409, 412, 422]), &WITH_BODY)
}

pub(in crate::http) fn explain(subject: &Subject<'_>) -> OperationBuilder {
    let text = "The required adapters that are not done, the descendants and references that block its deletion, and the \
        rules of its derived conditions: as data, and in sentences for people, whose words may change.";
    let summary = format!("Explain what a {} waits for", subject.noun());
    let described = subject.of_one(format!("explain{}", subject.one()), summary, text);
    let example = subject.examples().map(Examples::explained);
    described.response("200", answer("What it waits for.", "Explanation", example))
}

pub(in crate::http) fn reports(subject: &Subject<'_>) -> OperationBuilder {
    let id = match subject.parent {
        None => format!("get{}Statuses", subject.one()),
        Some(_) => format!("get{}Statuses", subject.names.many),
    };
    let summary = format!("List the reports on a {}", subject.noun());
    let described = subject.of_one(id, summary, "First reporter first.");
    let example = Some(examples::reports());
    let page = answer("A page of reports.", "AdapterStatusList", example);
    let described = shared(described, parameters::page()).response("200", page);
    refuse(described, &[400])
}

pub(in crate::http) fn report(subject: &Subject<'_>) -> OperationBuilder {
    let text = "For adapters. The latest report of each adapter is kept. Of two reports of one generation and time the first one \
        stays, and `Warning` says so if the second one differs; `Finalized=True` replaces it while the resource is being deleted.";
    let summary = format!("Report on a {}", subject.noun());
    let schema = Ref::from_schema_name("AdapterStatusCreateRequest");
    let reported = Some(examples::reported());
    let schema_of_kept = Ref::from_schema_name("AdapterStatus");
    let kept = json_answer("The report as it is kept.", schema_of_kept, reported);
    let kept = with_warning(with_headers(kept));
    // The answer to the dry run is in the text only: some generators cannot have a range beside successes with and
    // without a body.
    let discarded = "The report is discarded: a later one is known, or it is of a generation to come; `Warning` says which. The answer to a dry run of \
        it is 200 with the member `dry_run` alone, a `DryRunAnswer`.";
    let described = subject.of_one(format!("put{}Statuses", subject.one()), summary, text);
    let described = described
        .request_body(json_body(schema, Some(examples::report())))
        .response("201", kept.build())
        .response(
            "204",
            with_warning(with_request_id(empty_answer(discarded))).build(),
        );
    refuse(refuse(conditional(tried(described)), &[412]), &WITH_BODY)
}

pub(in crate::http) fn audit(subject: &Subject<'_>) -> OperationBuilder {
    let text = "Every create, patch, delete, removal and force-delete, newest first; with `after` oldest first.";
    let first = subject.registry.entities().first();
    let created = first.and_then(|entity| Examples::new(subject.registry, entity));
    let example = created.map(Examples::created).map(|resource| {
        let text = |member: &str| resource[member].as_str().unwrap_or_default();
        examples::audit(text("kind"), text("name"))
    });
    let page = answer("A page of the trail.", "AuditList", example);
    let described = operation("getAudit", AUDIT, "List changes", text).response("200", page);
    let described = with_parameters(with_request_id_chosen(described), parameters::audit());
    refuse(refuse(described, &COMMON), &[400, 504])
}

pub(in crate::http) fn acquire_lease(_: &Subject<'_>) -> OperationBuilder {
    let text = "Acquires the lease if it is free, and renews it for its holder. Of several copies of a program the holder \
        works. It renews the lease well before `expires_time`, and stops working if it cannot.";
    let schema = Ref::from_schema_name("LeaseRequest");
    let described = of_lease("putLease", "Acquire or renew a lease", text)
        .request_body(json_body(schema, Some(examples::lease_claim())))
        .response("200", held("The lease, which the caller holds now."));
    refuse(refuse(described, &[409]), &WITH_BODY)
}

pub(in crate::http) fn lease(_: &Subject<'_>) -> OperationBuilder {
    let text = "A lease that has expired or was released does not exist.";
    let described = of_lease("getLease", "Get a lease", text).response("200", held("The lease."));
    refuse(described, &[400, 404])
}

pub(in crate::http) fn release_lease(_: &Subject<'_>) -> OperationBuilder {
    let text = "Another copy can acquire the lease immediately.";
    let holder = ObjectBuilder::new()
        .schema_type(SchemaType::Type(Type::String))
        .min_length(Some(1))
        .max_length(Some(LeaseHolder::CHARACTERS_MAX));
    let holder = parameter(
        ParameterIn::Query,
        "holder",
        "The holder that releases the lease.",
        holder.build(),
    );
    let holder = holder
        .required(Required::True)
        .example(Some(json!("dns-adapter-7c9f-1")));
    let described = of_lease("deleteLease", "Release a lease", text)
        .parameter(holder)
        .response("204", nothing("The lease is released."));
    refuse(described, &[400, 404])
}

/// Begins an operation on a lease.
fn of_lease(id: &str, summary: &str, text: &str) -> OperationBuilder {
    let name = ObjectBuilder::new()
        .schema_type(SchemaType::Type(Type::String))
        .min_length(Some(1))
        .max_length(Some(LeaseName::BYTES_MAX))
        .pattern(Some("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"));
    let name = parameter(
        ParameterIn::Path,
        "name",
        "Name of the lease, one for each adapter.",
        name.build(),
    );
    let described =
        operation(id, LEASES, summary, text).parameter(name.example(Some(json!("dns-adapter"))));
    refuse(with_request_id_chosen(described), &COMMON)
}

/// The answer with a lease.
fn held(text: &str) -> Response {
    let example = serde_json::to_value(wire::lease(&examples::lease()));
    answer(text, "Lease", example.ok())
}

pub(in crate::http) fn metadata(_: &Subject<'_>) -> OperationBuilder {
    let example = json!({
        "id": "hyperfleet",
        "href": "/api/hyperfleet",
        "kind": "API",
        "version": "0.1.0",
        "build_time": "2026-01-01T10:00:00Z",
    });
    let schema = Metadata::schema();
    let answer = json_answer("Which program this is.", schema, Some(example));
    let text = "Its name, version and build time. Needs no token.";
    of_service("getService", "Which program this is", text, answer)
}

pub(in crate::http) fn document(_: &Subject<'_>) -> OperationBuilder {
    let answer = json_answer("The OpenAPI document.", any_object(), None);
    let text = "In OpenAPI 3.0, with the kinds of this instance. Needs no token.";
    of_service("getOpenapi", "This document", text, answer)
        .response("304", nothing("You have this document already."))
}

pub(in crate::http) fn page(_: &Subject<'_>) -> OperationBuilder {
    let html = ContentBuilder::new().schema(Some(any(Type::String)));
    let answer = empty_answer("The page.").content("text/html", html.build());
    let text = "Requests can be tried on it. Needs no token and no internet.";
    of_service("getOpenapiPage", "This document as a page", text, answer)
}

fn any_object() -> Schema {
    let mut object = Object::with_type(Type::Object);
    object.additional_properties = Some(Box::new(AdditionalProperties::FreeForm(true)));
    Schema::Object(object)
}

fn of_service(id: &str, summary: &str, text: &str, answer: ResponseBuilder) -> OperationBuilder {
    let described = operation(id, SERVICE, summary, text);
    let described = described.response("200", with_request_id(answer).build());
    refuse(with_request_id_chosen(described), &[405, 500])
}

fn answer(text: &str, schema: impl Into<String>, example: Option<Value>) -> Response {
    with_headers(json_answer(text, Ref::from_schema_name(schema), example)).build()
}

fn nothing(text: &str) -> Response {
    with_request_id(empty_answer(text)).build()
}

fn path_id(name: &str, text: &str) -> Parameter {
    let id = parameter(ParameterIn::Path, name, text, any(Type::String));
    id.example(Some(json!("019b7868-8e00-7000-8000-000000000001")))
        .build()
}

/// Refers to parameters that several operations share.
fn shared(described: OperationBuilder, parameters: Vec<Parameter>) -> OperationBuilder {
    parameters.into_iter().fold(described, |described, one| {
        described.parameter_ref(reference(&component(&one)))
    })
}

/// The name of a shared parameter in the document: `QueryParams.search`, as in the older document. Generators make a
/// type of it, and without the prefix `dryRun` and the schema `DryRun` would be one.
fn component(parameter: &Parameter) -> String {
    let prefix = match parameter.parameter_in {
        ParameterIn::Header => HEADER_PARAMS,
        _ => QUERY_PARAMS,
    };
    format!("{prefix}{}", parameter.name)
}

fn reference(component: &str) -> Ref {
    Ref::new(format!("#/components/parameters/{component}"))
}

/// May depend on the state of the resource.
fn conditional(described: OperationBuilder) -> OperationBuilder {
    shared(described, preconditions())
}

/// May be repeated by its key.
fn keyed(described: OperationBuilder) -> OperationBuilder {
    shared(described, vec![idempotency_key()])
}

/// May be a dry run.
fn tried(described: OperationBuilder) -> OperationBuilder {
    shared(described, vec![parameters::dry_run()])
}

/// The same for a request whose answer may have no body. The answer to the dry run is a range, because generators take
/// the lowest success for the type of the operation, and that is to be the real one.
fn planned(described: OperationBuilder) -> OperationBuilder {
    let text = "Always 200: what the request would do, if it is a dry run and its real answer has no body.";
    tried(described).response(DRY_RUN_RANGE, answer(text, "DryRunAnswer", None))
}

/// Adds the refusals with these statuses.
fn refuse(described: OperationBuilder, statuses: &[u16]) -> OperationBuilder {
    openapi::refuse(described, &REFUSALS, statuses)
}

fn with_request_id_chosen(described: OperationBuilder) -> OperationBuilder {
    described.parameter_ref(reference(&[HEADER_PARAMS, X_REQUEST_ID].concat()))
}

fn preconditions() -> Vec<Parameter> {
    vec![
        header(
            "If-Match",
            "Only if the resource is in one of these states, else 412: its `ETag`, or a generation such as `\"g7\"`, \
             which names what is declared, whatever adapters have reported since. `*` is any state.",
            TAG_LIST,
        ),
        header(
            "If-None-Match",
            "Only if the resource is in none of these states, such as `\"g7.r12\"`: a GET is answered 304 else, any \
             other request 412.",
            TAG_LIST,
        ),
    ]
}

fn idempotency_key() -> Parameter {
    let text = "A key of your choice, such as `8e03978e-40d5-43dd-bc93-6894a57f9324`: however often the request is sent \
        with it, it has one effect and one answer. Remembered for 24 hours, unless the service is set otherwise.";
    header("Idempotency-Key", text, KEY)
}

fn last_event_id() -> Parameter {
    let text = "With `watch`: begin after this position, such as `0-7`. Clients of server-sent events send the `id` of their \
        last event when they connect again. Counts more than `position` and `initial`.";
    header("Last-Event-ID", text, CHANGE_POSITION)
}

/// A header whose value has a form.
fn header(name: &str, description: &str, pattern: &str) -> Parameter {
    let schema = ObjectBuilder::new()
        .schema_type(SchemaType::Type(Type::String))
        .pattern(Some(pattern))
        .build();
    parameter(ParameterIn::Header, name, description, schema).build()
}

/// The parameters that several operations share.
pub(in crate::http) fn shared_parameters(builder: ComponentsBuilder) -> ComponentsBuilder {
    let text = "The id of the request, if it is to have a certain one, such as `deploy-42`: 1 to 128 of \
        `A-Za-z0-9._-`. Any other is replaced.";
    let id = parameter(ParameterIn::Header, X_REQUEST_ID, text, any(Type::String)).build();
    let headers = preconditions()
        .into_iter()
        .chain([idempotency_key(), last_event_id(), id]);
    let queries = parameters::resources().into_iter();
    let shared = queries.chain([parameters::dry_run()]).chain(headers);
    shared.fold(builder, |builder, parameter| {
        builder.parameter(component(&parameter), parameter)
    })
}
