//! Adapter reports: what an adapter says of a resource, and what is kept of it.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{ConditionStatus, moment};

/// The condition types that every report must carry (domain rule: reports without them say too
/// little to be aggregated), in the order in which a missing one is named.
pub const MANDATORY: [&str; 3] = [AVAILABLE, APPLIED, HEALTH];
/// Whether the adapter's work is done and usable. The one condition that is aggregated.
pub const AVAILABLE: &str = "Available";
/// Whether the adapter has applied what is wanted.
pub const APPLIED: &str = "Applied";
/// Whether the adapter itself is well.
pub const HEALTH: &str = "Health";
/// Whether the adapter has cleaned up after a deletion.
pub const FINALIZED: &str = "Finalized";

/// A report as it comes in.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Who says it. Any name; only the required adapters of the kind count.
    pub adapter: String,
    /// The generation it speaks of.
    pub observed_generation: i32,
    /// When it looked, by its own clock, in whole microseconds.
    pub observed_at: DateTime<Utc>,
    /// What it saw, types unique, in its own order. `last_transition_at` is not yet known.
    pub conditions: Vec<ObservedCondition>,
    /// Anything else it wants other adapters to see.
    pub data: Map<String, Value>,
    /// About the job that did the work.
    pub metadata: Option<Metadata>,
}

impl Report {
    /// Longest adapter name, in bytes.
    pub const ADAPTER_BYTES_MAX: usize = 255;
    /// Most conditions in one report.
    pub const CONDITIONS_MAX: usize = 100;
    /// Longest condition type, in bytes; this and the next two as Kubernetes has them.
    pub const TYPE_BYTES_MAX: usize = 316;
    /// Longest reason, in bytes.
    pub const REASON_BYTES_MAX: usize = 1024;
    /// Longest message, in bytes.
    pub const MESSAGE_BYTES_MAX: usize = 32_768;
    /// Most texts of all conditions together, in bytes: every later report on the same resource
    /// reads them again.
    pub const TEXTS_BYTES_MAX: usize = 131_072;
    /// Longest text of the metadata, in bytes.
    pub const METADATA_BYTES_MAX: usize = 1024;
    /// Most adapters that report on one resource.
    pub const ADAPTERS_MAX: usize = 256;
    /// How far an adapter's clock may be ahead of ours, in minutes.
    pub const AHEAD_MINUTES_MAX: i64 = 5;
    /// How old an observation may be when it arrives, in minutes.
    pub const AGE_MINUTES_MAX: i64 = 30;

    /// What it says of one condition type.
    #[must_use]
    pub fn status_of(&self, kind: &str) -> Option<ConditionStatus> {
        let condition = self.conditions.iter().find(|c| c.kind == kind);
        condition.map(|c| c.status)
    }
}

/// One condition of a report, as it comes in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedCondition {
    /// What it is about.
    pub kind: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// For programs.
    pub reason: Option<String>,
    /// For people.
    pub message: Option<String>,
}

/// One condition of a stored report; stored and shown in this very shape.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedCondition {
    /// Since when the adapter has been saying this status.
    #[serde(rename = "last_transition_time")]
    #[serde(serialize_with = "moment::serialize")]
    pub last_transition_at: DateTime<Utc>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// For programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// What it is about.
    #[serde(rename = "type")]
    pub kind: String,
}

/// What rules need of a stored report: the latest accepted one of its adapter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportState {
    /// Who said it.
    pub adapter: String,
    /// The generation it speaks of.
    pub observed_generation: i32,
    /// When the adapter first reported on this resource.
    pub created_at: DateTime<Utc>,
    /// When the adapter looked.
    pub reported_at: DateTime<Utc>,
    /// What it saw.
    pub conditions: Vec<ReportedCondition>,
}

impl ReportState {
    /// One condition of it.
    #[must_use]
    pub fn condition(&self, kind: &str) -> Option<&ReportedCondition> {
        self.conditions.iter().find(|c| c.kind == kind)
    }

    /// Whether it says `Finalized=True`.
    #[must_use]
    pub fn is_finalized(&self) -> bool {
        self.condition(FINALIZED)
            .is_some_and(|c| c.status == ConditionStatus::True)
    }
}

/// A stored report with everything that a client sees of it.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredReport {
    /// What rules look at.
    pub state: ReportState,
    /// What the adapter added.
    pub data: Map<String, Value>,
    /// About its job.
    pub metadata: Option<Metadata>,
}

/// About the job that an adapter ran. Stored and shown in this very shape; unknown members are
/// dropped when it is read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata {
    /// Which attempt it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<i32>,
    /// When the job ended.
    #[serde(
        default,
        rename = "completed_time",
        serialize_with = "moment::serialize_some",
        skip_serializing_if = "Option::is_none"
    )]
    pub completed_at: Option<DateTime<Utc>>,
    /// How long it took, in the adapter's own notation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_name: Option<String>,
    /// Where it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_namespace: Option<String>,
    /// When the job started.
    #[serde(
        default,
        rename = "started_time",
        serialize_with = "moment::serialize_some",
        skip_serializing_if = "Option::is_none"
    )]
    pub started_at: Option<DateTime<Utc>>,
}
