//! Whole lives of resources with known outcomes, on the kind with the same number of required adapters.

use std::sync::LazyLock;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::cast::{Cast, conditions_are, is_unreported};
use crate::answer::Answer;
use crate::check::{Check, check};
use crate::subject::{Made, Subject};
use crate::verdict::{Failure, Verdict};

const SOURCE: &str = "docs/reference/api.md#reports";

static HISTORIES: LazyLock<Vec<History>> = LazyLock::new(|| {
    let text = include_str!("../../../../tests/vectors/hyperfleet_histories.json");
    serde_json::from_str(text).expect("the histories are read by a test")
});

#[derive(Deserialize)]
struct History {
    name: String,
    required_adapters: Vec<String>,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    op: String,
    #[serde(default)]
    has_children: bool,
    observed_time: Option<DateTime<Utc>>,
    /// The other members of a report.
    #[serde(flatten)]
    report: Map<String, Value>,
    expect: Expect,
}

#[derive(Deserialize)]
struct Expect {
    outcome: String,
    detail: Option<String>,
    generation: i64,
    conditions: Vec<Value>,
    adapter_statuses: Vec<Value>,
}

pub(super) fn checks() -> Vec<Check> {
    vec![
        check!(
            "histories.nodepool",
            "Lives of node pools: outcomes, conditions and reports of each step",
            SOURCE,
            |api| {
                let adapters = api.target.nodepool_adapters.clone();
                let cluster = api.cluster().await?;
                play_all(
                    api,
                    &format!("{}/nodepools", cluster.path),
                    "NodePool",
                    &adapters,
                )
                .await?;
            }
        ),
        check!(
            "histories.cluster",
            "Lives of clusters: outcomes, conditions and reports of each step",
            SOURCE,
            |api| {
                let adapters = api.target.cluster_adapters.clone();
                play_all(api, "/clusters", "Cluster", &adapters).await?;
            }
        ),
    ]
}

/// Runs the histories with as many required adapters as the kind has.
async fn play_all(api: &Subject, list: &str, kind: &str, adapters: &[String]) -> Verdict {
    let mut played = 0;
    for history in HISTORIES
        .iter()
        .filter(|history| history.required_adapters.len() == adapters.len())
    {
        // Node pools have no children, and the older service does not check an owner when its last child is
        // removed.
        if (kind == "NodePool" || api.is_go()) && history.steps.iter().any(|step| step.has_children)
        {
            continue;
        }
        play(api, list, kind, adapters, history).await?;
        played += 1;
    }
    if played == 0 {
        return Err(Failure::Skipped(format!(
            "no history has {} required adapters",
            adapters.len()
        )));
    }
    Ok(())
}

async fn play(
    api: &Subject,
    list: &str,
    kind: &str,
    adapters: &[String],
    history: &History,
) -> Verdict {
    let cast = Cast::new(&history.required_adapters, adapters);
    // The latest report of the history is a current one.
    let latest = history
        .steps
        .iter()
        .filter_map(|step| step.observed_time)
        .max();
    #[expect(
        clippy::disallowed_methods,
        reason = "the clock of the adapter that is played"
    )]
    let shift = latest.map_or_else(TimeDelta::zero, |latest| Utc::now() - latest);
    let made = api.make(list, api.body(kind)).await?;
    let mut child = None;
    for (number, step) in history.steps.iter().enumerate() {
        let answer = match step.op.as_str() {
            "create" => made.answer.clone(),
            "patch" => {
                api.patch(&made.path, json!({"spec": {"step": number}}))
                    .await?
            }
            "delete" => {
                if step.has_children {
                    child = Some(api.nodepool(&made).await?);
                }
                api.delete(&made.path).await?
            }
            "children_gone" => force(api, child.as_ref()).await?,
            _ => report(api, &made, &cast, step, shift).await?,
        };
        compare(api, &made, &cast, step, &answer)
            .await
            .map_err(|failure| named(failure, history, number))?;
    }
    Ok(())
}

async fn force(api: &Subject, child: Option<&Made>) -> Verdict<Answer> {
    let path = child.map_or("", |child| &child.path);
    api.post(
        &format!("{path}/force-delete"),
        json!({"reason": "the history says so"}),
    )
    .await
}

async fn report(
    api: &Subject,
    made: &Made,
    cast: &Cast,
    step: &Step,
    shift: TimeDelta,
) -> Verdict<Answer> {
    let mut body = step.report.clone();
    let adapter = body["adapter"]
        .as_str()
        .map(|adapter| cast.adapter(adapter));
    body.insert("adapter".to_owned(), json!(adapter));
    let time = step
        .observed_time
        .map(|time| (time + shift).to_rfc3339_opts(SecondsFormat::Micros, true));
    body.insert("observed_time".to_owned(), json!(time));
    api.put(&format!("{}/statuses", made.path), Value::Object(body))
        .await
}

/// Compares a response, and the stored state, with the step's outcome.
async fn compare(api: &Subject, made: &Made, cast: &Cast, step: &Step, answer: &Answer) -> Verdict {
    let Expect {
        outcome,
        detail,
        generation,
        conditions,
        adapter_statuses,
    } = &step.expect;
    let status = match outcome.as_str() {
        "created" | "accepted" | "hard_deleted" => 201,
        "updated" => 200,
        "finalizing" => 202,
        "ok" | "discarded" => 204,
        _ => 400,
    };
    answer.status(status)?;
    if let Some(detail) = detail {
        answer.detail(detail)?;
    }
    let found = api.get(&made.path).await?;
    if outcome == "hard_deleted" {
        return found.problem(404, "NTF-001").map(drop);
    }
    found.status(200)?.has("/generation", *generation)?;
    // The older service has another message then.
    if !(api.is_go() && is_unreported(conditions)) {
        let expected: Vec<_> = conditions
            .iter()
            .map(|condition| cast.condition(condition, "observed_generation"))
            .collect();
        conditions_are(&found, &expected)?;
    }
    let list = api.get(&format!("{}/statuses?size=100", made.path)).await?;
    list.has("/total", adapter_statuses.len())?;
    for expected in adapter_statuses {
        let name = cast.adapter(expected["adapter"].as_str().unwrap_or_default());
        let stored = list.items()?.iter().find(|item| item["adapter"] == name);
        let fits = stored
            .is_some_and(|stored| stored["observed_generation"] == expected["observed_generation"]);
        list.expect(
            fits,
            format!(
                "a report of {name} at generation {}",
                expected["observed_generation"]
            ),
        )?;
    }
    Ok(())
}

/// Adds the step and the history to a failure.
fn named(failure: Failure, history: &History, number: usize) -> Failure {
    match failure {
        Failure::Differs(mut difference) => {
            difference.expected =
                format!("{} ({}, step {number})", difference.expected, history.name);
            Failure::Differs(difference)
        }
        other => other,
    }
}
