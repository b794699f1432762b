use serde::{Deserialize, Serialize};

/// The status of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Truth {
    True,
    False,
    Unknown,
}

/// A condition of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub truth: Truth,
    /// One word for programs, such as `UnitFailed`.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
}

impl Finding {
    /// The condition is true.
    pub fn yes(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::of(Truth::True, reason, message)
    }

    /// The condition is false.
    pub fn no(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::of(Truth::False, reason, message)
    }

    /// The adapter cannot tell. The service prefers the previous report to one whose `Available` is unknown.
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
