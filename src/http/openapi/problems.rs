//! Problems as answers of the document. Their examples are made by the code that makes real ones.

use serde_json::{Value, json};
use utoipa::PartialSchema as _;
use utoipa::openapi::example::ExampleBuilder;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::schema::{Object, Schema, Type};
use utoipa::openapi::{
    ComponentsBuilder, ContentBuilder, Header, Ref, RefOr, Response, ResponseBuilder,
};

use crate::app;
use crate::auth::{AuthRefusal, IdentityFault, TokenFault};
use crate::domain::patch::{ConflictReason, PatchConflict};
use crate::domain::precondition::EntityTag;
use crate::domain::tenancy::Denied;
use crate::domain::{EntityRegistry, ListFilterKind, ResourceId};
use crate::http::problem::{
    Body, ValidationErrorConstraint, ViolationView, removed, unavailable, unsupported_patch,
};
use crate::wire::schemas::examples::{self, Examples};
use crate::wire::{self, BASE, Kinds, Params, PatchFormat, Views};
use hyperfleet_server_kit::http::{Arrival, Problem, UNDERSTOOD, WatcherRefusal};
use hyperfleet_server_kit::openapi::{RefusedStatus, empty_answer};

/// Header of every answer.
pub(in crate::http) const X_REQUEST_ID: &str = "X-Request-Id";
const ETAG: &str = "ETag";
const POSITION: &str = "Hyperfleet-Position";
const WARNING: &str = "Warning";
const IDEMPOTENCY_REPLAYED: &str = "Idempotency-Replayed";

/// Every status that is not a success.
#[rustfmt::skip]
pub(in crate::http) const REFUSALS: [RefusedStatus; 16] = [
    (400, "BadRequest", "A parameter or the body breaks a rule, or cannot be read."),
    (401, "Unauthorized", "No token, or none that is taken; or, for changes, one that does not say who is calling. Only where the service is set to check tokens."),
    (403, "Forbidden", "The headers do not say for which tenant the request is made, or it is made by a system identity, which may read and report only."),
    (404, "NotFound", "The resource does not exist, or the lease is not held."),
    (405, "MethodNotAllowed", "The path has other methods: `Allow` names them."),
    (408, "RequestTimeout", "The body arrives too slowly."),
    (409, "Conflict", "The name is taken, the state of the resource does not allow it, an operation of a patch does not fit the resource, another holder has the lease, or a request with this `Idempotency-Key` is in progress."),
    (410, "Gone", "The resource is removed, where the request asks for that (`includeDeleted=true`); the history does not go back to the time in `at`; or changes after the `position` of a watch are not stored any more."),
    (412, "PreconditionFailed", "The resource is in another state than `If-Match` or `If-None-Match` demands: `ETag` names its state."),
    (413, "PayloadTooLarge", "The body is too large."),
    (415, "UnsupportedMediaType", "The encoding of the body, or the media type of a patch, is unsupported: `Accept-Encoding` or `Accept-Patch` names the supported ones."),
    (422, "UnprocessableEntity", "A child kind can be created below its parent only, or this `Idempotency-Key` was used for another request."),
    (429, "TooManyRequests", "The caller exceeds its rate limit. `Retry-After` says when to retry."),
    (500, "InternalServerError", "An error of the service; its log has the cause, under the same id."),
    (503, "ServiceUnavailable", "The database is unavailable, too many requests are in progress, or the service is starting. The request was not acknowledged."),
    (504, "GatewayTimeout", "The list exceeds the time of a request, or waited too long for other slow lists."),
];

/// The answers, their schemas and the headers of all answers.
pub(in crate::http) fn components(
    builder: ComponentsBuilder,
    registry: &EntityRegistry,
) -> ComponentsBuilder {
    let builder = builder
        .schema("Error", error())
        .schema_from::<ViolationView<'_>>()
        .schema_from::<ValidationErrorConstraint>();
    let headers = headers().into_iter();
    let builder = headers.fold(builder, |b, (name, header)| b.header(name, header));
    REFUSALS
        .iter()
        .fold(builder, |builder, (status, name, text)| {
            builder.response(*name, described(*status, text, registry))
        })
}

/// A problem. Its status is an integer without a format, as in the older document: `int` in Go, as `net/http` has it.
fn error() -> RefOr<Schema> {
    let mut schema = Body::schema();
    if let RefOr::T(Schema::Object(error)) = &mut schema
        && let Some(RefOr::T(Schema::Object(status))) = error.properties.get_mut("status")
    {
        status.format = None;
    }
    schema
}

/// Adds the request id and `Vary`, as in every answer with a body.
pub(in crate::http) fn with_headers(mut answer: ResponseBuilder) -> ResponseBuilder {
    for name in [X_REQUEST_ID, "Vary"] {
        answer = answer.header_ref(name, header(name));
    }
    answer
}

