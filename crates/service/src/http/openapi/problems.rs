//! Problems as answers of the document. Their examples are made by the code that makes real ones.

use serde_json::{Map, Value, json};
use strum::VariantNames as _;

use crate::app;
use crate::http::problem::{
    Body, forbidden, removed, unauthenticated, unavailable, unsupported_patch,
};
use crate::wire::schemas::derived;
use crate::wire::schemas::examples::{self, Examples};
use crate::wire::{self, BASE, Kinds, Params, PatchFormat, Views};
use hyperfleet_auth::{AuthRefusal, IdentityError, TokenError};
use hyperfleet_domain::patch::{ConflictReason, PatchConflict};
use hyperfleet_domain::precondition::EntityTag;
use hyperfleet_domain::tenancy::TenantRefusal;
use hyperfleet_domain::{Constraint, EntityRegistry, ListFilterKind, ResourceId};
use hyperfleet_server_kit::http::{Arrival, Problem, UNDERSTOOD, WatcherRefusal};
use hyperfleet_server_kit::openapi::{RefusedStatus, reference};

/// Header of every answer.
pub(in crate::http) const X_REQUEST_ID: &str = "X-Request-Id";

/// Every status that is not a success.
#[rustfmt::skip]
pub(in crate::http) const REFUSALS: [RefusedStatus; 16] = [
    (400, "BadRequest", "A parameter or the body is invalid or unreadable."),
    (401, "Unauthorized", "The token is missing or invalid, or, for writes, does not identify the caller. Only if the service is configured to check tokens."),
    (403, "Forbidden", "The headers do not name the tenant of the request, or the caller is a system identity, which can only read and report."),
    (404, "NotFound", "The resource does not exist, or nobody holds the lease."),
    (405, "MethodNotAllowed", "The path does not support the method. `Allow` lists the supported methods."),
    (408, "RequestTimeout", "The body did not arrive in time."),
    (409, "Conflict", "The name is in use, the state of the resource does not allow the request, an operation of a patch does not apply to the resource, another holder has the lease, or a request with this `Idempotency-Key` is in progress."),
    (410, "Gone", "The resource was removed (only with `includeDeleted=true`), the history does not reach back to the time in `at`, or changes after the `position` of a watch are no longer stored."),
    (412, "PreconditionFailed", "The state of the resource does not meet `If-Match` or `If-None-Match`. `ETag` identifies its state."),
    (413, "PayloadTooLarge", "The body is too large."),
    (415, "UnsupportedMediaType", "The encoding of the body or the media type of a patch is not supported. `Accept-Encoding` or `Accept-Patch` lists the supported values."),
    (422, "UnprocessableEntity", "Resources of this kind can be created only below their parent, or this `Idempotency-Key` was used for another request."),
    (429, "TooManyRequests", "The caller exceeds its rate limit. `Retry-After` says when to retry."),
    (500, "InternalServerError", "Internal error. The log of the service contains the cause, under the id of the request."),
    (503, "ServiceUnavailable", "The database is unavailable, too many requests are in progress, or the service is starting. The request was not acknowledged."),
    (504, "GatewayTimeout", "The list took too long, or waited too long for other slow lists."),
];

/// The schemas of problems.
pub(in crate::http) fn schemas() -> Map<String, Value> {
    let mut all = Map::new();
    derived::<Body<'_>>(&mut all);
    // An integer without a format, as in the older document: `int` in Go, as `net/http` has it.
    all["Error"]["properties"]["status"] =
        json!({"type": "integer", "description": "HTTP status code."});
    all["ValidationErrorConstraint"] = json!({"type": "string", "enum": Constraint::VARIANTS});
    all
}

