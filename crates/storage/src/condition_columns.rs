//! How statements write `conditions`, and the columns that follow from them, which searches and metrics read instead.
//!
//! A statement that sets `conditions` also sets these columns, and sets `computed_revision` to the new revision. If a
//! writer does not set `computed_revision`, such as the previous release, triggers compute the columns. That takes
//! several times as long as here.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::types::Json;

use hyperfleet_domain::Condition;
use hyperfleet_domain::aggregation::{LAST_KNOWN_RECONCILED, RECONCILED};

/// What a statement sends of the conditions. Nearly every change is one of a single condition, and PostgreSQL replaces one in
/// a fraction of the time that it takes to read all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SentConditions<'a> {
    /// Which of the stored ones is replaced, counted from 0; unset if all are.
    pub(super) place: Option<String>,
    pub(super) value: Json<Sent<'a>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(super) enum Sent<'a> {
    All(&'a [Condition]),
    One(&'a Condition),
}

impl<'a> SentConditions<'a> {
    /// `before` are the stored ones, of the revision that the statement asks for.
    pub(super) fn of(before: &[Condition], after: &'a [Condition]) -> Self {
        let pairs = before.iter().zip(after).enumerate();
        let mut changed = pairs.filter(|(_, (before, after))| before != after);
        let (place, value) = match (changed.next(), changed.next()) {
            (Some((place, (_, one))), None) if before.len() == after.len() => {
                (Some(place.to_string()), Sent::One(one))
            }
            _ => (None, Sent::All(after)),
        };
        Self {
            place,
            value: Json(value),
        }
    }
}

/// What the columns hold, as the trigger function `fill_condition_columns` computes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConditionColumns {
    /// Every condition with its status: `Reconciled=True`.
    pub(super) states: Vec<String>,
    pub(super) reconciled_updated_at: Option<DateTime<Utc>>,
    pub(super) reconciled_transition_at: Option<DateTime<Utc>>,
    pub(super) last_known_generation: Option<i64>,
}

impl ConditionColumns {
    pub(super) fn of(conditions: &[Condition]) -> Self {
        let first = |kind: &str| conditions.iter().find(|c| c.kind == kind);
        let reconciled = first(RECONCILED);
        Self {
            states: conditions.iter().map(state).collect(),
            reconciled_updated_at: reconciled.map(|c| c.last_updated_at),
            reconciled_transition_at: reconciled.map(|c| c.last_transition_at),
            last_known_generation: first(LAST_KNOWN_RECONCILED)
                .map(|c| c.observed_generation.into()),
        }
    }

    /// The states as one text that PostgreSQL reads as an array: sets of rows have a text for each.
    pub(super) fn states_literal(&self) -> String {
        let quoted = self.states.iter().map(|state| {
            let escaped = state.replace('\\', r"\\").replace('"', "\\\"");
            format!("\"{escaped}\"")
        });
        format!("{{{}}}", quoted.collect::<Vec<_>>().join(","))
    }
}

fn state(condition: &Condition) -> String {
    let status: &str = condition.status.into();
    format!("{}={status}", condition.kind)
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use hyperfleet_domain::ConditionStatus;

    fn condition(kind: &str, generation: i32) -> Condition {
        let at = DateTime::from_timestamp(0, 0).expect("small");
        Condition {
            created_at: at,
            last_transition_at: at,
            last_updated_at: at,
            message: None,
            observed_generation: generation,
            reason: None,
            status: ConditionStatus::True,
            kind: kind.to_owned(),
        }
    }

    fn conditions(generations: &[i32]) -> Vec<Condition> {
        let kinds = ["A", "B", "C"].into_iter().zip(generations);
        kinds.map(|(kind, of)| condition(kind, *of)).collect()
    }

    #[test]
    fn one_condition_is_sent_if_no_other_differs() {
        for (before, after, place) in [
            (&[1, 1, 1][..], &[1, 1, 2][..], Some("2")),
            (&[1], &[2], Some("0")),
            (&[1, 1, 1], &[2, 1, 2], None),
            (&[1, 1], &[1, 2, 2], None),
            (&[1, 1, 1], &[1, 2], None),
            (&[1, 1], &[1, 1], None),
            (&[], &[], None),
        ] {
            let [stored, wanted] = [before, after].map(conditions);
            let sent = SentConditions::of(&stored, &wanted);
            assert_eq!(sent.place.as_deref(), place, "{before:?} {after:?}");
            let mut result = stored;
            match (sent.value.0, sent.place) {
                (Sent::One(one), Some(place)) => {
                    result[place.parse::<usize>().unwrap()] = one.clone();
                }
                (Sent::All(all), None) => result = all.to_vec(),
                other => panic!("{other:?}"),
            }
            assert_eq!(result, wanted, "{before:?} {after:?}");
        }
    }

    #[test]
    fn a_literal_of_states_is_an_array_to_postgresql() {
        let states = |kinds: &[&str]| {
            let conditions: Vec<_> = kinds.iter().map(|kind| condition(kind, 1)).collect();
            ConditionColumns::of(&conditions).states_literal()
        };
        assert_eq!(states(&[]), "{}");
        assert_eq!(states(&["A", "B"]), r#"{"A=True","B=True"}"#);
        assert_eq!(states(&["a\"b\\c"]), "{\"a\\\"b\\\\c=True\"}");
    }
}