/// The tag of the resource that an answer shows.
pub(in crate::http) fn with_tag(answer: ResponseBuilder) -> ResponseBuilder {
    answer.header_ref(ETAG, header(ETAG))
}

/// Where a watch begins that misses nothing after the answer.
pub(in crate::http) fn with_position(answer: ResponseBuilder) -> ResponseBuilder {
    answer.header_ref(POSITION, header(POSITION))
}

/// Says that the answer may be that of an earlier request.
pub(in crate::http) fn with_replayed(answer: ResponseBuilder) -> ResponseBuilder {
    answer.header_ref(IDEMPOTENCY_REPLAYED, header(IDEMPOTENCY_REPLAYED))
}

/// Says why a report was not stored.
pub(in crate::http) fn with_warning(answer: ResponseBuilder) -> ResponseBuilder {
    answer.header_ref(WARNING, header(WARNING))
}

/// The id alone.
pub(in crate::http) fn with_request_id(answer: ResponseBuilder) -> ResponseBuilder {
    answer.header_ref(X_REQUEST_ID, header(X_REQUEST_ID))
}

fn header(name: &str) -> Ref {
    Ref::new(format!("#/components/headers/{name}"))
}

#[rustfmt::skip]
fn headers() -> [(&'static str, Header); 13] {
    use Type::{Integer, String};
    let header = |name, kind, text: &str, example: Value| {
        let header = HeaderBuilder::new().schema(Some(Object::with_type(kind)));
        (name, header.description(Some(text)).example(Some(example)).build())
    };
    [
        header("Accept-Encoding", String, "What a body may be packed as.", json!(UNDERSTOOD.join(", "))),
        header("Accept-Patch", String, "The media types that a patch may have.", json!(PatchFormat::media_types())),
        header("Allow", String, "The methods of the path.", json!("DELETE, GET, HEAD, PATCH")),
        header("ETag", String, "The state of the resource: for `If-Match` and `If-None-Match`.", json!("\"g1.r1\"")),
        header(POSITION, String, "Where a watch begins that misses nothing after this answer. Absent while the instance starts.", json!("0-7")),
        header("Idempotency-Replayed", String, "`true` where the answer is that of an earlier request with this `Idempotency-Key`.", json!("true")),
        header("RateLimit", String, "What the caller has left (`r`), and in how many seconds more comes back (`t`).", json!("\"caller\";r=0;t=1")),
        header("RateLimit-Policy", String, "How many requests a caller has (`q`) in how many seconds (`w`).", json!("\"caller\";q=20;w=2")),
        header("Retry-After", Integer, "When to come back, in seconds.", json!(5)),
        header("Vary", String, "What else the answer depends on.", json!("Authorization")),
        header(WARNING, String, "Why the report was not stored; absent from the answer to a stored one.", json!("299 - \"not stored: the stored report has a later observed_time\"")),
        header("WWW-Authenticate", String, "What is to be proven, and what is wrong with the token if there is one.", json!("Bearer realm=\"hyperfleet\"")),
        header(X_REQUEST_ID, String, "The id of the request: the one that was sent, if it is a sane one. It is in the log and in the audit trail, too.", json!(examples::REQUEST_ID)),
    ]
}

fn described(status: u16, text: &str, registry: &EntityRegistry) -> Response {
    let examples = examples_of(status, registry)
        .into_iter()
        .map(|(name, problem)| {
            let example = ExampleBuilder::new().summary(name);
            let example = example.value(Some(shown(&problem)));
            (name.replace(' ', "-"), example.build())
        });
    let content = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name("Error")))
        .examples_from_iter(examples)
        .build();
    let answer = empty_answer(text).content("application/problem+json", content);
    let more: &[&str] = match status {
        401 => &["WWW-Authenticate"],
        405 => &["Allow"],
        412 => &["ETag"],
        415 => &["Accept-Encoding", "Accept-Patch"],
        429 => &["RateLimit", "RateLimit-Policy", "Retry-After"],
        503 => &["Retry-After"],
        _ => &[],
    };
    let more = more.iter();
    more.fold(with_headers(answer), |answer, name| {
        answer.header_ref(*name, header(name))
    })
    .build()
}

