//! Rows of the older service's tables, as texts: whatever they hold can be read and reported.

use serde::Deserialize;
use serde_json::value::RawValue;

/// A row of its table `resources`, with the rows of the tables below it. JSON stays text, so that it is stored
/// exactly as it was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceResource {
    /// A UUID, unless somebody wrote the row by hand.
    pub id: String,
    /// The kind.
    pub kind: String,
    /// The name.
    pub name: String,
    /// The stored path.
    pub href: Option<String>,
    /// The parent's id, for child kinds.
    pub owner_id: Option<String>,
    /// The generation.
    pub generation: i64,
    /// RFC 3339; `infinity` and dates before Christ are other texts.
    pub created_time: String,
    /// As `created_time`.
    pub updated_time: String,
    /// As `created_time`, for finalizing resources.
    pub deleted_time: Option<String>,
    /// The author.
    pub created_by: String,
    /// The author of the last change.
    pub updated_by: String,
    /// The author of the deletion.
    pub deleted_by: Option<String>,
    /// JSON.
    pub spec: String,
    /// JSON: dimension to value.
    pub tenancy: String,
    /// JSON: key to value.
    pub labels: String,
    /// JSON: conditions with the members of ours.
    pub conditions: String,
    /// JSON: an array of [`SourceReport`].
    pub reports: String,
    /// Whether the resource has references.
    pub has_references: bool,
}

impl SourceResource {
    /// How much memory its documents take.
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
    /// The type of the reference.
    pub ref_type: String,
    /// The target.
    pub target_id: String,
    /// The target's kind.
    pub target_kind: String,
}

/// A row of its table `adapter_statuses` without a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceOrphan {
    /// Kind of the missing resource.
    pub kind: String,
    /// Its id.
    pub id: String,
    /// Who reported.
    pub adapter: String,
}
