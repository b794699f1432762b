//! Errors in the form of fleet's clients: `{"error":{"code":404,"message":"unit does not exist"}}`.

use std::fmt;

use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderName, HeaderValue};
use actix_web::{Error, HttpResponse, ResponseError};

use crate as fleet;
use crate::inspect;
use hyperfleet_fleet_model::wire::{
    ErrorBody, ErrorView, InvalidChange, InvalidDrain, InvalidMoves, InvalidParameter, OtherName,
    Undecodable,
};
use hyperfleet_server_kit::causes::chain;
use hyperfleet_server_kit::http::{
    Arrival, ErrorResponse, FOR_ITS_CALLER, Problem, WatcherRefusal, Wording,
};

/// `Retry-After` while etcd is away.
const RETRY_AFTER_SECONDS: &str = "1";

/// Log text for requests while the mirror is not connected. The mirror logs the reason.
const NOT_LISTED: &str = "mirror not connected: see its own log lines for the reason";

/// The only error type of fleet's handlers.
#[derive(Debug, Clone)]
pub(super) struct Fault(Box<Parts>);

#[derive(Debug, Clone)]
struct Parts {
    status: StatusCode,
    /// For clients. Never the text of an internal failure.
    message: String,
    headers: Vec<(HeaderName, String)>,
    /// Code of the problem that it was made from, for the log.
    code: Option<String>,
    /// The full chain of causes, for the log alone.
    cause: Option<String>,
    /// Why authentication failed.
    reason: Option<String>,
}

impl Fault {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self(Box::new(Parts {
            status,
            message: message.into(),
            headers: Vec::new(),
            code: None,
            cause: None,
            reason: None,
        }))
    }

    /// A path without a route.
    pub(super) fn unknown_path() -> Self {
        Self::new(StatusCode::NOT_FOUND, "")
    }

    /// The mirror is not connected.
    pub(super) fn unconnected() -> Self {
        let mut fault = Self::from(fleet::Error::Unavailable(None));
        fault.0.cause = Some(NOT_LISTED.to_owned());
        fault
    }

    /// The client cannot watch now.
    pub(super) fn no_watcher(refusal: WatcherRefusal) -> Self {
        let fault = Self::new(StatusCode::SERVICE_UNAVAILABLE, refusal.to_string());
        fault.with_header(header::RETRY_AFTER, RETRY_AFTER_SECONDS)
    }

    pub(super) fn internal(cause: impl Into<String>) -> Self {
        let mut fault = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "");
        fault.0.cause = Some(cause.into());
        fault
    }

    /// The fault behind an actix error.
    fn of(error: &Error) -> Self {
        match error.as_error::<Self>() {
            Some(fault) => fault.clone(),
            None => Problem::of(error).into(),
        }
    }

    pub(super) fn with_header(mut self, name: HeaderName, value: &str) -> Self {
        self.0.headers.push((name, value.to_owned()));
        self
    }
}

/// Refusals of admission and of the server library, with their headers.
impl From<Problem> for Fault {
    fn from(problem: Problem) -> Self {
        let status = problem.kind.status;
        let reason = problem.reason().map(ToOwned::to_owned);
        let message = if status == StatusCode::INTERNAL_SERVER_ERROR {
            String::new()
        } else {
            problem.detail
        };
        Self(Box::new(Parts {
            status,
            message,
            headers: problem.headers,
            code: Some(format!("HYPERFLEET-{}", problem.kind.code)),
            cause: problem.cause,
            reason,
        }))
    }
}

/// The full table from errors of use cases to responses. A new `fleet::Error` does not compile until it has a
/// row.
impl From<fleet::Error> for Fault {
    fn from(error: fleet::Error) -> Self {
        use fleet::Error as E;
        let status = match &error {
            E::Invalid(_) | E::Token | E::Stale => StatusCode::BAD_REQUEST,
            E::NoUnit | E::NoState | E::NoMachine => StatusCode::NOT_FOUND,
            E::Conflict(_) | E::Unreadable(_) => StatusCode::CONFLICT,
            E::Busy | E::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
            E::Failed(_) => return Self::internal(chain(&error)),
        };
        let mut fault = Self::new(status, error.to_string());
        if status == StatusCode::SERVICE_UNAVAILABLE {
            fault.0.cause = Some(chain(&error));
            fault = fault.with_header(header::RETRY_AFTER, RETRY_AFTER_SECONDS);
        }
        fault
    }
}