/// The headers of all answers.
#[rustfmt::skip]
pub(in crate::http) fn headers() -> Map<String, Value> {
    let text = |name: &str, text: &str, example: &str| (name.to_owned(), json!({"description": text, "schema": {"type": "string"}, "example": example}));
    let seconds = json!({"description": "Time after which to retry, in seconds.", "schema": {"type": "integer"}, "example": 5});
    Map::from_iter([
        text("Accept-Encoding", "Supported encodings of a body.", &UNDERSTOOD.join(", ")),
        text("Accept-Patch", "Supported media types of a patch.", &PatchFormat::media_types()),
        text("Allow", "Supported methods of the path.", "DELETE, GET, HEAD, PATCH"),
        text("ETag", "Tag of the resource's state, for `If-Match` and `If-None-Match`.", "\"g1.r1\""),
        text("Hyperfleet-Position", "Resume position: a watch from here misses nothing after this response. Absent while the instance starts.", "0-7"),
        text("Idempotency-Replayed", "`true` if this is the response to an earlier request with this `Idempotency-Key`.", "true"),
        text("RateLimit", "Remaining requests of the caller (`r`), and seconds until more are available (`t`).", "\"caller\";r=0;t=1"),
        text("RateLimit-Policy", "Quota of requests (`q`) in a window of seconds (`w`).", "\"caller\";q=20;w=2"),
        ("Retry-After".to_owned(), seconds),
        text("Vary", "Request headers that the response depends on.", "Authorization"),
        text("Warning", "Why the report was not stored. Absent if it was stored.", "299 - \"not stored: the stored report has a later observed_time\""),
        text("WWW-Authenticate", "The required authentication and, for an invalid token, the error.", "Bearer realm=\"hyperfleet\""),
        text(X_REQUEST_ID, "Id of the request: the id that the client sent, if it is valid, or a new one. Log and audit trail contain the same id.", examples::REQUEST_ID),
    ])
}

/// The answers, by their names.
pub(in crate::http) fn responses(registry: &EntityRegistry) -> Map<String, Value> {
    let all = REFUSALS.iter();
    all.map(|(status, name, text)| ((*name).to_owned(), response(*status, text, registry)))
        .collect()
}

fn response(status: u16, text: &str, registry: &EntityRegistry) -> Value {
    let examples = examples_of(status, registry).into_iter();
    let examples = examples.map(|(name, problem)| {
        let example = json!({"summary": name, "value": example_body(&problem)});
        (name.replace(' ', "-"), example)
    });
    let more: &[&str] = match status {
        401 => &["WWW-Authenticate"],
        405 => &["Allow"],
        412 => &["ETag"],
        415 => &["Accept-Encoding", "Accept-Patch"],
        429 => &["RateLimit", "RateLimit-Policy", "Retry-After"],
        503 => &["Retry-After"],
        _ => &[],
    };
    let headers = [X_REQUEST_ID, "Vary"].iter().chain(more);
    let headers = headers.map(|name| ((*name).to_owned(), reference("headers", name)));
    json!({
        "description": text,
        "headers": headers.collect::<Map<_, _>>(),
        "content": {"application/problem+json": {
            "schema": reference("schemas", "Error"), "examples": examples.collect::<Map<_, _>>(),
        }},
    })
}

