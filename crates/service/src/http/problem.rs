//! Errors as clients see them: RFC 9457 problems, one table from error to problem.

use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderName, HeaderValue};
use actix_web::{Error, HttpResponse};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::app::{self, WatchEnd};
use crate::wire::{BodyError, ParamsError, PatchFormat, schemas};
use hyperfleet_auth::{AuthRefusal, TokenError};
use hyperfleet_domain::history::Tombstone;
use hyperfleet_domain::page::InvalidOrder;
use hyperfleet_domain::tenancy::TenantRefusal;
use hyperfleet_domain::tsl::SearchError;
use hyperfleet_domain::{Constraint, StoredResource, Violation, Violations, excerpt, moment};
use hyperfleet_server_kit::causes::chain;
use hyperfleet_server_kit::http::{
    Arrival, ErrorResponse, FOR_ITS_CALLER, Problem, ProblemKind, Wording,
};

/// Prefix of the URIs of problem types.
const TYPES: &str = "https://api.hyperfleet.io/errors/";
/// Prefix of every code, in responses and in the log.
const CODES: &str = "HYPERFLEET-";
/// Delay after which a client should retry while the database is unavailable, in seconds.
const RETRY_AFTER_SECONDS: u64 = 5;
/// The media types that a PATCH may have (RFC 5789, section 3.1).
const ACCEPT_PATCH: HeaderName = HeaderName::from_static("accept-patch");
/// How long a client should wait for another request with its key to end, in seconds.
const KEY_SECONDS: u64 = 1;

#[rustfmt::skip]
mod kinds {
    use super::{ProblemKind, StatusCode};

    pub(super) const INVALID: &ProblemKind = &ProblemKind::new(StatusCode::BAD_REQUEST, "VAL-000", "validation-error", "Validation Failed");
    pub(super) const CHILD_KIND: &ProblemKind = &ProblemKind::new(StatusCode::UNPROCESSABLE_ENTITY, "VAL-000", "validation-error", "Validation Failed");
    pub(super) const BAD_REQUEST: &ProblemKind = &ProblemKind::new(StatusCode::BAD_REQUEST, "VAL-005", "bad-request", "Bad Request");
    pub(super) const NO_CREDENTIALS: &ProblemKind = &ProblemKind::new(StatusCode::UNAUTHORIZED, "AUT-001", "authentication-error", "Authentication Required");
    pub(super) const BAD_CREDENTIALS: &ProblemKind = &ProblemKind::new(StatusCode::UNAUTHORIZED, "AUT-002", "authentication-error", "Invalid Credentials");
    pub(super) const EXPIRED: &ProblemKind = &ProblemKind::new(StatusCode::UNAUTHORIZED, "AUT-003", "authentication-error", "Invalid Token");
    pub(super) const FORBIDDEN: &ProblemKind = &ProblemKind::new(StatusCode::FORBIDDEN, "AUZ-001", "permission-denied", "Permission Denied");
    pub(super) const NOT_FOUND: &ProblemKind = &ProblemKind::new(StatusCode::NOT_FOUND, "NTF-001", "not-found", "Resource Not Found");
    pub(super) const TAKEN: &ProblemKind = &ProblemKind::new(StatusCode::CONFLICT, "CNF-001", "conflict", "Resource Conflict");
    pub(super) const VERSION: &ProblemKind = &ProblemKind::new(StatusCode::PRECONDITION_FAILED, "CNF-002", "conflict", "Version Conflict");
    pub(super) const STATE: &ProblemKind = &ProblemKind::new(StatusCode::CONFLICT, "CNF-003", "conflict", "State Conflict");
    pub(super) const KEY_IN_USE: &ProblemKind = &ProblemKind::new(StatusCode::CONFLICT, "CNF-004", "conflict", "Request In Progress");
    pub(super) const KEY_REUSED: &ProblemKind = &ProblemKind::new(StatusCode::UNPROCESSABLE_ENTITY, "VAL-009", "validation-error", "Idempotency Key Reused");
    pub(super) const PATCH_FORMAT: &ProblemKind = &ProblemKind::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "VAL-010", "unsupported-media-type", "Unsupported Media Type");
    pub(super) const PATCH_CONFLICT: &ProblemKind = &ProblemKind::new(StatusCode::CONFLICT, "CNF-005", "conflict", "Patch Conflict");
    pub(super) const POSITION_GONE: &ProblemKind = &ProblemKind::new(StatusCode::GONE, "WCH-001", "watch-position-gone", "Watch Position Gone");
    pub(super) const BEHIND: &ProblemKind = &ProblemKind::new(StatusCode::SERVICE_UNAVAILABLE, "WCH-002", "watch-behind", "Watch Too Slow");
    pub(super) const BEFORE_HISTORY: &ProblemKind = &ProblemKind::new(StatusCode::GONE, "HST-001", "history-not-kept", "History Not Kept");
    pub(super) const NO_GENERATION: &ProblemKind = &ProblemKind::new(StatusCode::NOT_FOUND, "NTF-002", "generation-not-found", "Generation Not Found");
    pub(super) const GENERATION_NOT_KEPT: &ProblemKind = &ProblemKind::new(StatusCode::NOT_FOUND, "HST-002", "generation-not-kept", "Generation Not Kept");
    pub(super) const REMOVED: &ProblemKind = &ProblemKind::new(StatusCode::GONE, "HST-003", "resource-removed", "Resource Removed");
    pub(super) const TOO_SLOW: &ProblemKind = &ProblemKind::new(StatusCode::GATEWAY_TIMEOUT, "SVC-002", "service-unavailable", "Service Timeout");
}

