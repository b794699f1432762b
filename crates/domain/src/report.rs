//! Reports of adapters on resources, and which of two reports wins.
//!
//! ```text
//! ahead of the resource? ─▶ discard
//! behind this adapter's stored report (generation, then time)? ─▶ discard
//! a mandatory condition missing? ─▶ reject
//! Available=Unknown after an earlier report? ─▶ discard
//! same generation and time as stored? ─▶ the stored report stays, nothing to write
//! else ─▶ accept and store
//! ```
//!
//! The order matters: a stale report that also lacks a condition is discarded, not rejected. Generations and report
//! times only grow. So a report that is stale in one committed snapshot stays stale, and discarding it needs no lock.
//! A report of a future generation is also discarded, but the adapter can send it again later.
//!
//! Adapters that report times in whole seconds may send two different reports of one second. The stored one stays, as in
//! the Go HyperFleet API, with one exception: `Finalized=True` replaces another report while the resource is being
//! deleted ([`super::lifecycle::report`]), because the deletion would never end without it.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{ConditionStatus, moment};

/// The condition types that every report must have, in the order in which a missing one is reported. A report without
/// them says too little to be aggregated.
pub const MANDATORY: [&str; 3] = [AVAILABLE, APPLIED, HEALTH];
/// Whether the adapter's work is done and usable. The one condition that is aggregated.
pub const AVAILABLE: &str = "Available";
/// Whether the adapter has applied the desired state.
pub const APPLIED: &str = "Applied";
/// Whether the adapter itself is healthy.
pub const HEALTH: &str = "Health";
/// Whether the adapter has cleaned up after a deletion.
pub const FINALIZED: &str = "Finalized";

/// A report of an adapter on a resource, incoming or stored. An incoming one has the times of a first report;
/// [`ReportState::follow`] takes over those of the adapter's stored one.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The part that rules read.
    pub state: ReportState,
    /// Data for other adapters.
    pub data: Map<String, Value>,
    /// The metadata of the job.
    pub metadata: Option<Metadata>,
}

impl Report {
    pub const ADAPTER_BYTES_MAX: usize = 255;
    pub const CONDITIONS_MAX: usize = 100;
    /// Longest condition type, in bytes; this and the next two as in Kubernetes.
    pub const TYPE_BYTES_MAX: usize = 316;
    pub const REASON_BYTES_MAX: usize = 1024;
    pub const MESSAGE_BYTES_MAX: usize = 32_768;
    /// Limit of all texts of all conditions together, in bytes: every later report on the same resource reads them
    /// again.
    pub const TEXTS_BYTES_MAX: usize = 131_072;
    /// Longest text of the metadata, in bytes.
    pub const METADATA_BYTES_MAX: usize = 1024;
    /// Adapters that report on one resource at most.
    pub const ADAPTERS_MAX: usize = 256;
    /// How far an adapter's clock may be ahead of this one, in minutes.
    pub const AHEAD_MINUTES_MAX: i64 = 5;
    /// How old an observation may be when it arrives, in minutes.
    pub const AGE_MINUTES_MAX: i64 = 30;
}

/// One condition of a report; stored and returned in this form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedCondition {
    /// Since when the adapter has been reporting this status.
    #[serde(rename = "last_transition_time")]
    #[serde(serialize_with = "moment::serialize")]
    pub last_transition_at: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub status: ConditionStatus,
    #[serde(rename = "type")]
    pub kind: String,
}

/// The part of a report that rules read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportState {
    /// Any name; only the required adapters of the kind count.
    pub adapter: String,
    /// The generation that the adapter read.
    pub observed_generation: i32,
    /// When the adapter first reported on this resource.
    pub created_at: DateTime<Utc>,
    /// When the adapter observed the resource, by its own clock, in whole microseconds.
    pub reported_at: DateTime<Utc>,
    /// Types are unique; the order is the adapter's.
    pub conditions: Vec<ReportedCondition>,
}

impl ReportState {
    pub fn condition(&self, kind: &str) -> Option<&ReportedCondition> {
        self.conditions.iter().find(|c| c.kind == kind)
    }

    pub fn status_of(&self, kind: &str) -> Option<ConditionStatus> {
        self.condition(kind).map(|c| c.status)
    }

    pub fn is_finalized(&self) -> bool {
        self.status_of(FINALIZED) == Some(ConditionStatus::True)
    }

