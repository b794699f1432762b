//! One condition of a report.

use serde::{Deserialize, Serialize};

/// What a condition says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Truth {
    /// It is so.
    True,
    /// It is not so.
    False,
    /// The adapter cannot tell.
    Unknown,
}

/// Whether something is so, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Whether it is.
    pub truth: Truth,
    /// One word for programs, such as `UnitFailed`.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
}

impl Finding {
    /// It is so.
    pub fn yes(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::of(Truth::True, reason, message)
    }

    /// It is not so.
    pub fn no(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::of(Truth::False, reason, message)
    }

    /// The adapter cannot tell. The service keeps what was reported before over a report whose `Available` is unknown.
    pub fn unknown(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::of(Truth::Unknown, reason, message)
    }

    fn of(truth: Truth, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            truth,
            reason: reason.into(),
            message: message.into(),
        }
    }
}