/// Problems of a status, each with the name of its example.
fn examples_of(status: u16, registry: &EntityRegistry) -> Vec<(&'static str, Problem)> {
    let first = registry.entities().first();
    let kind = first.map_or_else(|| "Resource".to_owned(), |e| e.kind.clone());
    let id = "019b7868-8e00-7000-8000-000000000002".to_owned();
    let header = "X-Org".to_owned();
    let unknown = || AuthRefusal::Unidentified(IdentityFault::NotFound("email".to_owned()));
    match status {
        400 => bad_requests(registry),
        401 => vec![
            ("no token", AuthRefusal::Missing.into()),
            (
                "expired token",
                AuthRefusal::Invalid(TokenFault::Expired).into(),
            ),
            ("unknown identity", unknown().into()),
        ],
        403 => vec![
            ("no tenant", Denied::Missing { header }.into()),
            ("system identity", Denied::OnlyReports.into()),
        ],
        404 => vec![("no such resource", app::Error::NotFound { kind, id }.into())],
        410 => gone(registry),
        405 => vec![(
            "other methods",
            Problem::method_not_allowed("GET, HEAD, POST"),
        )],
        408 => vec![("slow body", Problem::slow_body())],
        409 => vec![
            ("name taken", app::Error::NameTaken { kind }.into()),
            ("key in use", app::Error::KeyInUse.into()),
            ("failed test", app::Error::Patch(failed_test()).into()),
            (
                "lease held",
                app::Error::LeaseHeld(examples::lease()).into(),
            ),
        ],
        412 => Vec::from_iter(precondition(kind, &id)),
        413 => vec![("too large", Problem::too_large())],
        415 => vec![
            ("unknown packing", Problem::packed("br", &UNDERSTOOD)),
            ("unknown patch", unsupported_patch("text/plain")),
        ],
        422 => child_kind(registry)
            .map(|problem| ("child kind", problem))
            .into_iter()
            .chain([("key reused", app::Error::KeyReused.into())])
            .collect(),
        429 => vec![("too many", Problem::too_many(1))],
        503 => vec![
            ("database away", unavailable("")),
            ("too much to do", Problem::busy()),
            ("starting", Problem::starting(None)),
            (
                "too many watches",
                Problem::no_watcher(WatcherRefusal::TooMany),
            ),
            ("stopping", Problem::no_watcher(WatcherRefusal::Stopping)),
        ],
        504 => vec![("slow list", app::Error::TooSlow.into())],
        _ => vec![("fault", Problem::internal(""))],
    }
}

fn failed_test() -> PatchConflict {
    PatchConflict {
        index: 0,
        operation: "test /labels/environment".to_owned(),
        reason: ConflictReason::TestFailed,
    }
}

fn gone(registry: &EntityRegistry) -> Vec<(&'static str, Problem)> {
    let first = registry.entities().first();
    let examples = first.and_then(|entity| Examples::new(registry, entity));
    let removed = examples.map(Examples::tombstone).and_then(|tombstone| {
        let removal = Views(registry).tombstone(&tombstone).ok()?;
        Some(removed(&tombstone, removal))
    });
    let since = examples::moment();
    let before = app::Error::BeforeHistory { since }.into();
    let removed = removed.map(|problem| ("removed", problem));
    removed
        .into_iter()
        .chain([
            ("before the history", before),
            ("position gone", app::Error::PositionGone.into()),
        ])
        .collect()
}

fn precondition(kind: String, id: &str) -> Option<(&'static str, Problem)> {
    let tag = EntityTag {
        generation: 2,
        revision: 5,
    };
    let id = ResourceId::parse(id)?;
    let failed = app::Error::Precondition { kind, id, tag };
    Some(("another state", failed.into()))
}

fn bad_requests(registry: &EntityRegistry) -> Vec<(&'static str, Problem)> {
    let param = |name: &str, value: &str| Params::new(vec![(name.to_owned(), value.to_owned())]);
    let body = |body: &[u8]| {
        wire::resource(body, Kinds::Any(registry))
            .err()
            .map(Problem::from)
    };
    let patch = |body: &[u8]| {
        let read = wire::patch(PatchFormat::Parts, body, None);
        read.err().map(Problem::from)
    };
    let size = param("size", "0").page().err();
    let search = param("search", "name =")
        .filter(ListFilterKind::Search)
        .err();
    let order = param("order", "nmae").order().err();
    let all = [
        ("several faults of a body", body(b"{\"name\": \"A\"}")),
        ("unreadable body", patch(b"{")),
        ("patch without a change", patch(b"{}")),
        ("parameter", size.map(Problem::from)),
        ("search", search.map(Problem::from)),
        ("order", order.map(Problem::from)),
    ];
    let all = all.into_iter();
    all.filter_map(|(name, problem)| Some((name, problem?)))
        .collect()
}

fn child_kind(registry: &EntityRegistry) -> Option<Problem> {
    let child = registry.entities().iter().find(|e| e.parent.is_some())?;
    let parent = registry.get(child.parent.as_deref()?)?;
    let error = app::Error::ChildKind {
        kind: child.kind.clone(),
        plural: child.plural.clone(),
        parent_plural: parent.plural.clone(),
    };
    Some(error.into())
}

fn shown(problem: &Problem) -> Value {
    let arrival = Arrival {
        path: format!("{BASE}/resources"),
        request_id: examples::REQUEST_ID.to_owned(),
        at: examples::moment(),
    };
    serde_json::to_value(Body::of(problem, &arrival)).unwrap_or_default()
}
