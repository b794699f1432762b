//! Errors as clients see them: RFC 9457 problems, one table of what each error becomes.

use std::fmt;

use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderName, HeaderValue};
use actix_web::{HttpResponse, ResponseError};
use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{Object, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use super::caching;
use crate::app;
use crate::auth::Refusal;
use crate::domain::tenancy::Denied;
use crate::domain::{Constraint, Violation, Violations, moment, shown};
use crate::kit::causes::chain;
use crate::wire::{BodyFault, ParamsFault};

/// Largest request body, in bytes, before and after decompression.
pub(super) const BODY_BYTES_MAX: usize = 1024 * 1024;
/// What the URIs of problem types begin with.
const TYPES: &str = "https://api.hyperfleet.io/errors/";
/// How long a client should wait for the database to come back, in seconds.
const RETRY_AFTER_SECONDS: u32 = 5;
/// How long a client should wait for others' requests to end, in seconds.
const BUSY_SECONDS: u32 = 1;

/// One row of the table of problems: status, code, last part of the type, title.
type Sort = (StatusCode, &'static str, &'static str, &'static str);

#[rustfmt::skip]
mod sorts {
    use super::{Sort, StatusCode};

    pub(super) const INVALID: Sort = (StatusCode::BAD_REQUEST, "VAL-000", "validation-error", "Validation Failed");
    pub(super) const CHILD_KIND: Sort = (StatusCode::UNPROCESSABLE_ENTITY, "VAL-000", "validation-error", "Validation Failed");
    pub(super) const BAD_REQUEST: Sort = (StatusCode::BAD_REQUEST, "VAL-005", "bad-request", "Bad Request");
    pub(super) const MALFORMED: Sort = (StatusCode::BAD_REQUEST, "VAL-006", "malformed-request", "Malformed Request");
    pub(super) const PACKED: Sort = (StatusCode::UNSUPPORTED_MEDIA_TYPE, "VAL-006", "malformed-request", "Malformed Request");
    pub(super) const NO_CREDENTIALS: Sort = (StatusCode::UNAUTHORIZED, "AUT-001", "authentication-error", "Authentication Required");
    pub(super) const BAD_CREDENTIALS: Sort = (StatusCode::UNAUTHORIZED, "AUT-002", "authentication-error", "Invalid Credentials");
    pub(super) const EXPIRED: Sort = (StatusCode::UNAUTHORIZED, "AUT-003", "authentication-error", "Invalid Token");
    pub(super) const FORBIDDEN: Sort = (StatusCode::FORBIDDEN, "AUZ-001", "permission-denied", "Permission Denied");
    pub(super) const NO_METHOD: Sort = (StatusCode::METHOD_NOT_ALLOWED, "VAL-008", "method-not-allowed", "Method Not Allowed");
    pub(super) const NO_PATH: Sort = (StatusCode::NOT_FOUND, "NTF-000", "not-found", "Endpoint Not Found");
    pub(super) const NOT_FOUND: Sort = (StatusCode::NOT_FOUND, "NTF-001", "not-found", "Resource Not Found");
    pub(super) const TAKEN: Sort = (StatusCode::CONFLICT, "CNF-001", "conflict", "Resource Conflict");
    pub(super) const STATE: Sort = (StatusCode::CONFLICT, "CNF-003", "conflict", "State Conflict");
    pub(super) const TOO_MANY: Sort = (StatusCode::TOO_MANY_REQUESTS, "LMT-001", "rate-limit", "Rate Limit Exceeded");
    pub(super) const SLOW_BODY: Sort = (StatusCode::REQUEST_TIMEOUT, "LMT-003", "request-timeout", "Request Timeout");
    pub(super) const TOO_LARGE: Sort = (StatusCode::PAYLOAD_TOO_LARGE, "LMT-002", "payload-too-large", "Payload Too Large");
    pub(super) const INTERNAL: Sort = (StatusCode::INTERNAL_SERVER_ERROR, "INT-001", "internal-error", "Internal Server Error");
    pub(super) const TOO_SLOW: Sort = (StatusCode::GATEWAY_TIMEOUT, "SVC-002", "service-unavailable", "Service Timeout");
    pub(super) const UNAVAILABLE: Sort = (StatusCode::SERVICE_UNAVAILABLE, "SVC-001", "service-unavailable", "Service Unavailable");
}

/// Where and when a problem happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// The path of the request.
    pub(super) path: String,
    /// Its id.
    pub(super) request_id: String,
    /// When it came in.
    pub(super) at: DateTime<Utc>,
}

/// The body of every response that is not a success.
#[derive(Debug, Clone)]
pub(super) struct Problem(Box<Parts>);

#[derive(Debug, Clone)]
struct Parts {
    sort: Sort,
    /// This occurrence. Never the text of an internal failure.
    detail: String,
    errors: Vec<Violation>,
    /// Headers that this problem comes with.
    headers: Vec<(HeaderName, String)>,
    /// The full chain of causes, for the log alone.
    cause: Option<String>,
    place: Option<Place>,
}

/// A problem (RFC 9457). Members marked `required = false` are always there, too, but for `errors`:
/// the older document calls them optional, and clients' types are generated from it.
#[derive(Serialize, ToSchema)]
#[schema(as = Error, description = "What went wrong (RFC 9457, application/problem+json).")]
pub(super) struct Body<'a> {
    /// Stable: what programs match on.
    #[schema(required = false, example = "HYPERFLEET-VAL-000")]
    code: String,
    /// This occurrence, for people.
    #[schema(required = false)]
    detail: &'a str,
    /// One entry for each fault of a body or of parameters, 50 at most.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<ViolationView<'a>>,
    /// The path of the request.
    #[schema(required = false)]
    instance: &'a str,
    /// The status of the answer.
    #[schema(value_type = i32)]
    status: u16,
    /// When it happened.
    #[schema(required = false, value_type = DateTime<Utc>)]
    timestamp: String,
    /// The sort of problem, for people.
    title: &'static str,
    /// The id of the request, as in `X-Request-Id` and in the log.
    #[schema(required = false)]
    trace_id: &'a str,
    /// The sort of problem, as a URI.
    #[schema(example = "https://api.hyperfleet.io/errors/validation-error")]
    r#type: String,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ValidationError, description = "One fault of an input.")]
pub(super) struct ViolationView<'a> {
    /// The kind of rule that is broken.
    #[schema(required = false, value_type = ValidationErrorConstraint)]
    constraint: &'static str,
    /// Dotted path of the member, or name of the parameter.
    field: &'a str,
    /// What is wrong, for people.
    message: &'a str,
    /// The offending value, where showing it helps.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    value: Option<&'a Value>,
}

