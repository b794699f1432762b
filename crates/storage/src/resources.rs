//! Table `resources`: whether rows exist and are seen, and locks of single rows. They are read, inserted, saved and removed
//! by one statement each: `read_resources`, `insert_resources`, `save_resources`, `save_reports`, `remove_resources`.

use std::collections::HashSet;

use sqlx::types::Json;

use super::measure::SqlOperation::Query;
use super::measure::SqlTable::Resources;
use super::{Db, Error, uuids};
use hyperfleet_domain::ResourceId;
use hyperfleet_domain::audit::ChangeOrigin;
use hyperfleet_domain::tenancy::TenantScope;

impl Db<'_> {
    pub async fn has_resource(
        &mut self,
        tenants: &TenantScope,
        kind: &str,
        id: ResourceId,
    ) -> Result<bool, Error> {
        let result = sqlx::query_scalar!(
            r#"SELECT EXISTS (SELECT FROM resources WHERE id = $1 AND kind = $2
                              AND ($3::jsonb IS NULL OR tenancy = $3)) AS "exists!""#,
            id.as_uuid(),
            kind,
            tenants.tenancy().map(Json) as _,
        )
        .fetch_one(self.repeatable_connection())
        .await;
        self.complete(result, Query(Resources), "look for a resource")
    }

    /// Which of these resources a tenant sees, including those that this transaction has removed: `origin` is the
    /// origin of its changes.
    pub async fn list_seen(
        &mut self,
        tenants: &TenantScope,
        ids: &[ResourceId],
        origin: &ChangeOrigin,
    ) -> Result<HashSet<ResourceId>, Error> {
        let result = sqlx::query_scalar!(
            r#"SELECT id AS "id!" FROM resources
               WHERE id = ANY($1) AND ($2::jsonb IS NULL OR tenancy = $2)
               UNION
               SELECT resource_id FROM audit_entries
               WHERE resource_id = ANY($1) AND ($2::jsonb IS NULL OR tenancy = $2) AND request_id = $3 AND at = $4"#,
            &uuids(ids.iter().copied()),
            tenants.tenancy().map(Json) as _,
            origin.request_id,
            origin.at,
        )
        .fetch_all(self.connection())
        .await;
        let ids = self.complete(result, Query(Resources), "look for seen resources")?;
        Ok(ids.into_iter().map(ResourceId::from).collect())
    }

    /// Locks a parent, if the caller sees it, until the transaction ends: children can be created, and it cannot be
    /// changed.
    pub async fn lock_parent(
        &mut self,
        tenants: &TenantScope,
        id: ResourceId,
    ) -> Result<(), Error> {
        let result = sqlx::query!(
            "SELECT FROM resources WHERE id = $1 AND ($2::jsonb IS NULL OR tenancy = $2) FOR SHARE",
            id.as_uuid(),
            tenants.tenancy().map(Json) as _,
        )
        .execute(self.connection())
        .await;
        self.complete(result, Query(Resources), "lock a parent")?;
        Ok(())
    }

    /// Locks one row, if the caller sees it, until the transaction ends.
    pub async fn lock_resource(
        &mut self,
        tenants: &TenantScope,
        id: ResourceId,
    ) -> Result<(), Error> {
        let result = sqlx::query!(
            "SELECT FROM resources WHERE id = $1 AND ($2::jsonb IS NULL OR tenancy = $2) FOR NO KEY UPDATE",
            id.as_uuid(),
            tenants.tenancy().map(Json) as _,
        )
        .execute(self.connection())
        .await;
        self.complete(result, Query(Resources), "lock a resource")?;
        Ok(())
    }
}
