//! Rows of table `resources`, and their conversion.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use sqlx::{Row as _, ValueRef as _};
use uuid::Uuid;

use hyperfleet_domain::{Deletion, JsonText, Reference, References, StoredResource, Tenancy};

/// A complete resource, for a response.
pub(super) struct StoredRow {
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
    pub(super) spec: JsonbText,
    pub(super) labels: JsonbText,
    pub(super) tenancy: Json<Tenancy>,
    pub(super) conditions: JsonbText,
    pub(super) links: Option<Json<Vec<Link>>>,
}

/// The columns of [`StoredRow`] in their order, of a table `r`.
pub(super) const COLUMNS: &str = "r.id, r.kind, r.name, r.owner_id, r.generation, r.revision, \
     r.created_at, r.created_by, r.updated_at, r.updated_by, r.deleted_at, r.deleted_by, r.spec, \
     r.labels, r.tenancy, r.conditions, (SELECT jsonb_agg(jsonb_build_object(\
     'type', ref_type, 'kind', target_kind, 'id', target_id)) \
     FROM resource_references WHERE source_id = r.id) AS links";

/// The same with `null` for the spec, which may be large.
pub(super) static COLUMNS_WITHOUT_SPEC: LazyLock<String> =
    LazyLock::new(|| COLUMNS.replace("r.spec", "'null'::jsonb"));

/// Number of these columns.
pub(super) const COLUMNS_COUNT: usize = 17;
/// The places of two of them.
const SPEC: usize = 12;
const CONDITIONS: usize = 15;

/// The same columns of the view `resource_states` under this name; without specs `null` for each.
pub(super) fn state_columns(view: &str, has_specs: bool) -> String {
    let names = [
        "id",
        "kind",
        "name",
        "owner_id",
        "generation",
        "revision",
        "created_at",
        "created_by",
        "updated_at",
        "updated_by",
        "deleted_at",
        "deleted_by",
        "spec",
        "labels",
        "tenancy",
        "conditions",
        "links",
    ];
    let columns = names.map(|name| match name {
        "spec" if !has_specs => "'null'::jsonb".to_owned(),
        _ => format!("{view}.{name}"),
    });
    columns.join(", ")
}

impl StoredRow {
    /// Reads the [`COLUMNS`], which come first. By position: finding names takes longer than reading.
    pub(super) fn read(row: &PgRow) -> Result<Self, sqlx::Error> {
        Self::read_from(row, 0)
    }

    /// Reads the same columns of `resource_states` from column `first` on. None if they are null, or if the state is not known
    /// because an operator has removed earlier changes.
    pub(super) fn read_state(row: &PgRow, first: usize) -> Result<Option<Self>, sqlx::Error> {
        let is_null = |column: usize| {
            let value = row.try_get_raw(first + column)?;
            Ok::<_, sqlx::Error>(value.is_null())
        };
        if is_null(0)? || is_null(SPEC)? || is_null(CONDITIONS)? {
            return Ok(None);
        }
        Self::read_from(row, first).map(Some)
    }

    /// Reads the same columns from column `first` on.
    fn read_from(row: &PgRow, first: usize) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: row.try_get(first)?,
            kind: row.try_get(first + 1)?,
            name: row.try_get(first + 2)?,
            owner_id: row.try_get(first + 3)?,
            generation: row.try_get(first + 4)?,
            revision: row.try_get(first + 5)?,
            created_at: row.try_get(first + 6)?,
            created_by: row.try_get(first + 7)?,
            updated_at: row.try_get(first + 8)?,
            updated_by: row.try_get(first + 9)?,
            deleted_at: row.try_get(first + 10)?,
            deleted_by: row.try_get(first + 11)?,
            spec: row.try_get(first + 12)?,
            labels: row.try_get(first + 13)?,
            tenancy: row.try_get(first + 14)?,
            conditions: row.try_get(first + 15)?,
            links: row.try_get(first + 16)?,
        })
    }
}

impl From<StoredRow> for StoredResource {
    fn from(row: StoredRow) -> Self {
        Self {
            id: row.id.into(),
            kind: row.kind,
            name: row.name,
            owner: row.owner_id.map(Into::into),
            generation: row.generation,
            revision: row.revision,
            created_at: row.created_at,
            created_by: row.created_by,
            updated_at: row.updated_at,
            updated_by: row.updated_by,
            deletion: deletion(row.deleted_at, row.deleted_by),
            references: references(row.links.map_or_else(Vec::new, |links| links.0)),
            spec: row.spec.0,
            labels: row.labels.0,
            tenancy: row.tenancy.0,
            conditions: row.conditions.0,
        }
    }
}

/// A `jsonb` column as text.
pub(super) type JsonbText = Json<JsonText>;

/// One reference of a resource, as in the `links` column.
#[derive(Deserialize, Serialize)]
pub(super) struct Link {
    #[serde(rename = "type")]
    ref_type: String,
    kind: String,
    id: Uuid,
}

/// Both columns are set, or neither: a constraint of the table.
pub(super) fn deletion(at: Option<DateTime<Utc>>, by: Option<String>) -> Option<Deletion> {
    at.zip(by).map(|(at, by)| Deletion { at, by })
}

/// References as the `links` column has them.
pub(super) fn links(references: &References) -> JsonText {
    let links = references.iter().flat_map(|(ref_type, targets)| {
        targets.iter().map(|target| Link {
            ref_type: ref_type.clone(),
            kind: target.kind.clone(),
            id: target.id.as_uuid(),
        })
    });
    JsonText::of(&links.collect::<Vec<_>>())
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