/// The name of a kind of rule.
pub(super) struct ValidationErrorConstraint;

impl ToSchema for ValidationErrorConstraint {}

impl PartialSchema for ValidationErrorConstraint {
    fn schema() -> RefOr<Schema> {
        let mut schema = Object::with_type(Type::String);
        let names = Constraint::ALL.map(|constraint| json!(constraint.as_str()));
        schema.enum_values = Some(names.to_vec());
        Schema::Object(schema).into()
    }
}

impl Problem {
    fn new(sort: Sort, detail: impl Into<String>) -> Self {
        Self(Box::new(Parts {
            sort,
            detail: detail.into(),
            errors: Vec::new(),
            headers: Vec::new(),
            cause: None,
            place: None,
        }))
    }

    /// A path that no route has.
    pub(super) fn unknown_path(path: &str) -> Self {
        Self::new(
            sorts::NO_PATH,
            format!("The requested endpoint '{}' does not exist", shown(path)),
        )
    }

    /// A path that has other methods.
    pub(super) fn method_not_allowed(allow: &str) -> Self {
        Self::new(sorts::NO_METHOD, format!("Allowed here: {allow}"))
            .with_headers([(header::ALLOW, allow.to_owned())])
    }

    /// A body beyond the limit.
    pub(super) fn too_large() -> Self {
        let detail = format!("Request body must be at most {BODY_BYTES_MAX} bytes");
        Self::new(sorts::TOO_LARGE, detail)
    }

    /// A body that is packed as `coding`, which is not one of those that are understood.
    pub(super) fn packed(coding: &str, understood: &[&str]) -> Self {
        let understood = understood.join(", ");
        let detail = format!(
            "Unable to read request body: its Content-Encoding is {}, understood are {understood}",
            shown(coding)
        );
        Self::new(sorts::PACKED, detail).with_headers([(header::ACCEPT_ENCODING, understood)])
    }

    /// A caller who has to prove something, and is told how (RFC 6750 §3): a token, or a better one.
    fn challenge(sort: Sort, detail: impl Into<String>, fault: Option<&str>) -> Self {
        let realm = "Bearer realm=\"hyperfleet\"";
        let challenge = match fault {
            None => realm.to_owned(),
            Some(fault) => {
                format!("{realm}, error=\"invalid_token\", error_description=\"{fault}\"")
            }
        };
        Self::new(sort, detail).with_headers([(header::WWW_AUTHENTICATE, challenge)])
    }