/// A problem (RFC 9457). Members marked `required = false` are always present, except `errors`: the older document
/// calls them optional, and clients' types are generated from it.
#[derive(Serialize, ToSchema)]
#[schema(as = Error, description = "An error (RFC 9457, application/problem+json).")]
pub(super) struct Body<'a> {
    /// Stable code, for programs.
    #[schema(required = false, example = "HYPERFLEET-VAL-000")]
    code: String,
    /// Description of this occurrence, for people.
    #[schema(required = false)]
    detail: &'a str,
    /// One entry for each violation in the body or the parameters, at most 50.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(value_type = Vec<ViolationView<'_>>)]
    errors: &'a [Value],
    /// The path of the request.
    #[schema(required = false)]
    instance: &'a str,
    /// The tombstone of a removed resource: who removed it, when and why, and its last state.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schemas::Tombstone>)]
    removal: Option<&'a Value>,
    /// HTTP status code.
    #[schema(value_type = i32)]
    status: u16,
    /// Time of the error.
    #[schema(required = false, value_type = DateTime<Utc>)]
    timestamp: String,
    /// Kind of problem, for people.
    title: &'static str,
    /// The id of the request, as in `X-Request-Id` and in the log.
    #[schema(required = false)]
    trace_id: &'a str,
    /// Kind of problem, as a URI.
    #[schema(example = "https://api.hyperfleet.io/errors/validation-error")]
    r#type: String,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ValidationError, description = "A violation of a rule by an input.")]
pub(super) struct ViolationView<'a> {
    /// The kind of the broken rule.
    #[schema(required = false, value_type = ValidationErrorConstraint)]
    constraint: &'static str,
    /// Dotted path of the member, or name of the parameter.
    field: &'a str,
    /// What is wrong, for people.
    message: &'a str,
    /// The invalid value, if it helps.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a Value>,
}

/// The kind of a rule, by its name; `openapi::problems` has the names.
#[derive(ToSchema)]
pub(super) struct ValidationErrorConstraint;

impl<'a> Body<'a> {
    /// The body that clients see.
    pub(super) fn of(problem: &'a Problem, arrival: &'a Arrival) -> Self {
        Self {
            code: format!("{CODES}{}", problem.kind.code),
            detail: &problem.detail,
            errors: &problem.errors,
            instance: &arrival.path,
            removal: problem.about.as_deref(),
            status: problem.kind.status.as_u16(),
            timestamp: moment::rfc3339(arrival.at),
            title: problem.kind.title,
            trace_id: &arrival.request_id,
            r#type: format!("{TYPES}{}", problem.kind.slug),
        }
    }
}

/// How the API writes errors.
pub(super) const WORDING: Wording = Wording {
    trims_slash: true,
    write,
};

fn write(error: &Error, arrival: &Arrival) -> ErrorResponse {
    let problem = Problem::of(error);
    let mut response = HttpResponse::build(problem.kind.status);
    response.insert_header((header::VARY, HeaderValue::from_static("Authorization")));
    response.insert_header(FOR_ITS_CALLER);
    response.insert_header((header::CONTENT_TYPE, "application/problem+json"));
    if [ProblemKind::NO_PATH, ProblemKind::NO_METHOD].contains(&problem.kind) {
        // As the router of the Go HyperFleet API does, only for these two problems.
        response.insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"));
    }
    for (name, value) in &problem.headers {
        response.insert_header((name.clone(), value.as_str()));
    }
    let body = Body::of(&problem, arrival);
    ErrorResponse {
        response: response.body(serde_json::to_vec(&body).unwrap_or_default()),
        code: Some(body.code),
        reason: problem.reason().map(ToOwned::to_owned),
        cause: problem.cause,
    }
}

/// The body of a patch has a media type that [`PatchFormat`] does not have.
pub(super) fn unsupported_patch(content_type: &str) -> Problem {
    let types = PatchFormat::media_types();
    let detail = format!(
        "The Content-Type of a patch is {}, understood are {types}",
        excerpt(content_type)
    );
    Problem::new(kinds::PATCH_FORMAT, detail).with_header(ACCEPT_PATCH, types)
}

