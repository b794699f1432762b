use std::borrow::Cow;

use futures_util::future::BoxFuture;

use crate::subject::Subject;
use crate::verdict::Verdict;

type Steps = Box<dyn for<'a> Fn(&'a Subject) -> BoxFuture<'a, Verdict> + Send + Sync>;

/// One rule of the API and the requests that test it.
pub(crate) struct Check {
    pub(crate) id: Cow<'static, str>,
    pub(crate) rule: Cow<'static, str>,
    /// Where the rule is written.
    pub(crate) source: &'static str,
    pub(crate) steps: Steps,
}

/// Makes a check from an id, a rule, its source and the steps, which may end early with `?`.
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
