//! Rows of the older service's tables, as texts: any content can be read and reported.

use serde::Deserialize;
use serde_json::value::RawValue;

/// A row of its table `resources`, with the rows of the tables below it. JSON stays text, so that it is stored
/// unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceResource {
    /// A UUID, unless the row was written by hand.
    pub id: String,
    pub kind: String,
    pub name: String,
    pub href: Option<String>,
    /// The parent's id, for child kinds.
    pub owner_id: Option<String>,
    pub generation: i64,
    /// RFC 3339; `infinity` and dates before Christ are other texts.
    pub created_time: String,
    /// As `created_time`.
    pub updated_time: String,
    /// As `created_time`, for finalizing resources.
    pub deleted_time: Option<String>,
    pub created_by: String,
    /// The author of the last change.
    pub updated_by: String,
    pub deleted_by: Option<String>,
    /// JSON.
    pub spec: String,
    /// JSON: dimension to value.
    pub tenancy: String,
    /// JSON: key to value.
    pub labels: String,
    /// JSON: conditions with the same members as here.
    pub conditions: String,
    /// JSON: an array of [`SourceReport`].
    pub reports: String,
    pub has_references: bool,
}

impl SourceResource {
    /// The memory of its documents.
    pub fn bytes(&self) -> usize {
        let documents = [&self.spec, &self.reports, &self.conditions, &self.labels];
        documents.into_iter().map(String::len).sum()
    }
}

/// A row of its table `adapter_statuses`, as a member of [`SourceResource::reports`].
#[derive(Debug, Deserialize)]
pub(super) struct SourceReport<'a> {
    pub(super) adapter: String,
    pub(super) observed_generation: i64,
    pub(super) created_time: Option<String>,
    pub(super) last_report_time: Option<String>,
    #[serde(borrow)]
    pub(super) conditions: &'a RawValue,
    pub(super) data: Option<&'a RawValue>,
    pub(super) metadata: Option<&'a RawValue>,
}

/// A row of its table `resource_references`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceReference {
    /// The resource that has the reference.
    pub source_id: String,
    pub ref_type: String,
    pub target_id: String,
    pub target_kind: String,
}

/// A row of its table `adapter_statuses` without a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceOrphan {
    pub kind: String,
    pub id: String,
    pub adapter: String,
}