    /// The database cannot serve right now.
    pub(super) fn unavailable(cause: String) -> Self {
        let mut problem = Self::new(sorts::UNAVAILABLE, "Database connection unavailable")
            .retry_after(RETRY_AFTER_SECONDS.into());
        problem.0.cause = Some(cause);
        problem
    }

    /// The service is not there yet.
    pub(super) fn starting() -> Self {
        Self::new(sorts::UNAVAILABLE, "The service is starting")
            .retry_after(RETRY_AFTER_SECONDS.into())
    }

    /// As many requests as can be are under way.
    pub(super) fn busy() -> Self {
        Self::new(
            sorts::UNAVAILABLE,
            "Too many requests are under way, please try again later",
        )
        .retry_after(BUSY_SECONDS.into())
    }

    /// As much as can be is held for other clients.
    pub(super) fn full() -> Self {
        Self::new(
            sorts::UNAVAILABLE,
            "Too many large requests and answers are under way, please try again later, or ask for \
             smaller pages",
        )
        .retry_after(BUSY_SECONDS.into())
    }

    /// The caller sends more requests than it may.
    pub(super) fn too_many(retry_seconds: u64) -> Self {
        Self::new(sorts::TOO_MANY, "Too many requests, please try again later")
            .retry_after(retry_seconds)
    }

    /// A body that takes too long to come. What still comes of it is not waited for.
    pub(super) fn slow_body() -> Self {
        Self::new(sorts::SLOW_BODY, "The request body takes too long to come")
    }

    fn retry_after(self, seconds: u64) -> Self {
        self.with_headers([(header::RETRY_AFTER, seconds.to_string())])
    }

    /// The problem with more headers.
    pub(super) fn with_headers(
        mut self,
        headers: impl IntoIterator<Item = (HeaderName, String)>,
    ) -> Self {
        self.0.headers.extend(headers);
        self
    }

    /// A fault of ours.
    pub(super) fn internal(cause: impl Into<String>) -> Self {
        let mut problem = Self::new(sorts::INTERNAL, "Unspecified error");
        problem.0.cause = Some(cause.into());
        problem
    }

    /// A handler panicked. What it said is not repeated: it may hold what a client sent. Where it
    /// happened, the log says in a line of its own.
    pub(super) fn panicked() -> Self {
        let mut problem = Self::internal("a panic");
        problem.0.detail =
            "An unexpected error happened, please check the log of the service for details"
                .to_owned();
        problem
    }

    /// The problem behind an error of whatever origin: ours, or the server library's.
    pub(super) fn of(error: &actix_web::Error) -> Self {
        if let Some(problem) = error.as_error::<Self>() {
            return problem.clone();
        }
        let status = error.as_response_error().status_code();
        if status == StatusCode::PAYLOAD_TOO_LARGE {
            Self::too_large()
        } else if status.is_client_error() {
            Self::new(
                sorts::MALFORMED,
                "Unable to read request body: it ends early, or is not encoded as its headers say",
            )
        } else {
            Self::internal(error.to_string())
        }
    }

    /// The problem, told where it happened.
    pub(super) fn at(mut self, place: Place) -> Self {
        self.0.place = Some(place);
        self
    }

    /// The code, as clients see it.
    pub(super) fn code(&self) -> String {
        format!("HYPERFLEET-{}", self.0.sort.1)
    }

    /// This occurrence, as clients see it.
    pub(super) fn detail(&self) -> &str {
        &self.0.detail
    }

    /// The full chain of causes, for the log alone.
    pub(super) fn cause(&self) -> Option<&str> {
        self.0.cause.as_deref()
    }

    /// The headers that it comes with.
    pub(super) fn headers(&self) -> &[(HeaderName, String)] {
        &self.0.headers
    }

    /// Whether it is the caller who may not, rather than the request that cannot be.
    pub(super) fn turns_away(&self) -> bool {
        matches!(self.0.sort.0.as_u16(), 401 | 403 | 429)
    }

    /// What clients see of it.
    pub(super) fn body(&self) -> Body<'_> {
        let (status, _, kind, title) = self.0.sort;
        let place = self.0.place.as_ref();
        let at = place.map_or(DateTime::UNIX_EPOCH, |p| p.at);
        let violations = self.0.errors.iter().map(|v| ViolationView {
            constraint: v.constraint.as_str(),
            field: &v.field,
            message: &v.message,
            value: v.value.as_ref(),
        });
        Body {
            code: self.code(),
            detail: &self.0.detail,
            errors: violations.collect(),
            instance: place.map_or("", |p| &p.path),
            status: status.as_u16(),
            timestamp: moment::rfc3339(at),
            title,
            trace_id: place.map_or("", |p| &p.request_id),
            r#type: format!("{TYPES}{kind}"),
        }
    }

    fn invalid(sort: Sort, several: &str, violations: Violations) -> Self {
        let errors = violations.into_vec();
        let detail = match errors.as_slice() {
            [one] => one.message.clone(),
            _ => several.to_owned(),
        };
        let mut problem = Self::new(sort, detail);
        problem.0.errors = errors;
        problem
    }
}

