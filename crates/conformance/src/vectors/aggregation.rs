//! Aggregations with known results. Each runs as the steps that lead to it: create, patch, delete, report.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Value, json};

use super::cast::{Cast, conditions_are, is_unreported};
use crate::check::{Check, check};
use crate::subject::{Made, Subject};
use crate::verdict::{Failure, Verdict};

const SOURCE: &str = "docs/reference/api.md#conditions";

/// Seconds in place of a minute of the vectors, so that reports are not too old.
const MINUTE: i64 = 10;

/// Age of the vectors' beginning at run time.
const BEGIN: i64 = 1500;

static VECTORS: LazyLock<BTreeMap<String, Vector>> = LazyLock::new(|| {
    let text = include_str!("../../../../tests/vectors/hyperfleet_aggregation.json");
    let file: File = serde_json::from_str(text).expect("the vectors are read by a test");
    file.vectors
        .into_iter()
        .map(|vector| (vector.id.clone(), vector))
        .collect()
});

#[derive(Deserialize)]
struct File {
    vectors: Vec<Vector>,
}

#[derive(Deserialize)]
struct Vector {
    id: String,
    note: String,
    previous_from: Option<String>,
    input: Input,
    expect: Vec<Value>,
}

#[derive(Deserialize)]
struct Input {
    generation: i64,
    deleted: bool,
    has_children: bool,
    required: Vec<String>,
    reports: Vec<StoredReport>,
    previous: Option<Value>,
}

#[derive(Deserialize, Clone, PartialEq)]
struct StoredReport {
    adapter: String,
    #[serde(rename = "gen")]
    generation: i64,
    time: i64,
    available: Option<String>,
    #[serde(default)]
    finalized: bool,
    reason: Option<String>,
    message: Option<String>,
}

pub(super) fn checks() -> Vec<Check> {
    let playable = VECTORS.values().filter(|vector| is_playable(vector));
    playable.map(check_of).collect()
}

fn check_of(vector: &'static Vector) -> Check {
    let id = format!("aggregation.{}", vector.id.to_lowercase());
    let rule = format!("Conditions, {}", vector.note);
    check!(id, rule, SOURCE, |api| {
        play(api, vector).await?;
    })
}

/// Whether requests can produce it: its history is known and each step of that has one event, or only first
/// reports.
fn is_playable(vector: &Vector) -> bool {
    let input = &vector.input;
    let is_common = input.required == ["a", "b"] && !input.has_children;
    let are_sent = input
        .reports
        .iter()
        .all(|report| report.available.is_some() && report.generation <= input.generation);
    let previous = match &vector.previous_from {
        None => input.previous.is_none() && input.generation == 1 && !input.deleted,
        Some(id) => VECTORS
            .get(id)
            .is_some_and(|before| is_playable(before) && is_one_step(before, vector)),
    };
    is_common && are_sent && previous && !is_removed(input)
}

/// Whether the server removes the resource: every required adapter has finalized at its generation.
fn is_removed(input: &Input) -> bool {
    let is_done = |adapter: &String| {
        let mut reports = input.reports.iter();
        reports.any(|report| {
            report.adapter == *adapter && report.finalized && report.generation == input.generation
        })
    };
    input.deleted && input.required.iter().all(is_done)
}

/// Whether one event leads from one vector to the next.
fn is_one_step(before: &Vector, after: &Vector) -> bool {
    let changed = after
        .input
        .reports
        .iter()
        .filter(|report| !before.input.reports.contains(report))
        .count();
    let risen = after.input.generation - before.input.generation;
    // A repeated DELETE of a resource changes no report and no generation.
    risen + i64::try_from(changed).unwrap_or(i64::MAX) <= 1
}

async fn play(api: &Subject, vector: &Vector) -> Verdict {
    let adapters = &api.target.nodepool_adapters;
    if adapters.len() != 2 {
        return Err(Failure::Skipped(
            "node pools don't have two required adapters".to_owned(),
        ));
    }
    if api.is_go() && is_unreported(&vector.expect) {
        return Err(Failure::Skipped(
            "the older service has another message before the first report".to_owned(),
        ));
    }
    let mut history = vec![vector];
    while let Some(before) = history
        .last()
        .and_then(|vector| VECTORS.get(vector.previous_from.as_ref()?))
    {
        history.push(before);
    }
    let cluster = api.cluster().await?;
    let made = api.nodepool(&cluster).await?;
    let mut cast = Cast::new(&vector.input.required, adapters);
    let mut known = Input {
        generation: 1,
        deleted: false,
        has_children: false,
        required: Vec::new(),
        reports: Vec::new(),
        previous: None,
    };
    for step in history.into_iter().rev() {
        cast = Cast::new(&step.input.required, adapters);
        carry_out_step(api, &made, &cast, &known, &step.input).await?;
        known.generation = step.input.generation;
        known.deleted = step.input.deleted;
        known.reports.clone_from(&step.input.reports);
    }
    let found = api.get(&made.path).await?;
    found
        .status(200)?
        .has("/generation", vector.input.generation)?;
    let expected: Vec<_> = vector
        .expect
        .iter()
        .map(|condition| cast.condition(condition, "gen"))
        .collect();
    conditions_are(&found, &expected)
}

/// Carries out the step from one state to the next.
async fn carry_out_step(
    api: &Subject,
    made: &Made,
    cast: &Cast,
    known: &Input,
    next: &Input,
) -> Verdict {
    let was_deleted = known.deleted;
    if next.deleted && !was_deleted {
        api.delete(&made.path).await?.status(202)?;
    } else {
        for number in known.generation..next.generation {
            api.patch(&made.path, json!({"spec": {"patches": number}}))
                .await?
                .status(200)?;
        }
    }
    for report in next
        .reports
        .iter()
        .filter(|report| !known.reports.contains(report))
    {
        let available = report.available.as_deref().unwrap_or("Unknown");
        let mut statuses = vec![("Available", available)];
        if report.finalized {
            statuses.push(("Finalized", "True"));
        }
        let mut body =
            Subject::report_body(&cast.adapter(&report.adapter), report.generation, &statuses);
        body["observed_time"] = json!(Subject::ago(BEGIN - report.time * MINUTE));
        for condition in body["conditions"].as_array_mut().into_iter().flatten() {
            if condition["type"] == "Available" {
                condition["reason"] = json!(report.reason);
                condition["message"] = json!(report.message);
            }
        }
        api.put(&format!("{}/statuses", made.path), &body)
            .await?
            .status(201)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_vectors_can_be_played() {
        assert!(checks().len() >= 29, "{}", checks().len());
    }
}
