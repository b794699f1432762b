//! Problems of requests, independent of a product: a listener's wording turns them into responses.

use std::fmt;

use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderName};
use actix_web::{HttpResponse, ResponseError};
use serde_json::Value;

/// Largest request body, in bytes, before and after decompression.
pub const BODY_BYTES_MAX: usize = 1024 * 1024;
/// `Retry-After` while the service starts, in seconds.
const STARTING_SECONDS: u64 = 5;
/// `Retry-After` while other requests use all capacity, in seconds.
const BUSY_SECONDS: u64 = 1;
/// Most characters of a client's text that a response repeats.
const EXCERPT_CHARACTERS_MAX: usize = 100;

/// The constant part of problems of one kind (RFC 9457).
#[derive(Debug, PartialEq, Eq)]
pub struct ProblemKind {
    pub status: StatusCode,
    /// Stable, such as `VAL-006`; products prepend their name.
    pub code: &'static str,
    /// Last part of the type's URI.
    pub slug: &'static str,
    /// Short name, for people.
    pub title: &'static str,
}

/// A failed request.
#[derive(Debug, Clone)]
pub struct Problem {
    pub kind: &'static ProblemKind,
    /// This occurrence. Never the text of an internal failure.
    pub detail: String,
    /// One entry per error of the input.
    pub errors: Vec<Value>,
    /// What the problem is about, for the products whose problems have such a member.
    pub about: Option<Box<Value>>,
    /// Headers of the response.
    pub headers: Vec<(HeaderName, String)>,
    /// The full chain of causes, for the log only.
    pub cause: Option<String>,
}

/// Why a client cannot watch now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WatcherRefusal {
    #[error("too many clients are watching")]
    TooMany,
    #[error("the service is stopping")]
    Stopping,
}

impl ProblemKind {
    pub const fn new(
        status: StatusCode,
        code: &'static str,
        slug: &'static str,
        title: &'static str,
    ) -> Self {
        Self {
            status,
            code,
            slug,
            title,
        }
    }
}

#[rustfmt::skip]
impl ProblemKind {
    pub const MALFORMED: &Self = &Self::new(StatusCode::BAD_REQUEST, "VAL-006", "malformed-request", "Malformed Request");
    pub const PACKED: &Self = &Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "VAL-006", "malformed-request", "Malformed Request");
    pub const NO_METHOD: &Self = &Self::new(StatusCode::METHOD_NOT_ALLOWED, "VAL-008", "method-not-allowed", "Method Not Allowed");
    pub const NO_PATH: &Self = &Self::new(StatusCode::NOT_FOUND, "NTF-000", "not-found", "Endpoint Not Found");
    pub const TOO_MANY: &Self = &Self::new(StatusCode::TOO_MANY_REQUESTS, "LMT-001", "rate-limit", "Rate Limit Exceeded");
    pub const TOO_LARGE: &Self = &Self::new(StatusCode::PAYLOAD_TOO_LARGE, "LMT-002", "payload-too-large", "Payload Too Large");
    pub const SLOW_BODY: &Self = &Self::new(StatusCode::REQUEST_TIMEOUT, "LMT-003", "request-timeout", "Request Timeout");
    pub const INTERNAL: &Self = &Self::new(StatusCode::INTERNAL_SERVER_ERROR, "INT-001", "internal-error", "Internal Server Error");
    pub const UNAVAILABLE: &Self = &Self::new(StatusCode::SERVICE_UNAVAILABLE, "SVC-001", "service-unavailable", "Service Unavailable");
}

