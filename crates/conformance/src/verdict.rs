//! The result of a check, and the profile: the service whose responses it expects.

use clap::ValueEnum;

/// Whose responses are expected where the two services differ intentionally.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Profile {
    /// This service's.
    #[default]
    Hyperfleet,
    /// The older Go service's.
    GoApi,
}

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
