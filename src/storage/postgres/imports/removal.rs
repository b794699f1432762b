//! Removes resources that the source has removed.

use crate::domain::ResourceId;
use crate::storage::postgres::measure::SqlOperation::Bulk;
use crate::storage::postgres::measure::SqlTable::{ResourceReferences, Resources};
use crate::storage::postgres::{Db, Error, uuids};

impl Db<'_> {
    /// Locks resources in the given order. Returns those that exist.
    pub async fn lock_imported(&mut self, ids: &[ResourceId]) -> Result<Vec<ResourceId>, Error> {
        let result = sqlx::query_scalar!(
            "SELECT r.id FROM resources r JOIN unnest($1::uuid[]) WITH ORDINALITY given (id, place) ON given.id = r.id
             ORDER BY given.place FOR UPDATE OF r",
            &uuids(ids.iter().copied()),
        )
        .fetch_all(self.connection())
        .await;
        let locked = self.complete(result, Bulk(Resources), "lock imported resources")?;
        Ok(locked.into_iter().map(Into::into).collect())
    }

    /// Which imported resources may be removed. A resource stays if it was changed here, if a child of it stays, or if
    /// a resource that was changed here or not imported references it.
    pub async fn list_removable(&mut self, ids: &[ResourceId]) -> Result<Vec<ResourceId>, Error> {
        let ids = uuids(ids.iter().copied());
        let result = sqlx::query_scalar!(
            r#"WITH RECURSIVE given AS (
                   SELECT r.id, r.owner_id,
                          i.revision = r.revision
                          AND NOT EXISTS (SELECT FROM resources c WHERE c.owner_id = r.id AND c.id <> ALL($1))
                          AND NOT EXISTS (SELECT FROM resource_references f WHERE f.target_id = r.id
                              AND NOT EXISTS (SELECT FROM imported_resources o JOIN resources s ON s.id = o.id AND s.revision = o.revision
                                  WHERE o.id = f.source_id)) AS is_free
                   FROM resources r JOIN imported_resources i ON i.id = r.id WHERE r.id = ANY($1)
               ), needed AS (
                   SELECT id, owner_id FROM given WHERE NOT is_free
                   UNION SELECT g.id, g.owner_id FROM given g JOIN needed n ON n.owner_id = g.id
               )
               SELECT id AS "id!" FROM given WHERE id NOT IN (SELECT id FROM needed)"#,
            &ids,
        )
        .fetch_all(self.connection())
        .await;
        let free = self.complete(result, Bulk(Resources), "look for vanished resources")?;
        Ok(free.into_iter().map(Into::into).collect())
    }

    /// Removes imported resources, which are locked, with the references to them.
    pub async fn delete_imported(&mut self, ids: &[ResourceId]) -> Result<(), Error> {
        let ids = uuids(ids.iter().copied());
        let result = sqlx::query!(
            "DELETE FROM resource_references WHERE target_id = ANY($1)",
            &ids
        )
        .execute(self.connection())
        .await;
        self.complete(
            result,
            Bulk(ResourceReferences),
            "remove references to vanished resources",
        )?;
        let result = sqlx::query!(
            "WITH gone AS (DELETE FROM resources WHERE id = ANY($1) RETURNING id)
             DELETE FROM imported_resources WHERE id IN (SELECT id FROM gone)",
            &ids,
        )
        .execute(self.connection())
        .await;
        self.complete(result, Bulk(Resources), "remove vanished resources")?;
        Ok(())
    }
}
