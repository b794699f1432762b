//! Runs checks one after another and removes their resources.

use std::future::Future;

use crate::check::Check;
use crate::checks;
use crate::cleanup::clean_up;
use crate::client::ClientError;
use crate::report::{CheckOutcome, Row, RunReport};
use crate::subject::{Subject, Target};
use crate::verdict::Failure;

/// Why a run can't take place.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The server's first response is not a list.
    #[error("GET /clusters at {base} answered {status}, not a list: {hint}\n{body}")]
    NoList {
        base: String,
        status: u16,
        /// What to do.
        hint: &'static str,
        body: String,
    },
    #[error("no answer from {base}: start the server or correct --base\n{cause}")]
    NoAnswer { base: String, cause: String },
    /// No check has this id or prefix.
    #[error("no check is called {0:?}: --list shows all")]
    UnknownCheck(String),
}

/// All checks whose id is one of these or begins with one and a dot. Without ids, all checks.
pub(crate) fn selected(only: &[String]) -> Result<Vec<Check>, RunError> {
    let mut checks = checks::all();
    let fits = |id: &str, wanted: &str| {
        let rest = id.strip_prefix(wanted);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.') || wanted.ends_with('.'))
    };
    for wanted in only {
        if !checks.iter().any(|check| fits(&check.id, wanted)) {
            return Err(RunError::UnknownCheck(wanted.clone()));
        }
    }
    if !only.is_empty() {
        checks.retain(|check| only.iter().any(|wanted| fits(&check.id, wanted)));
    }
    Ok(checks)
}

/// The ids of all checks, in the order in which they run. A group is what stands before the dot.
pub fn rules() -> Vec<String> {
    let ids = checks::all().into_iter().map(|check| check.id.into_owned());
    ids.collect()
}

/// Runs the checks in `only`, or all, against a server, and passes each result to `tell`.
///
/// # Guarantees
/// The resources of the checks are removed at the end, when the server stops answering, and when `interrupted`
/// ends first.
pub async fn run(
    target: Target,
    only: &[String],
    interrupted: impl Future<Output = ()>,
    mut tell: impl FnMut(&Row),
) -> Result<RunReport, RunError> {
    let checks = selected(only)?;
    let base = target.base.clone();
    let api = Subject::new(target)?;
    let no_answer = |cause: String| RunError::NoAnswer {
        base: base.clone(),
        cause,
    };
    is_an_api(&api).await?;
    let mut rows = Vec::new();
    let mut playing = Box::pin(async {
        for check in &checks {
            let row = play(&api, check).await?;
            tell(&row);
            rows.push(row);
        }
        Ok(())
    });
    let ended = tokio::select! {
        ended = &mut playing => Some(ended),
        () = interrupted => None,
    };
    drop(playing);
    let cleaned = clean_up(&api).await;
    if let Some(Err(cause)) = ended {
        return Err(no_answer(cause));
    }
    let left_behind = match cleaned {
        Ok(left) => left,
        Err(Failure::NoAnswer(cause)) => return Err(no_answer(cause)),
        Err(failure) => vec![format!("unknown: {failure:?}")],
    };
    Ok(RunReport {
        run: api.run.clone(),
        checks: rows,
        left_behind,
        interrupted: ended.is_none(),
    })
}

/// Sends a first request, so that a wrong address or a missing token does not show as two hundred differences.
async fn is_an_api(api: &Subject) -> Result<(), RunError> {
    let base = api.target.base.clone();
    let answer = match api.get("/clusters?size=1").await {
        Ok(answer) => answer,
        Err(Failure::NoAnswer(cause)) => return Err(RunError::NoAnswer { base, cause }),
        Err(other) => {
            return Err(RunError::NoAnswer {
                base,
                cause: format!("{other:?}"),
            });
        }
    };
    if answer.status == 200 && answer.body["items"].is_array() {
        return Ok(());
    }
    let hint = match answer.status {
        401 => "pass a valid token with --token-file",
        403 => "pass the tenant's headers with --header",
        503 => "wait until the server is ready",
        _ => "correct --base",
    };
    let body = String::from_utf8_lossy(&answer.bytes).into_owned();
    Err(RunError::NoList {
        base,
        status: answer.status,
        hint,
        body,
    })
}

/// Runs one check; fails only without a response.
async fn play(api: &Subject, check: &Check) -> Result<Row, String> {
    let mut row = Row {
        id: check.id.to_string(),
        outcome: CheckOutcome::Holds,
        rule: check.rule.to_string(),
        source: check.source,
        reason: None,
        request: None,
        expected: None,
        answer: None,
    };
    match (check.steps)(api).await {
        Ok(()) => {}
        Err(Failure::Skipped(reason)) => {
            row.outcome = CheckOutcome::Skipped;
            row.reason = Some(reason);
        }
        Err(Failure::Differs(difference)) => {
            row.outcome = CheckOutcome::Differs;
            row.request = Some(difference.request);
            row.expected = Some(difference.expected);
            row.answer = Some(difference.got);
        }
        Err(Failure::NoAnswer(cause)) => {
            return Err(format!("during the check {}: {cause}", check.id));
        }
    }
    Ok(row)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn ids_are_unique_and_many() {
        let checks = selected(&[]).unwrap_or_default();
        let ids: BTreeSet<_> = checks.iter().map(|check| &check.id).collect();
        assert_eq!(ids.len(), checks.len());
        assert!(ids.len() > 200, "{}", ids.len());
    }

    #[test]
    fn sources_are_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for check in selected(&[]).unwrap_or_default() {
            let (file, anchor) = check.source.split_once('#').unwrap_or((check.source, ""));
            let text = std::fs::read_to_string(root.join(file)).unwrap_or_default();
            let slugs = text.lines().filter_map(|line| line.strip_prefix('#'));
            let slug = |line: &str| {
                line.trim_start_matches('#')
                    .trim()
                    .to_lowercase()
                    .replace(' ', "-")
            };
            let is_there =
                anchor.is_empty() && !text.is_empty() || slugs.map(slug).any(|slug| slug == anchor);
            assert!(is_there, "{}: {}", check.id, check.source);
        }
    }

    #[test]
    fn a_group_selects_its_checks_alone() {
        let ids = |only: &str| -> Vec<String> {
            let checks = selected(&[only.to_owned()]).unwrap_or_default();
            checks.iter().map(|check| check.id.to_string()).collect()
        };
        assert_eq!(ids("patch.same"), ["patch.same"]);
        assert!(ids("search").iter().all(|id| id.starts_with("search.")));
        assert!(ids("search").len() > 10);
        assert!(selected(&["nonsense".to_owned()]).is_err());
    }
}
