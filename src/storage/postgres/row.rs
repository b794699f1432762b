//! Rows of table `resources` and what they become.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::{Map, Value};
use sqlx::types::Json;
use uuid::Uuid;

use crate::domain::{
    Condition, Deletion, Labels, Reference, References, Resource, ResourceState, Tenancy,
};

/// A whole resource.
#[derive(sqlx::FromRow)]
pub(super) struct ResourceRow {
    pub(super) id: Uuid,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) owner_id: Option<Uuid>,
    pub(super) generation: i32,
    pub(super) revision: i64,
    pub(super) created_at: DateTime<Utc>,
    pub(super) created_by: String,
    pub(super) updated_at: DateTime<Utc>,
    pub(super) updated_by: String,
    pub(super) deleted_at: Option<DateTime<Utc>>,
    pub(super) deleted_by: Option<String>,
    pub(super) spec: Json<Map<String, Value>>,
    pub(super) labels: Json<Labels>,
    pub(super) tenancy: Json<Tenancy>,
    pub(super) conditions: Json<Vec<Condition>>,
    pub(super) links: Option<Json<Vec<Link>>>,
}

/// The columns of [`ResourceRow`], of a table `r`.
pub(super) const COLUMNS: &str = "r.id, r.kind, r.name, r.owner_id, r.generation, r.revision, \
     r.created_at, r.created_by, r.updated_at, r.updated_by, r.deleted_at, r.deleted_by, r.spec, \
     r.labels, r.tenancy, r.conditions, (SELECT jsonb_agg(jsonb_build_object(\
     'type', ref_type, 'kind', target_kind, 'id', target_id)) \
     FROM resource_references WHERE source_id = r.id) AS links";

/// One reference of a resource, as the `links` column gives it.
#[derive(Deserialize)]
pub(super) struct Link {
    #[serde(rename = "type")]
    ref_type: String,
    kind: String,
    id: Uuid,
}

/// The columns that rules look at, from either row: they have them under the same names.
macro_rules! state_of {
    ($row:ident) => {
        ResourceState {
            id: $row.id.into(),
            kind: $row.kind,
            name: $crate::domain::ResourceName::stored($row.name),
            owner: $row.owner_id.map(Into::into),
            generation: $row.generation,
            revision: $row.revision,
            updated_at: $row.updated_at,
            deletion: $crate::storage::postgres::row::deletion($row.deleted_at, $row.deleted_by),
            conditions: $row.conditions.0,
        }
    };
}

pub(super) use state_of;

impl From<ResourceRow> for Resource {
    fn from(row: ResourceRow) -> Self {
        Self {
            state: state_of!(row),
            spec: row.spec.0,
            labels: row.labels.0,
            references: references(row.links.map_or_else(Vec::new, |links| links.0)),
            tenancy: row.tenancy.0,
            created_at: row.created_at,
            created_by: row.created_by,
            updated_by: row.updated_by,
        }
    }
}

/// Both columns are set, or neither: a constraint of the table.
pub(super) fn deletion(at: Option<DateTime<Utc>>, by: Option<String>) -> Option<Deletion> {
    at.zip(by).map(|(at, by)| Deletion { at, by })
}

pub(super) fn references(links: Vec<Link>) -> References {
    let mut references: References = BTreeMap::new();
    for Link { ref_type, kind, id } in links {
        let reference = Reference {
            kind,
            id: id.into(),
        };
        references.entry(ref_type).or_default().push(reference);
    }
    for targets in references.values_mut() {
        targets.sort();
    }
    references
}
