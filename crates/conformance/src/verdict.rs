//! The result of a check.

/// Why a check failed.
#[derive(Debug)]
pub(crate) enum Failure {
    Differs(Box<Difference>),
    /// The check can't run against this server, with the reason.
    Skipped(String),
    NoAnswer(String),
}

/// A response that differs from the rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) request: String,
    pub(crate) expected: String,
    pub(crate) got: String,
}

pub(crate) type Verdict<T = ()> = Result<T, Failure>;