/// Responses to failures to show status or journal of a unit.
impl From<inspect::Error> for Fault {
    fn from(error: inspect::Error) -> Self {
        use inspect::Error as E;
        let status = match &error {
            E::Fleet(_) => {
                let E::Fleet(error) = error else {
                    return Self::internal("error changed during classification");
                };
                return error.into();
            }
            E::Failed { cause, .. } => return Self::internal(format!("{error}: {cause}")),
            E::OnSeveralMachines { .. } | E::UnusablePosition { .. } => StatusCode::BAD_REQUEST,
            E::OnNoMachine { .. } | E::NotOnMachine { .. } => StatusCode::CONFLICT,
            E::NoAddress { .. } | E::NoCertificate | E::NoMachine | E::NotRun { .. } => {
                StatusCode::NOT_IMPLEMENTED
            }
            E::WrongMachine { .. } | E::Unreachable { .. } => StatusCode::BAD_GATEWAY,
            E::Refused { status, .. } => {
                StatusCode::from_u16(*status).unwrap_or(StatusCode::BAD_GATEWAY)
            }
        };
        Self::new(status, error.to_string())
    }
}

impl From<Undecodable> for Fault {
    fn from(fault: Undecodable) -> Self {
        let message = format!("unable to decode body: {fault}");
        Self::new(StatusCode::BAD_REQUEST, message)
    }
}

/// Parts of a request that are invalid in themselves, in the words of their types.
macro_rules! invalid {
    ($($error:ty),*) => {$(
        impl From<$error> for Fault {
            fn from(error: $error) -> Self {
                Self::new(StatusCode::BAD_REQUEST, error.to_string())
            }
        }
    )*};
}

invalid!(
    InvalidChange,
    InvalidDrain,
    InvalidMoves,
    InvalidParameter,
    OtherName
);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.cause.as_deref().unwrap_or(&self.0.message))
    }
}

impl ResponseError for Fault {
    fn status_code(&self) -> StatusCode {
        self.0.status
    }

    fn error_response(&self) -> HttpResponse {
        HttpResponse::new(self.0.status)
    }
}

pub const WORDING: Wording = Wording {
    trims_slash: false,
    write,
};

fn write(error: &Error, _: &Arrival) -> ErrorResponse {
    let Fault(parts) = Fault::of(error);
    let mut response = HttpResponse::build(parts.status);
    response.insert_header(FOR_ITS_CALLER);
    response.insert_header((
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    ));
    for (name, value) in &parts.headers {
        response.insert_header((name.clone(), value.as_str()));
    }
    let error = ErrorView {
        code: parts.status.as_u16(),
        message: &parts.message,
    };
    ErrorResponse {
        response: response.body(serde_json::to_vec(&ErrorBody { error }).unwrap_or_default()),
        code: parts.code,
        cause: parts.cause,
        reason: parts.reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ours_says_nothing_to_clients_and_all_to_the_log() {
        for fault in [
            Fault::internal("a secret"),
            Fault::from(Problem::internal("a secret")),
            Fault::of(&actix_web::error::ErrorInternalServerError("a secret")),
        ] {
            assert_eq!(fault.0.message, "");
            assert_eq!(fault.to_string(), "a secret");
        }
        assert_eq!(Fault::from(Problem::panicked()).0.message, "");
        let failed = Fault::from(inspect::Error::Failed {
            program: "journalctl",
            machine: "m1".to_owned(),
            cause: "a secret".to_owned(),
        });
        assert_eq!((failed.0.status.as_u16(), &*failed.0.message), (500, ""));
        let text = "journalctl failed on machine m1: a secret";
        assert_eq!(failed.to_string(), text);
    }

    #[test]
    fn what_admission_refuses_keeps_status_text_and_headers() {
        let written = write(&Problem::too_many(7).into(), &Arrival::default());
        let answer = written.response;
        assert_eq!(answer.status(), 429);
        assert_eq!(answer.headers().get("retry-after").unwrap(), "7");
        let kind = answer.headers().get("content-type").unwrap();
        assert_eq!(kind, "application/json");
        assert!(written.reason.is_some_and(|reason| !reason.is_empty()));
    }
}