    /// Takes over the times of the adapter's stored report: the creation time stays that of the first report, and a
    /// condition's transition time changes only with its status.
    pub fn follow(&mut self, existing: Option<&Self>) {
        self.created_at = existing.map_or(self.reported_at, |e| e.created_at);
        for condition in &mut self.conditions {
            let before = existing.and_then(|e| e.condition(&condition.kind));
            let before = before.filter(|b| b.status == condition.status);
            condition.last_transition_at =
                before.map_or(self.reported_at, |b| b.last_transition_at);
        }
    }

    /// Decides what becomes of this report, given the resource's generation and the adapter's stored report.
    ///
    /// # Guarantees
    ///
    /// The stored pair (generation, time) of an adapter never decreases.
    pub fn judge(&self, generation: i32, existing: Option<&Self>) -> ReportOutcome {
        if self.observed_generation > generation {
            return ReportOutcome::Discarded(Discard::FutureGeneration);
        }
        let age = self.age();
        if let Some(existing) = existing.map(Self::age).filter(|existing| age < *existing) {
            return ReportOutcome::Discarded(if age.0 < existing.0 {
                Discard::StaleGeneration
            } else {
                Discard::StaleTime
            });
        }
        let mut mandatory = MANDATORY.into_iter();
        if let Some(missing) = mandatory.find(|m| self.condition(m).is_none()) {
            return ReportOutcome::Rejected(InvalidReport::Missing(missing));
        }
        match existing {
            Some(_) if self.status_of(AVAILABLE) == Some(ConditionStatus::Unknown) => {
                ReportOutcome::Discarded(Discard::Unknown)
            }
            Some(existing) if existing.age() != age => ReportOutcome::Accepted,
            Some(existing) if self.has_conditions_of(existing) => ReportOutcome::Repeated,
            Some(_) => ReportOutcome::SameTime,
            None => ReportOutcome::Accepted,
        }
    }

    /// By this reports of one adapter are ordered.
    fn age(&self) -> (i32, DateTime<Utc>) {
        (self.observed_generation, self.reported_at)
    }

    /// Whether both have the same conditions, in whatever order, and whenever their statuses changed.
    fn has_conditions_of(&self, other: &Self) -> bool {
        let says = |condition: &ReportedCondition| {
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            let texts = (text(&condition.reason), text(&condition.message));
            (condition.status, texts)
        };
        self.conditions.len() == other.conditions.len()
            && self.conditions.iter().all(|one| {
                let other = other.condition(&one.kind);
                other.is_some_and(|other| says(one) == says(other))
            })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportOutcome {
    /// It becomes the adapter's stored report.
    Accepted,
    /// It has the generation, the time and the conditions of the stored one, which stays.
    Repeated,
    /// It has the generation and the time of the stored one, but other conditions. The stored one stays.
    SameTime,
    /// Nothing changes, and the answer says so.
    Discarded(Discard),
    /// It breaks a rule, and the answer names it.
    Rejected(InvalidReport),
}

impl ReportOutcome {
    /// One outcome per label.
    pub const ALL: [Self; 8] = [
        Self::Accepted,
        Self::Repeated,
        Self::SameTime,
        Self::Rejected(InvalidReport::Unreadable),
        Self::Discarded(Discard::FutureGeneration),
        Self::Discarded(Discard::StaleGeneration),
        Self::Discarded(Discard::StaleTime),
        Self::Discarded(Discard::Unknown),
    ];

    /// The label of metrics.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Repeated => "repeated",
            Self::SameTime => "same_time",
            Self::Rejected(_) => "rejected",
            Self::Discarded(why) => why.into_str(),
        }
    }

    /// Why the report was not stored, for its sender; unset for one that was, or that the service has already.
    pub const fn reason(self) -> Option<&'static str> {
        match self {
            Self::Accepted | Self::Repeated | Self::Rejected(_) => None,
            Self::SameTime => Some(
                "not stored: the stored report has the same observed_time and other conditions",
            ),
            Self::Discarded(why) => Some(match why {
                Discard::FutureGeneration => {
                    "not stored: the resource does not have this generation yet"
                }
                Discard::StaleGeneration => {
                    "not stored: the stored report is about a later generation"
                }
                Discard::StaleTime => "not stored: the stored report has a later observed_time",
                Discard::Unknown => "not stored: only the first report may have Available=Unknown",
            }),
        }
    }
}

/// Why a report was discarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "snake_case", prefix = "discarded_")]
pub enum Discard {
    /// It is about a generation that the resource has not reached.
    FutureGeneration,
    /// The adapter has reported on a later generation already.
    StaleGeneration,
    /// The adapter has reported a later observation of this generation.
    StaleTime,
    /// It says `Available=Unknown` after an earlier report of the adapter.
    Unknown,
}