/// Why the service ends a watch.
pub(super) fn watch_ended(end: WatchEnd) -> Problem {
    match end {
        WatchEnd::Gone => app::Error::PositionGone.into(),
        WatchEnd::Behind => Problem::new(
            kinds::BEHIND,
            "this watch takes changes more slowly than they happen: continue after the last position",
        ),
        WatchEnd::Unauthorized | WatchEnd::Failed => Problem::internal("a watch failed"),
    }
}

/// A problem as the last event of a watch.
pub(super) fn event_of(problem: &Problem) -> Value {
    json!({
        "code": format!("{CODES}{}", problem.kind.code),
        "detail": problem.detail,
        "status": problem.kind.status.as_u16(),
        "title": problem.kind.title,
        "type": format!("{TYPES}{}", problem.kind.slug),
    })
}

/// The resource is removed; `removal` is what is known of that.
pub(super) fn removed(tombstone: &Tombstone, removal: Value) -> Problem {
    let StoredResource { kind, name, .. } = &tombstone.last;
    let at = moment::rfc3339(tombstone.removed_at);
    let detail = format!("{kind} '{name}' was removed at {at}");
    Problem {
        about: Some(Box::new(removal)),
        ..Problem::new(kinds::REMOVED, detail)
    }
}

/// The database is unavailable.
pub(super) fn unavailable(cause: impl Into<String>) -> Problem {
    Problem::new(ProblemKind::UNAVAILABLE, "Database connection unavailable")
        .retry_after(RETRY_AFTER_SECONDS)
        .with_cause(cause)
}

/// The caller is not authenticated; the response says what is missing (RFC 6750 §3): a token, or a valid one.
fn challenge(kind: &'static ProblemKind, detail: String, error: Option<&str>) -> Problem {
    let realm = "Bearer realm=\"hyperfleet\"";
    let challenge = match error {
        None => realm.to_owned(),
        Some(error) => format!("{realm}, error=\"invalid_token\", error_description=\"{error}\""),
    };
    Problem::new(kind, detail).with_header(header::WWW_AUTHENTICATE, challenge)
}

/// A single violation is the detail itself.
fn invalid_body(violations: &Violations) -> Problem {
    let detail = match violations.as_slice() {
        [one] => &one.message,
        _ => "Request body validation failed",
    };
    with_errors(Problem::new(kinds::INVALID, detail), violations)
}

fn with_errors(mut problem: Problem, violations: &Violations) -> Problem {
    let views = violations.as_slice().iter().map(|violation| ViolationView {
        constraint: violation.constraint.into_str(),
        field: &violation.field,
        message: &violation.message,
        value: violation.value.as_ref(),
    });
    problem.errors = views.map(|view| json!(view)).collect();
    problem
}

/// A parameter names a field that resources do not have, which the older service's message does not say.
fn naming(problem: Problem, parameter: &str, field: &str) -> Problem {
    let message = format!("there is no field {field}");
    let violation = Violation::new(parameter, Constraint::Enum, message).with_value(field);
    with_errors(problem, &violation.into())
}

impl From<BodyError> for Problem {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::Malformed(detail) => Self::new(ProblemKind::MALFORMED, detail),
            BodyError::NothingToUpdate => Self::new(
                kinds::BAD_REQUEST,
                "at least one field must be provided for update",
            ),
            BodyError::Invalid(violations) => invalid_body(&violations),
        }
    }
}

impl From<ParamsError> for Problem {
    fn from(error: ParamsError) -> Self {
        match error {
            ParamsError::Order(parameter, order) => {
                let problem = Self::new(kinds::BAD_REQUEST, order.to_string());
                match order {
                    InvalidOrder::Field(name) => naming(problem, parameter, &name),
                    InvalidOrder::Syntax(_)
                    | InvalidOrder::Direction(_)
                    | InvalidOrder::TooMany => problem,
                }
            }
            ParamsError::Fields(fields) => Self::new(kinds::INVALID, fields.to_string()),
            ParamsError::Search(search) => {
                let problem = Self::new(kinds::BAD_REQUEST, search.to_string());
                match search {
                    SearchError::UnknownField(name) => naming(problem, "search", &name),
                    SearchError::TooLong | SearchError::Syntax { .. } | SearchError::Meaning(_) => {
                        problem
                    }
                }
            }
            ParamsError::Invalid(violations) => {
                let problem = Self::new(kinds::INVALID, "Invalid query parameters");
                with_errors(problem, &violations)
            }
        }
    }
}

