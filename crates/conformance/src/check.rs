//! What a check is, and how it ends.

use std::borrow::Cow;
use std::fmt;

use clap::ValueEnum;
use futures_util::future::BoxFuture;

use crate::subject::Subject;

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

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            request,
            expected,
            got,
        } = self;
        write!(f, "request  {request}\nexpected {expected}\nanswer   {got}")
    }
}

pub(crate) type Verdict<T = ()> = Result<T, Failure>;

type Steps = Box<dyn for<'a> Fn(&'a Subject) -> BoxFuture<'a, Verdict> + Send + Sync>;

/// One rule of the API and the requests that show it.
pub(crate) struct Check {
    pub(crate) id: Cow<'static, str>,
    pub(crate) rule: Cow<'static, str>,
    /// Where the rule is written.
    pub(crate) source: &'static str,
    pub(crate) steps: Steps,
}

/// Makes a check of an id, a rule, its source and the steps, which may end early with `?`.
macro_rules! check {
    ($id:expr, $rule:expr, $source:expr, |$api:ident| $steps:block) => {
        $crate::check::Check {
            id: $id.into(),
            rule: $rule.into(),
            source: $source,
            steps: Box::new(move |$api| {
                Box::pin(async move {
                    $steps
                    Ok(())
                })
            }),
        }
    };
}

pub(crate) use check;
