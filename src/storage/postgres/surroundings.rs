//! Reads the resources around one, for its explanation, in one statement.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use sqlx::types::Json;
use uuid::Uuid;

use super::measure::SqlOperation::Query;
use super::measure::SqlTable::Resources;
use super::{Db, Error};
use crate::domain::explain::{
    DESCENDANTS_MAX, Descendant, Kin, LEVELS_MAX, REFERRERS_MAX, SourceOfReference, Surroundings,
};
use crate::domain::tenancy::TenantScope;
use crate::domain::{Condition, ResourceId};

const _: () = assert!(
    DESCENDANTS_MAX == REFERRERS_MAX,
    "the function has one limit"
);

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

impl Db<'_> {
    /// The descendants of a resource, and the active resources that reference any of the family from outside, up to
    /// the limits of explanations. Empty for a resource that is gone.
    pub async fn find_surroundings(
        &mut self,
        tenants: &TenantScope,
        id: ResourceId,
    ) -> Result<Surroundings, Error> {
        let result = sqlx::query!(
            r#"SELECT descendants AS "descendants: Json<Vec<DescendantColumn>>",
                      referrers AS "referrers: Json<Vec<ReferrerColumn>>"
               FROM surroundings($1, $2, $3, $4)"#,
            id.as_uuid(),
            tenants.tenancy().map(Json) as _,
            i32::try_from(LEVELS_MAX).unwrap_or(i32::MAX),
            i64::try_from(DESCENDANTS_MAX).unwrap_or(i64::MAX),
        )
        .fetch_one(self.repeatable_wire())
        .await;
        let row = self.complete(
            result,
            Query(Resources),
            "find the surroundings of a resource",
        )?;
        let descendants = row.descendants.map_or_else(Vec::new, |column| column.0);
        let referrers = row.referrers.map_or_else(Vec::new, |column| column.0);
        Ok(Surroundings {
            descendants: descendants.into_iter().map(Descendant::from).collect(),
            referrers: referrers.into_iter().map(SourceOfReference::from).collect(),
        })
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
