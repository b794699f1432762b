//! The resources around one, as the function `surroundings` of the database returns them.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use uuid::Uuid;

use hyperfleet_domain::Condition;
use hyperfleet_domain::explain::{
    DESCENDANTS_MAX, Descendant, Kin, REFERRERS_MAX, SourceOfReference, Surroundings,
};

/// Limit of both lists.
pub(super) const ROWS_MAX: usize = DESCENDANTS_MAX;

const _: () = assert!(ROWS_MAX == REFERRERS_MAX, "the function has one limit");

/// A row of the function. A list without entries is null.
#[derive(Debug, Default, Deserialize)]
pub(super) struct SurroundingsColumn {
    descendants: Option<Vec<DescendantColumn>>,
    referrers: Option<Vec<ReferrerColumn>>,
}

#[derive(Debug, Deserialize)]
struct DescendantColumn {
    id: Uuid,
    kind: String,
    name: String,
    owner: Option<Uuid>,
    level: usize,
    updated_at: DateTime<Utc>,
    deleted_at: Option<DateTime<Utc>>,
    reconciled: Option<Condition>,
    is_seen: bool,
}

#[derive(Debug, Deserialize)]
struct ReferrerColumn {
    id: Uuid,
    kind: String,
    name: String,
    owner: Option<Uuid>,
    ref_type: String,
    target: Uuid,
    is_inside: bool,
    is_seen: bool,
}

impl From<SurroundingsColumn> for Surroundings {
    fn from(column: SurroundingsColumn) -> Self {
        let descendants = column.descendants.into_iter().flatten();
        let referrers = column.referrers.into_iter().flatten();
        Self {
            descendants: descendants.map(Descendant::from).collect(),
            referrers: referrers.map(SourceOfReference::from).collect(),
        }
    }
}

impl From<DescendantColumn> for Descendant {
    fn from(column: DescendantColumn) -> Self {
        Self {
            kin: Kin {
                kind: column.kind,
                name: column.name,
                id: column.id.into(),
                owner: column.owner.map(Into::into),
            },
            level: column.level,
            updated_at: column.updated_at,
            deleted_at: column.deleted_at,
            reconciled: column.reconciled,
            is_seen: column.is_seen,
        }
    }
}

impl From<ReferrerColumn> for SourceOfReference {
    fn from(column: ReferrerColumn) -> Self {
        Self {
            kin: Kin {
                kind: column.kind,
                name: column.name,
                id: column.id.into(),
                owner: column.owner.map(Into::into),
            },
            ref_type: column.ref_type,
            target: column.target.into(),
            is_inside: column.is_inside,
            is_seen: column.is_seen,
        }
    }
}
