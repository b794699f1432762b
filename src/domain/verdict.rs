//! Which of two reports wins: what becomes of an incoming report (domain rule 3.1).
//!
//! ```text
//! ahead of the resource? ─▶ discard
//! behind this adapter's stored report (generation, then time)? ─▶ discard
//! a mandatory condition missing? ─▶ refuse
//! Available=Unknown after an earlier report? ─▶ discard
//! same generation and time as stored? ─▶ accept, nothing to write
//! else ─▶ accept and store
//! ```
//!
//! The order matters: a stale report that also lacks a condition is discarded, not refused. Both
//! generations and report times only grow, so a report that is stale on any committed snapshot
//! stays stale, and its discard needs no lock; one of a generation to come is told so as of that
//! snapshot, and may be sent again.

use chrono::{DateTime, Utc};

use super::report::{AVAILABLE, MANDATORY, ObservedCondition};
use super::{ConditionStatus, Report, ReportState, ReportedCondition};

/// What becomes of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing changes, and the sender is told so.
    Discard(Discard),
    /// It says what is stored already, at the same generation and time: the stored one stands.
    Repeat,
    /// It becomes the adapter's stored report.
    Store {
        /// What will be stored.
        report: ReportState,
        /// Whether it says anything that aggregation would see: `Available` is True or False.
        aggregates: bool,
    },
}

/// Why a report was discarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discard {
    /// It speaks of a generation that the resource has not reached.
    FutureGeneration,
    /// The adapter has reported on a later generation already.
    StaleGeneration,
    /// The adapter has reported a later observation of this generation.
    StaleTime,
    /// It says `Available=Unknown`, and the adapter has said something before.
    Unknown,
}

impl Discard {
    /// Every reason.
    pub const ALL: [Self; 4] = [
        Self::FutureGeneration,
        Self::StaleGeneration,
        Self::StaleTime,
        Self::Unknown,
    ];
}

/// Why a report cannot be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidReport {
    /// It lacks a condition that every adapter must report.
    #[error(
        "missing mandatory condition '{0}': all adapters must report Available, Applied, and Health"
    )]
    Missing(&'static str),
    /// Too many others report on the same resource.
    #[error(
        "this resource has reports of {} adapters already",
        Report::ADAPTERS_MAX
    )]
    TooManyAdapters,
}

/// Decides what becomes of `report`, given the resource's generation and the adapter's stored
/// report.
///
/// # Guarantees
///
/// The stored pair (generation, time) of an adapter never decreases.
pub fn judge(
    report: &Report,
    generation: i32,
    existing: Option<&ReportState>,
) -> Result<Verdict, InvalidReport> {
    if report.observed_generation > generation {
        return Ok(Verdict::Discard(Discard::FutureGeneration));
    }
    if let Some(existing) = existing {
        if report.observed_generation < existing.observed_generation {
            return Ok(Verdict::Discard(Discard::StaleGeneration));
        }
        if is_same_generation(report, existing) && report.observed_at < existing.reported_at {
            return Ok(Verdict::Discard(Discard::StaleTime));
        }
    }
    if let Some(missing) = MANDATORY
        .into_iter()
        .find(|m| report.status_of(m).is_none())
    {
        return Err(InvalidReport::Missing(missing));
    }
    let aggregates = report.status_of(AVAILABLE) != Some(ConditionStatus::Unknown);
    if let Some(existing) = existing {
        if !aggregates {
            return Ok(Verdict::Discard(Discard::Unknown));
        }
        if is_same_generation(report, existing) && report.observed_at == existing.reported_at {
            return Ok(Verdict::Repeat);
        }
    }
    Ok(Verdict::Store {
        report: stored(report, existing),
        aggregates,
    })
}

fn is_same_generation(report: &Report, existing: &ReportState) -> bool {
    report.observed_generation == existing.observed_generation
}

/// The report as it is kept: a condition's transition time moves only with its status.
fn stored(report: &Report, existing: Option<&ReportState>) -> ReportState {
    let conditions = report.conditions.iter();
    ReportState {
        adapter: report.adapter.clone(),
        observed_generation: report.observed_generation,
        created_at: existing.map_or(report.observed_at, |e| e.created_at),
        reported_at: report.observed_at,
        conditions: conditions
            .map(|c| ReportedCondition {
                last_transition_at: since(c, existing).unwrap_or(report.observed_at),
                message: c.message.clone(),
                reason: c.reason.clone(),
                status: c.status,
                kind: c.kind.clone(),
            })
            .collect(),
    }
}

fn since(condition: &ObservedCondition, existing: Option<&ReportState>) -> Option<DateTime<Utc>> {
    let before = existing?.condition(&condition.kind)?;
    (before.status == condition.status).then_some(before.last_transition_at)
}

#[cfg(test)]
mod tests {
    use super::super::report::{APPLIED, HEALTH};
    use super::*;
    use ConditionStatus::{False, True, Unknown};

    fn minute(minute: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(minute * 60, 0).expect("small")
    }

