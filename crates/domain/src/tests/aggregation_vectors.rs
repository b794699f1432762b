//! Single aggregations with known results, computed with the older system's own functions.

use chrono::{DateTime, Duration, Utc};
use serde::Deserialize;

use crate::aggregation::{AggregationInput, aggregate};
use crate::report::{AVAILABLE, FINALIZED};
use crate::{Condition, ConditionStatus, ReportState, ReportedCondition};

#[derive(Deserialize)]
struct File {
    epoch: DateTime<Utc>,
    vectors: Vec<Vector>,
}

#[derive(Deserialize)]
struct Vector {
    id: String,
    note: String,
    previous_from: Option<String>,
    input: Input,
    expect: Vec<Expected>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    generation: i32,
    updated_minute: i64,
    deleted: bool,
    has_children: bool,
    required: Vec<String>,
    reports: Vec<Reported>,
    /// Without texts: the name of a condition does not affect its next state.
    previous: Option<Vec<Expected>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reported {
    adapter: String,
    #[serde(rename = "gen")]
    generation: i32,
    time: i64,
    available: Option<ConditionStatus>,
    finalized: bool,
    reason: Option<String>,
    message: Option<String>,
}

/// A condition, with times in minutes after the epoch.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    #[serde(rename = "type")]
    kind: String,
    status: ConditionStatus,
    reason: Option<String>,
    message: Option<String>,
    #[serde(rename = "gen")]
    generation: i32,
    created: i64,
    updated: i64,
    transition: i64,
}

impl File {
    fn read() -> Self {
        let text = include_str!("../../../../tests/vectors/hyperfleet_aggregation.json");
        serde_json::from_str(text).expect("the vectors have this shape")
    }

    fn minute(&self, minute: i64) -> DateTime<Utc> {
        self.epoch + Duration::minutes(minute)
    }

    fn conditions(&self, expected: &[Expected]) -> Vec<Condition> {
        let condition = |e: &Expected| Condition {
            created_at: self.minute(e.created),
            last_transition_at: self.minute(e.transition),
            last_updated_at: self.minute(e.updated),
            message: e.message.clone(),
            observed_generation: e.generation,
            reason: e.reason.clone(),
            status: e.status,
            kind: e.kind.clone(),
        };
        expected.iter().map(condition).collect()
    }

    fn stored(&self, reported: &Reported) -> ReportState {
        let at = self.minute(reported.time);
        let available = reported.available.map(|status| (AVAILABLE, status));
        let finalized = (FINALIZED, ConditionStatus::from_bool(reported.finalized));
        let conditions = available.into_iter().chain([finalized]);
        ReportState {
            adapter: reported.adapter.clone(),
            observed_generation: reported.generation,
            created_at: at,
            reported_at: at,
            conditions: conditions
                .map(|(kind, status)| ReportedCondition {
                    last_transition_at: at,
                    message: reported.message.clone().filter(|_| kind == AVAILABLE),
                    reason: reported.reason.clone().filter(|_| kind == AVAILABLE),
                    status,
                    kind: kind.to_owned(),
                })
                .collect(),
        }
    }

    fn computed(&self, input: &Input, previous: &[Condition]) -> Vec<Condition> {
        let reports: Vec<_> = input.reports.iter().map(|r| self.stored(r)).collect();
        aggregate(&AggregationInput {
            generation: input.generation,
            updated_at: self.minute(input.updated_minute),
            is_deleting: input.deleted,
            has_children: input.has_children,
            required: &input.required,
            reports: &reports,
            previous,
        })
    }
}

#[test]
fn every_vector_gives_the_conditions_that_it_expects() {
    let file = File::read();
    assert_eq!(file.vectors.len(), 63);
    for vector in &file.vectors {
        let previous = file.conditions(vector.input.previous.as_deref().unwrap_or_default());
        assert_eq!(
            file.computed(&vector.input, &previous),
            file.conditions(&vector.expect),
            "{}: {}",
            vector.id,
            vector.note
        );
    }
}

/// The vectors give `previous` in full; this makes sure that chains of computations, each with the result before it,
/// give the same.
#[test]
fn vectors_that_follow_each_other_can_be_computed_in_one_go() {
    let file = File::read();
    let mut followers = 0;
    for vector in &file.vectors {
        let Some(from) = &vector.previous_from else {
            continue;
        };
        let before = file.vectors.iter().find(|v| v.id == *from);
        let before = before.unwrap_or_else(|| panic!("{}: no vector {from}", vector.id));
        assert_eq!(
            file.computed(&vector.input, &file.conditions(&before.expect)),
            file.conditions(&vector.expect),
            "{}: {}",
            vector.id,
            vector.note
        );
        followers += 1;
    }
    assert!(followers > 30, "only {followers} vectors follow another");
}
