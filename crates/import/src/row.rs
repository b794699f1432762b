//! Rows of the older service's tables. Any content can be read and reported: JSON and times stay texts, so that they are
//! stored unchanged. They are serialized with the names of this service's columns.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

/// A row of its table `resources`, with the rows of the tables below it.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub(super) struct ResourceRow {
    /// A UUID, unless the row was written by hand.
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) href: Option<String>,
    /// The parent's id, for child kinds.
    pub(super) owner_id: Option<String>,
    pub(super) generation: i64,
    /// RFC 3339; `infinity` and dates before Christ are other texts.
    #[serde(rename(serialize = "created_at"))]
    pub(super) created_time: String,
    #[serde(rename(serialize = "updated_at"))]
    pub(super) updated_time: String,
    /// Set for finalizing resources.
    #[serde(rename(serialize = "deleted_at"))]
    pub(super) deleted_time: Option<String>,
    created_by: String,
    updated_by: String,
    pub(super) deleted_by: Option<String>,
    pub(super) spec: Box<RawValue>,
    pub(super) tenancy: Box<RawValue>,
    pub(super) labels: Box<RawValue>,
    pub(super) conditions: Box<RawValue>,
    pub(super) reports: Vec<ReportRow>,
    pub(super) has_references: bool,
}

/// A row of its table `adapter_statuses`.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub(super) struct ReportRow {
    pub(super) adapter: String,
    pub(super) observed_generation: i64,
    #[serde(rename(serialize = "created_at"))]
    pub(super) created_time: Option<String>,
    #[serde(rename(serialize = "reported_at"))]
    pub(super) last_report_time: Option<String>,
    pub(super) conditions: Box<RawValue>,
    pub(super) data: Option<Box<RawValue>>,
    pub(super) metadata: Option<Box<RawValue>>,
}

/// A row of its table `resource_references`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, sqlx::FromRow)]
pub(super) struct ReferenceRow {
    /// The resource that has the reference.
    pub(super) source_id: Uuid,
    pub(super) ref_type: String,
    pub(super) target_id: String,
    pub(super) target_kind: String,
}

impl ResourceRow {
    /// The memory of its documents.
    pub(super) fn bytes(&self) -> usize {
        let of_report = |report: &ReportRow| {
            let data = report.data.as_ref().map_or(0, |data| data.get().len());
            report.conditions.get().len() + data
        };
        let reports: usize = self.reports.iter().map(of_report).sum();
        self.spec.get().len() + self.conditions.get().len() + reports
    }
}
