//! Why a request to the API has no usable answer.

use std::time::Duration;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The service is unreachable or cannot serve now. The request may have been carried out.
    #[error("the API cannot serve now: {message}")]
    Unavailable {
        /// Status and body of the response, or the error of the connection.
        message: String,
        /// The service's `Retry-After`.
        again_after: Option<Duration>,
    },
    /// The request, the token or the settings of the adapter are wrong.
    #[error("the API refuses: {status} {detail}")]
    Refused { status: u16, detail: String },
    /// The response is not from this API.
    #[error("the answer cannot be read: {0}")]
    Unreadable(String),
    #[error("the token cannot be read")]
    Token(#[source] std::io::Error),
}

impl Error {
    /// The pause that the service asks for.
    pub(crate) fn again_after(&self) -> Option<Duration> {
        match self {
            Self::Unavailable { again_after, .. } => *again_after,
            _ => None,
        }
    }
}

/// A lost connection, or an answer that takes too long.
pub(crate) fn unavailable(error: reqwest::Error) -> Error {
    Error::Unavailable {
        message: format!("{:#}", anyhow::Error::from(error.without_url())),
        again_after: None,
    }
}