    fn report(observed_generation: i32, at: i64, conditions: &[(&str, ConditionStatus)]) -> Report {
        let conditions = conditions.iter().map(|&(kind, status)| ObservedCondition {
            kind: kind.to_owned(),
            status,
            reason: None,
            message: None,
        });
        Report {
            adapter: "a".to_owned(),
            observed_generation,
            observed_at: minute(at),
            conditions: conditions.collect(),
            data: serde_json::Map::new(),
            metadata: None,
        }
    }

    fn full(observed_generation: i32, at: i64, available: ConditionStatus) -> Report {
        let conditions = [(AVAILABLE, available), (APPLIED, True), (HEALTH, True)];
        report(observed_generation, at, &conditions)
    }

    fn existing(generation: i32, at: i64, available: ConditionStatus) -> ReportState {
        let report = full(generation, at, available);
        let mut stored = stored(&report, None);
        stored.created_at = minute(4);
        stored.conditions[0].last_transition_at = minute(4);
        stored
    }

    /// Table 3.4 of the behaviour to match, resource generation 3.
    #[test]
    fn reports_are_accepted_discarded_or_refused_in_this_order() {
        let stored = |g, t, s| Some(existing(g, t, s));
        let lacking = |missing: &str, g, t, available| {
            let mut report = full(g, t, available);
            report.conditions.retain(|c| c.kind != missing);
            report
        };
        let cases = [
            ("S01", None, full(3, 10, True), "stored, aggregated"),
            ("S02", None, full(3, 10, False), "stored, aggregated"),
            ("S03", None, full(3, 10, Unknown), "stored"),
            ("S04", None, full(1, 10, True), "stored, aggregated"),
            ("S05", None, full(4, 10, True), "FutureGeneration"),
            (
                "S06",
                None,
                lacking(HEALTH, 4, 10, True),
                "FutureGeneration",
            ),
            ("S07", None, lacking(APPLIED, 3, 10, True), APPLIED),
            ("S08", None, report(3, 10, &[]), AVAILABLE),
            ("S09", None, report(3, 10, &[(APPLIED, True)]), AVAILABLE),
            (
                "S10",
                stored(3, 10, True),
                full(2, 20, True),
                "StaleGeneration",
            ),
            (
                "S11",
                stored(3, 10, True),
                lacking(HEALTH, 2, 20, True),
                "StaleGeneration",
            ),
            ("S12", stored(3, 10, True), full(3, 9, False), "StaleTime"),
            ("S13", stored(3, 10, True), full(3, 10, False), "repeated"),
            (
                "S14",
                stored(3, 10, True),
                full(3, 11, False),
                "stored, aggregated",
            ),
            (
                "S15",
                stored(2, 10, True),
                full(3, 5, True),
                "stored, aggregated",
            ),
            (
                "S16",
                stored(2, 10, True),
                full(2, 12, False),
                "stored, aggregated",
            ),
            (
                "S17",
                stored(3, 10, Unknown),
                full(3, 11, Unknown),
                "Unknown",
            ),
            ("S18", stored(3, 10, True), full(3, 11, Unknown), "Unknown"),
            ("S19", stored(2, 10, True), full(3, 11, Unknown), "Unknown"),
            (
                "S20",
                stored(3, 10, Unknown),
                full(3, 11, True),
                "stored, aggregated",
            ),
            (
                "S31",
                stored(3, 10, True),
                lacking(HEALTH, 3, 11, Unknown),
                HEALTH,
            ),
        ];
        for (id, existing, report, expected) in cases {
            let got = match judge(&report, 3, existing.as_ref()) {
                Ok(Verdict::Discard(why)) => format!("{why:?}"),
                Ok(Verdict::Repeat) => "repeated".to_owned(),
                Ok(Verdict::Store {
                    aggregates: true, ..
                }) => "stored, aggregated".to_owned(),
                Ok(Verdict::Store {
                    aggregates: false, ..
                }) => "stored".to_owned(),
                Err(InvalidReport::Missing(which)) => which.to_owned(),
                Err(other) => other.to_string(),
            };
            assert_eq!(got, expected, "{id}");
        }
    }

    #[test]
    fn a_transition_time_moves_only_with_the_status() {
        let before = existing(3, 10, True);
        for (report, since) in [(full(3, 11, True), 4), (full(3, 11, False), 11)] {
            let Ok(Verdict::Store { report, .. }) = judge(&report, 3, Some(&before)) else {
                panic!("not stored");
            };
            assert_eq!(report.conditions[0].last_transition_at, minute(since));
            assert_eq!(report.created_at, minute(4));
            assert_eq!(report.reported_at, minute(11));
        }
    }

    #[test]
    fn a_condition_that_is_not_repeated_is_forgotten() {
        let mut before = existing(3, 10, True);
        before.conditions.push(ReportedCondition {
            kind: "Extra".to_owned(),
            ..before.conditions[0].clone()
        });
        let Ok(Verdict::Store { report, .. }) = judge(&full(3, 11, True), 3, Some(&before)) else {
            panic!("not stored");
        };
        assert_eq!(report.condition("Extra"), None);
    }
}