/// Problems of a status, each with the name of its example.
#[rustfmt::skip]
fn examples_of(status: u16, registry: &EntityRegistry) -> Vec<(&'static str, Problem)> {
    use AuthRefusal as Auth;
    let kind = registry.entities().first().map_or_else(|| "Resource".to_owned(), |e| e.kind.clone());
    let id = "019b7868-8e00-7000-8000-000000000002";
    let all: Vec<(_, Option<Problem>)> = match status {
        400 => bad_requests(registry),
        401 => vec![
            ("no token", Some(unauthenticated(&Auth::Missing))),
            ("expired token", Some(unauthenticated(&Auth::Invalid(TokenError::Expired)))),
            ("unknown identity", Some(unauthenticated(&Auth::Unidentified(IdentityError::NotFound("email".to_owned()))))),
        ],
        403 => vec![
            ("no tenant", Some(forbidden(&TenantRefusal::Missing { header: "X-Org".to_owned() }))),
            ("system identity", Some(forbidden(&TenantRefusal::OnlyReports))),
        ],
        404 => vec![("no such resource", Some(app::Error::NotFound { kind, id: id.to_owned() }.into()))],
        405 => vec![("other methods", Some(Problem::method_not_allowed("GET, HEAD, POST")))],
        408 => vec![("slow body", Some(Problem::slow_body()))],
        409 => vec![
            ("name taken", Some(app::Error::NameTaken { kind }.into())),
            ("key in use", Some(app::Error::KeyInUse.into())),
            ("failed test", Some(app::Error::Patch(failed_test()).into())),
            ("lease held", Some(app::Error::LeaseHeld(examples::lease()).into())),
        ],
        410 => vec![
            ("removed", tombstone(registry)),
            ("before the history", Some(app::Error::BeforeHistory { since: examples::moment() }.into())),
            ("position gone", Some(app::Error::PositionGone.into())),
        ],
        412 => {
            let tag = EntityTag { generation: 2, revision: 5 };
            let failed = |id| app::Error::Precondition { kind, id, tag }.into();
            vec![("another state", ResourceId::parse(id).map(failed))]
        }
        413 => vec![("too large", Some(Problem::too_large()))],
        415 => vec![
            ("unknown packing", Some(Problem::packed("br", &UNDERSTOOD))),
            ("unknown patch", Some(unsupported_patch("text/plain"))),
        ],
        422 => vec![("child kind", child_kind(registry)), ("key reused", Some(app::Error::KeyReused.into()))],
        429 => vec![("too many", Some(Problem::too_many(1)))],
        503 => vec![
            ("database away", Some(unavailable(""))),
            ("too much to do", Some(Problem::busy())),
            ("starting", Some(Problem::starting(None))),
            ("too many watches", Some(Problem::no_watcher(WatcherRefusal::TooMany))),
            ("stopping", Some(Problem::no_watcher(WatcherRefusal::Stopping))),
        ],
        504 => vec![("slow list", Some(app::Error::TooSlow.into()))],
        _ => vec![("fault", Some(Problem::internal("")))],
    };
    all.into_iter().filter_map(|(name, problem)| Some((name, problem?))).collect()
}

fn failed_test() -> PatchConflict {
    PatchConflict {
        index: 0,
        operation: "test /labels/environment".to_owned(),
        reason: ConflictReason::TestFailed,
    }
}

fn tombstone(registry: &EntityRegistry) -> Option<Problem> {
    let tombstone = Examples::new(registry, registry.entities().first()?)?.tombstone();
    let removal = Views(registry).tombstone(&tombstone).ok()?;
    Some(removed(&tombstone, removal))
}

#[rustfmt::skip]
fn bad_requests(registry: &EntityRegistry) -> Vec<(&'static str, Option<Problem>)> {
    let param = |name: &str, value: &str| Params::new(vec![(name.to_owned(), value.to_owned())]);
    let patch = |body: &[u8]| wire::patch(PatchFormat::Parts, body, None).err().map(Problem::from);
    vec![
        ("several faults of a body", wire::resource(b"{\"name\": \"A\"}", Kinds::Any(registry)).err().map(Problem::from)),
        ("unreadable body", patch(b"{")),
        ("patch without a change", patch(b"{}")),
        ("parameter", param("size", "0").page().err().map(Problem::from)),
        ("search", param("search", "name =").filter(ListFilterKind::Search).err().map(Problem::from)),
        ("order", param("order", "nmae").order().err().map(Problem::from)),
    ]
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

fn example_body(problem: &Problem) -> Value {
    let arrival = Arrival {
        path: format!("{BASE}/resources"),
        request_id: examples::REQUEST_ID.to_owned(),
        at: examples::moment(),
    };
    serde_json::to_value(Body::of(problem, &arrival)).unwrap_or_default()
}