impl Problem {
    /// A problem without headers or a hidden cause.
    pub fn new(kind: &'static ProblemKind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            detail: detail.into(),
            errors: Vec::new(),
            about: None,
            headers: Vec::new(),
            cause: None,
        }
    }

    /// A path without a route.
    pub fn unknown_path(path: &str) -> Self {
        let path = excerpt(path);
        Self::new(
            ProblemKind::NO_PATH,
            format!("The requested endpoint '{path}' does not exist"),
        )
    }

    /// A path with other methods.
    pub fn method_not_allowed(allow: &str) -> Self {
        Self::new(ProblemKind::NO_METHOD, format!("Allowed here: {allow}"))
            .with_header(header::ALLOW, allow)
    }

    /// A body above [`BODY_BYTES_MAX`].
    pub fn too_large() -> Self {
        let detail = format!("Request body must be at most {BODY_BYTES_MAX} bytes");
        Self::new(ProblemKind::TOO_LARGE, detail)
    }

    /// A body in the unsupported encoding `coding`.
    pub fn packed(coding: &str, understood: &[&str]) -> Self {
        let understood = understood.join(", ");
        let detail = format!(
            "Unable to read request body: its Content-Encoding is {}, understood are {understood}",
            excerpt(coding)
        );
        Self::new(ProblemKind::PACKED, detail).with_header(header::ACCEPT_ENCODING, understood)
    }

    /// The service accepts no requests yet; `error` is the reason, if known.
    pub fn starting(error: Option<String>) -> Self {
        let detail = error.unwrap_or_else(|| "The service is starting".to_owned());
        Self::new(ProblemKind::UNAVAILABLE, detail).retry_after(STARTING_SECONDS)
    }

    /// The limit of requests in progress is reached.
    pub fn busy() -> Self {
        let detail = "Too many requests in progress, please try again later";
        Self::new(ProblemKind::UNAVAILABLE, detail).retry_after(BUSY_SECONDS)
    }

    /// The memory for clients is exhausted.
    pub fn full() -> Self {
        let detail = "Too many large requests and responses in progress, please try again later, \
                      or ask for smaller pages";
        Self::new(ProblemKind::UNAVAILABLE, detail).retry_after(BUSY_SECONDS)
    }

    /// The client cannot watch now.
    pub fn no_watcher(refusal: WatcherRefusal) -> Self {
        let detail = match refusal {
            WatcherRefusal::TooMany => "Too many clients are watching, please try again later",
            WatcherRefusal::Stopping => "The service is stopping, please try again later",
        };
        Self::new(ProblemKind::UNAVAILABLE, detail).retry_after(STARTING_SECONDS)
    }

    /// The caller exceeds its rate.
    pub fn too_many(retry_seconds: u64) -> Self {
        let detail = "Too many requests, please try again later";
        Self::new(ProblemKind::TOO_MANY, detail).retry_after(retry_seconds)
    }

    /// The body arrives too slowly.
    pub fn slow_body() -> Self {
        Self::new(
            ProblemKind::SLOW_BODY,
            "The request body takes too long to come",
        )
    }

    /// A defect of the service, or an outage that waiting does not solve.
    pub fn internal(cause: impl Into<String>) -> Self {
        Self::new(ProblemKind::INTERNAL, "Unspecified error").with_cause(cause)
    }

    /// A handler panicked. The response does not repeat the panic's message, which may contain a client's data;
    /// the log has it in a separate line.
    pub fn panicked() -> Self {
        let detail =
            "An unexpected error happened, please check the log of the service for details";
        Self::new(ProblemKind::INTERNAL, detail).with_cause("a panic")
    }

    /// The problem behind an error: one of ours, or of the server library.
    pub fn of(error: &actix_web::Error) -> Self {
        if let Some(problem) = error.as_error::<Self>() {
            return problem.clone();
        }
        let status = error.as_response_error().status_code();
        if status == StatusCode::PAYLOAD_TOO_LARGE {
            Self::too_large()
        } else if status.is_client_error() {
            Self::new(
                ProblemKind::MALFORMED,
                "Unable to read request body: it ends early, or is not encoded as its headers say",
            )
        } else {
            Self::internal(error.to_string())
        }
    }

    /// Adds a header.
    pub fn with_header(mut self, name: HeaderName, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Adds a cause for the log.
    pub fn with_cause(mut self, cause: impl Into<String>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// Adds `Retry-After`.
    pub fn retry_after(self, seconds: u64) -> Self {
        self.with_header(header::RETRY_AFTER, seconds.to_string())
    }

    /// Why the caller was refused, if the problem is about the caller and not the request.
    pub fn reason(&self) -> Option<&str> {
        matches!(self.kind.status.as_u16(), 401 | 403 | 429).then_some(&self.detail)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.cause.as_deref().unwrap_or(&self.detail))
    }
}

/// The frame writes the response.
impl ResponseError for Problem {
    fn status_code(&self) -> StatusCode {
        self.kind.status
    }

    fn error_response(&self) -> HttpResponse {
        HttpResponse::new(self.kind.status)
    }
}

fn excerpt(text: &str) -> String {
    text.chars().take(EXCERPT_CHARACTERS_MAX).collect()
}