impl From<BodyFault> for Problem {
    fn from(fault: BodyFault) -> Self {
        match fault {
            BodyFault::Malformed(detail) => Self::new(sorts::MALFORMED, detail),
            BodyFault::NothingToUpdate => Self::new(
                sorts::BAD_REQUEST,
                "at least one field must be provided for update",
            ),
            BodyFault::Invalid(violations) => {
                Self::invalid(sorts::INVALID, "Request body validation failed", violations)
            }
        }
    }
}

impl From<ParamsFault> for Problem {
    fn from(fault: ParamsFault) -> Self {
        match fault {
            ParamsFault::Order(order) => Self::new(sorts::BAD_REQUEST, order.to_string()),
            ParamsFault::Fields(fields) => Self::new(sorts::INVALID, fields.to_string()),
            ParamsFault::Search(search) => Self::new(sorts::BAD_REQUEST, search.to_string()),
            ParamsFault::Invalid(violations) => {
                let mut problem = Self::new(sorts::INVALID, "Invalid query parameters");
                problem.0.errors = violations.into_vec();
                problem
            }
        }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let (sort, fault) = match &refusal {
            Refusal::Missing => (sorts::NO_CREDENTIALS, None),
            // Whoever comes with another scheme has not given a token either.
            Refusal::NotBearer => (sorts::BAD_CREDENTIALS, None),
            Refusal::Expired => (sorts::EXPIRED, Some("the token has expired")),
            Refusal::Invalid(_) => (sorts::BAD_CREDENTIALS, Some("the token is invalid")),
            Refusal::Unidentified(_) => (sorts::NO_CREDENTIALS, Some("unknown identity")),
        };
        Self::challenge(sort, refusal.to_string(), fault)
    }
}

impl From<Denied> for Problem {
    fn from(denied: Denied) -> Self {
        Self::new(sorts::FORBIDDEN, denied.to_string())
    }
}

/// The whole table of what a client may see of a use case. A new `app::Error` does not compile
/// until it has a row.
impl From<app::Error> for Problem {
    fn from(error: app::Error) -> Self {
        use app::Error as E;
        let sort = match &error {
            E::NotFound { .. } | E::NothingToDelete { .. } => sorts::NOT_FOUND,
            E::Invalid(_) | E::UnknownKind(_) | E::UnknownReference { .. } | E::Report(_) => {
                sorts::INVALID
            }
            E::ChildKind { .. } => sorts::CHILD_KIND,
            E::NameTaken { .. } => sorts::TAKEN,
            E::Refused(_) | E::HeldBack { .. } => sorts::STATE,
            E::Order(_) => sorts::BAD_REQUEST,
            E::Unavailable(_) => sorts::UNAVAILABLE,
            E::TooSlow => sorts::TOO_SLOW,
            E::Storage(_) => sorts::INTERNAL,
        };
        match error {
            E::Invalid(violations) => {
                Self::invalid(sort, "Request body validation failed", violations)
            }
            E::Unavailable(_) => Self::unavailable(chain(&error)),
            E::Storage(_) => Self::internal(chain(&error)),
            other => Self::new(sort, other.to_string()),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.cause.as_deref().unwrap_or(&self.0.detail))
    }
}

impl ResponseError for Problem {
    fn status_code(&self) -> StatusCode {
        self.0.sort.0
    }

    fn error_response(&self) -> HttpResponse {
        let status = self.0.sort.0;
        let place = self.0.place.as_ref();
        let mut response = HttpResponse::build(status);
        response.insert_header((header::VARY, HeaderValue::from_static("Authorization")));
        response.insert_header(caching::FOR_ITS_CALLER);
        response.insert_header((header::CONTENT_TYPE, "application/problem+json"));
        if self.0.sort == sorts::NO_PATH || self.0.sort == sorts::NO_METHOD {
            // As the older service's router does, and only it.
            response.insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"));
        }
        for (name, value) in &self.0.headers {
            response.insert_header((name.clone(), value.as_str()));
        }
        if let Some(place) = place {
            response.insert_header(("x-request-id", place.request_id.as_str()));
        }
        response.body(serde_json::to_vec(&self.body()).unwrap_or_default())
    }
}
