//! Failures of calls to the API.

use std::time::Duration;

use reqwest::StatusCode;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// No connection, or a broken one.
    #[error("unable to reach the fleet API at {endpoint}: {cause}")]
    Unreachable { endpoint: String, cause: String },
    /// The server accepted the connection and did not answer.
    #[error(
        "the fleet API at {endpoint} did not answer within {}; see --request-timeout",
        humantime::format_duration(*.time)
    )]
    TimedOut { endpoint: String, time: Duration },
    /// The server refused.
    #[error("{} (status {status})", refusal_text(*.status, .message))]
    Refused { status: u16, message: String },
    #[error("the response of {endpoint} is too long for a fleet API")]
    TooLong { endpoint: String },
    /// The response does not follow the API.
    #[error("the response of {endpoint} to {call} does not come from a fleet API: {cause}")]
    Unreadable {
        endpoint: String,
        call: String,
        cause: String,
    },
}

/// The message of a refusal, or the name of its status.
fn refusal_text(status: u16, message: &str) -> &str {
    let status = StatusCode::from_u16(status).ok();
    let name = status.and_then(|status| status.canonical_reason());
    match name {
        Some(name) if message.is_empty() => name,
        None if message.is_empty() => "refused",
        _ => message,
    }
}

impl Error {
    /// The status of a refusal.
    pub(crate) fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// The server's own message.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Refused { status, message } if message.is_empty() => {
                format!("status {status} {}", refusal_text(*status, message))
            }
            Self::Refused { message, .. } => message.clone(),
            other => other.to_string(),
        }
    }

    /// Whether the server lacks the route: an older version, or one where it is switched off.
    pub(crate) fn is_missing_route(&self) -> bool {
        match self {
            // Unknown units and machines have a message, unknown paths have none.
            Self::Refused {
                status: 404,
                message,
            } => message.is_empty(),
            Self::Refused { status, .. } => matches!(status, 405 | 501),
            _ => false,
        }
    }

    /// Whether the same call may succeed a moment later.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::TimedOut { .. } => true,
            Self::Refused { status, .. } => matches!(status, 429 | 500 | 502 | 503 | 504),
            Self::TooLong { .. } | Self::Unreadable { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_without_a_message_have_the_name_of_their_status() {
        for (status, message, text) in [
            (503, "stopping", "stopping (status 503)"),
            (503, "", "Service Unavailable (status 503)"),
            (599, "", "refused (status 599)"),
        ] {
            let message = message.to_owned();
            assert_eq!(Error::Refused { status, message }.to_string(), text);
        }
    }
}