/// No caller is known.
pub(super) fn unauthenticated(refusal: &AuthRefusal) -> Problem {
    let (kind, error) = match refusal {
        AuthRefusal::Missing => (kinds::NO_CREDENTIALS, None),
        // A caller with another scheme has sent no token either.
        AuthRefusal::NotBearer => (kinds::BAD_CREDENTIALS, None),
        AuthRefusal::Invalid(TokenError::Expired) => {
            (kinds::EXPIRED, Some("the token has expired"))
        }
        AuthRefusal::Invalid(_) => (kinds::BAD_CREDENTIALS, Some("the token is invalid")),
        AuthRefusal::Unidentified(_) => (kinds::NO_CREDENTIALS, Some("unknown identity")),
    };
    challenge(kind, refusal.to_string(), error)
}

/// The caller may not do this.
pub(super) fn forbidden(refusal: &TenantRefusal) -> Problem {
    Problem::new(kinds::FORBIDDEN, refusal.to_string())
}

/// The table from errors of use cases to problems. A new `app::Error` does not compile until it has a row.
impl From<app::Error> for Problem {
    fn from(error: app::Error) -> Self {
        use app::Error as E;
        let of = |kind| Self::new(kind, error.to_string());
        match &error {
            E::NotFound { .. } | E::NothingToDelete { .. } | E::NoLease { .. } => {
                of(kinds::NOT_FOUND)
            }
            E::Invalid(violations) => invalid_body(violations),
            E::UnknownKind(_) | E::UnknownReference { .. } | E::Report(_) | E::AheadOfTrail => {
                of(kinds::INVALID)
            }
            E::ChildKind { .. } => of(kinds::CHILD_KIND),
            E::NameTaken { .. } => of(kinds::TAKEN),
            E::Refused(_) | E::HeldBack { .. } | E::LeaseHeld(_) => of(kinds::STATE),
            E::Patch(_) => of(kinds::PATCH_CONFLICT),
            E::Precondition { tag, .. } | E::ExcludedState { tag, .. } => {
                of(kinds::VERSION).with_header(header::ETAG, tag.to_string())
            }
            E::KeyReused => of(kinds::KEY_REUSED),
            E::KeyInUse => of(kinds::KEY_IN_USE).retry_after(KEY_SECONDS),
            E::Unavailable(_) => unavailable(chain(&error)),
            E::Contended(_) => of(ProblemKind::UNAVAILABLE)
                .retry_after(RETRY_AFTER_SECONDS)
                .with_cause(chain(&error)),
            E::BeforeHistory { .. } => of(kinds::BEFORE_HISTORY),
            E::NoSuchGeneration { .. } => of(kinds::NO_GENERATION),
            E::GenerationNotStored { .. } => of(kinds::GENERATION_NOT_KEPT),
            E::PositionGone => of(kinds::POSITION_GONE),
            E::TooSlow => of(kinds::TOO_SLOW),
            E::Storage(_) | E::Answer(_) => Self::internal(chain(&error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use actix_web::middleware::from_fn;
    use actix_web::web::Data;
    use actix_web::{App, HttpServer, web};

    use super::*;
    use hyperfleet_server_kit::clock::Clock;
    use hyperfleet_server_kit::http::frame;
    use hyperfleet_testkit::http_client;

    async fn panics(path: web::Path<String>) -> HttpResponse {
        assert_eq!(*path, "good", "a secret");
        HttpResponse::Ok().finish()
    }

    #[tokio::test]
    async fn a_panic_is_a_problem_that_hides_its_cause_and_the_server_goes_on() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let app = || {
            App::new()
                .app_data(Data::new(Clock::new(|| chrono::DateTime::UNIX_EPOCH)))
                .route("/{path}", web::get().to(panics))
                .wrap(from_fn(|request, next| frame(|_| WORDING, request, next)))
        };
        let server = HttpServer::new(app).workers(1).disable_signals();
        tokio::spawn(server.listen(listener).unwrap().run());
        // A single connection, which must also survive the panic.
        let client = http_client();
        for round in ["first", "second"] {
            let url = format!("{base}/bad");
            let request = client.get(url).header("x-request-id", round);
            let answer = request.send().await.unwrap();
            assert_eq!(answer.status(), 500);
            assert_eq!(answer.headers()["content-type"], "application/problem+json");
            assert_eq!(answer.headers()["x-request-id"], round);
            let body: Value = answer.json().await.unwrap();
            let expected = serde_json::json!({
                "code": "HYPERFLEET-INT-001",
                "detail": "An unexpected error happened, please check the log of the service for details",
                "instance": "/bad",
                "status": 500,
                "timestamp": "1970-01-01T00:00:00Z",
                "title": "Internal Server Error",
                "trace_id": round,
                "type": "https://api.hyperfleet.io/errors/internal-error",
            });
            assert_eq!(body, expected);
            let good = client.get(format!("{base}/good")).send().await.unwrap();
            assert_eq!(good.status(), 200);
        }
    }
}
