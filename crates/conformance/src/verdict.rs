//! How a check ends, and whose answers it expects.

use clap::ValueEnum;

/// Whose answers are expected where the two services differ on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Profile {
    /// This service's.
    #[default]
    Hyperfleet,
    /// The older Go service's.
    GoApi,
}

/// Why a check did not hold.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The server's answer is another one.
    Differs(Box<Difference>),
    /// The check cannot be played against this server; the reason.
    Skipped(String),
    /// No answer came.
    NoAnswer(String),
}

/// An answer that differs from the rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) request: String,
    pub(crate) expected: String,
    pub(crate) got: String,
}

pub(crate) type Verdict<T = ()> = Result<T, Failure>;