/// Why a report is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidReport {
    /// Only counted: the reader of bodies has the violation.
    #[error("the body is not a report")]
    Unreadable,
    /// It lacks a condition that every adapter must report.
    #[error(
        "missing mandatory condition '{0}': all adapters must report Available, Applied, and Health"
    )]
    Missing(&'static str),
    /// Too many other adapters report on the same resource.
    #[error(
        "this resource has reports of {} adapters already",
        Report::ADAPTERS_MAX
    )]
    TooManyAdapters,
}

/// The metadata of an adapter's job. Stored and returned in this form; unknown members are dropped when it is read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata {
    /// Number of the attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<i32>,
    #[serde(
        default,
        rename = "completed_time",
        serialize_with = "moment::serialize_some",
        skip_serializing_if = "Option::is_none"
    )]
    pub completed_at: Option<DateTime<Utc>>,
    /// In the adapter's own notation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_namespace: Option<String>,
    #[serde(
        default,
        rename = "started_time",
        serialize_with = "moment::serialize_some",
        skip_serializing_if = "Option::is_none"
    )]
    pub started_at: Option<DateTime<Utc>>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use ConditionStatus::{False, True, Unknown};

    fn minute(minute: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(minute * 60, 0).expect("small")
    }

    fn report(
        observed_generation: i32,
        at: i64,
        conditions: &[(&str, ConditionStatus)],
    ) -> ReportState {
        let conditions = conditions.iter().map(|&(kind, status)| ReportedCondition {
            last_transition_at: minute(at),
            message: None,
            reason: None,
            status,
            kind: kind.to_owned(),
        });
        ReportState {
            adapter: "a".to_owned(),
            observed_generation,
            created_at: minute(at),
            reported_at: minute(at),
            conditions: conditions.collect(),
        }
    }

    fn full(observed_generation: i32, at: i64, available: ConditionStatus) -> ReportState {
        let conditions = [(AVAILABLE, available), (APPLIED, True), (HEALTH, True)];
        report(observed_generation, at, &conditions)
    }

    fn existing(generation: i32, at: i64, available: ConditionStatus) -> ReportState {
        let mut stored = full(generation, at, available);
        stored.created_at = minute(4);
        stored.conditions[0].last_transition_at = minute(4);
        stored
    }

    /// The resource is at generation 3.
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
            ("S13", stored(3, 10, True), full(3, 10, False), "same time"),
            ("same", stored(3, 10, True), full(3, 10, True), "repeated"),
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
            let unknown = report.status_of(AVAILABLE) == Some(Unknown);
            let got = match report.judge(3, existing.as_ref()) {
                ReportOutcome::Discarded(why) => format!("{why:?}"),
                ReportOutcome::Repeated => "repeated".to_owned(),
                ReportOutcome::SameTime => "same time".to_owned(),
                ReportOutcome::Accepted if unknown => "stored".to_owned(),
                ReportOutcome::Accepted => "stored, aggregated".to_owned(),
                ReportOutcome::Rejected(InvalidReport::Missing(which)) => which.to_owned(),
                ReportOutcome::Rejected(other) => other.to_string(),
            };
            assert_eq!(got, expected, "{id}");
        }
    }

    #[test]
    fn a_transition_time_moves_only_with_the_status() {
        let before = existing(3, 10, True);
        for (mut report, since) in [(full(3, 11, True), 4), (full(3, 11, False), 11)] {
            report.follow(Some(&before));
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
        let mut report = full(3, 11, True);
        report.follow(Some(&before));
        assert_eq!(report.condition("Extra"), None);
    }

    #[test]
    fn a_report_that_follows_another_twice_is_the_same() {
        let (later, earlier) = (existing(3, 10, False), existing(3, 10, True));
        let mut report = full(3, 11, True);
        report.follow(Some(&earlier));
        report.follow(Some(&later));
        assert_eq!(report.conditions[0].last_transition_at, minute(11));
        let mut first = full(3, 11, True);
        first.follow(None);
        assert_eq!(first, full(3, 11, True));
    }

    #[test]
    fn every_outcome_has_a_label_of_its_own() {
        let labels = ReportOutcome::ALL.map(ReportOutcome::label);
        let distinct: std::collections::BTreeSet<_> = labels.iter().collect();
        assert_eq!(distinct.len(), labels.len());
    }
}
