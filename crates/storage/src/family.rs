//! Several resources at a time: locked in one order, read after they are locked, changed by sets. The number of
//! statements does not depend on the number of rows.

use sqlx::types::Json;

use super::batching::BatchItem as _;
use super::measure::SqlOperation::{Create, Delete, Query};
use super::measure::SqlTable::{ResourceReferences, Resources};
use super::save_resources::SaveResource;
use super::{Db, Error, LockedRow, ResourceScope, uuids};
use hyperfleet_domain::lifecycle::{Outcome, Referrer};
use hyperfleet_domain::reference::ReferenceTarget;
use hyperfleet_domain::tenancy::TenantScope;
use hyperfleet_domain::{References, ResourceId, ResourceState, audit::ChangeOrigin};

/// A locked resource with its owners.
#[derive(Debug)]
pub struct LockedLineage {
    /// The topmost owner first, the resource last.
    pub rows: Vec<LockedRow>,
    pub kind: String,
}

impl Db<'_> {
    /// Locks a resource and all its owners, topmost first; `None` if the resource does not exist.
    pub async fn lock_lineage(
        &mut self,
        scope: ResourceScope<'_>,
    ) -> Result<Option<LockedLineage>, Error> {
        let result = sqlx::query!(
            "WITH RECURSIVE lineage AS (
                 SELECT id, owner_id, 0 AS level FROM resources
                 WHERE id = $1 AND ($2::text IS NULL OR kind = $2) AND ($3::uuid IS NULL OR owner_id = $3)
                   AND ($4::jsonb IS NULL OR tenancy = $4 AND ($3::uuid IS NULL OR has_tenancy($3, $4)))
                 UNION ALL
                 SELECT p.id, p.owner_id, l.level + 1 FROM resources p JOIN lineage l ON p.id = l.owner_id
             )
             SELECT r.id, r.kind FROM resources r JOIN lineage l ON l.id = r.id
             ORDER BY l.level DESC FOR UPDATE OF r",
            scope.id.as_uuid(),
            scope.kind,
            scope.owner_uuid(),
            scope.tenancy() as _,
        )
        .fetch_all(self.connection())
        .await;
        let found = self.complete(result, Query(Resources), "lock a resource and its owners")?;
        let rows = found.iter().map(|row| LockedRow::of(row.id)).collect();
        // Another transaction may have removed it while this one waited for its lock.
        let last = found.into_iter().last();
        let resource = last.filter(|row| row.id == scope.id.as_uuid());
        Ok(resource.map(|row| LockedLineage {
            rows,
            kind: row.kind,
        }))
    }

    /// Locks the direct children of these resources, in the order of their ids. The tenant does not matter: a change
    /// to an owner applies to its children.
    pub async fn lock_children(&mut self, owners: &[LockedRow]) -> Result<Vec<LockedRow>, Error> {
        let result = sqlx::query_scalar!(
            "SELECT id FROM resources WHERE owner_id = ANY($1) ORDER BY id FOR UPDATE",
            &uuids(owners.iter().map(|h| h.id())),
        )
        .fetch_all(self.connection())
        .await;
        let ids = self.complete(result, Query(Resources), "lock the children of resources")?;
        Ok(ids.into_iter().map(LockedRow::of).collect())
    }

    /// Locks resources in the order of `ids` and returns those that exist.
    pub async fn lock_targets(
        &mut self,
        tenants: &TenantScope,
        ids: &[ResourceId],
    ) -> Result<Vec<ReferenceTarget>, Error> {
        let result = sqlx::query!(
            r#"SELECT r.id, r.kind, r.deleted_at IS NOT NULL AS "is_deleting!"
               FROM resources r JOIN unnest($1::uuid[]) WITH ORDINALITY wanted (id, place) ON wanted.id = r.id
               WHERE $2::jsonb IS NULL OR r.tenancy = $2
               ORDER BY wanted.place FOR NO KEY UPDATE OF r"#,
            &uuids(ids.iter().copied()),
            tenants.tenancy().map(Json) as _,
        )
        .fetch_all(self.connection())
        .await;
        let rows = self.complete(result, Query(Resources), "lock the targets of references")?;
        let targets = rows.into_iter().map(|row| ReferenceTarget {
            id: row.id.into(),
            kind: row.kind,
            is_deleting: row.is_deleting,
        });
        Ok(targets.collect())
    }

    /// The active resources that reference any of these, and whether the caller sees them.
    pub async fn list_referrers(
        &mut self,
        tenants: &TenantScope,
        targets: &[LockedRow],
    ) -> Result<Vec<Referrer>, Error> {
        let result = sqlx::query!(
            r#"SELECT DISTINCT l.target_id, s.id, s.kind, s.name,
                      ($2::jsonb IS NULL OR s.tenancy = $2) AS "is_seen!"
               FROM resource_references l JOIN resources s ON s.id = l.source_id
               WHERE l.target_id = ANY($1) AND s.deleted_at IS NULL"#,
            &uuids(targets.iter().map(|h| h.id())),
            tenants.tenancy().map(Json) as _,
        )
        .fetch_all(self.connection())
        .await;
        let rows = self.complete(result, Query(ResourceReferences), "list referrers")?;
        let referrers = rows.into_iter().map(|row| Referrer {
            target: row.target_id.into(),
            kind: row.kind,
            name: row.name,
            id: row.id.into(),
            is_seen: row.is_seen,
        });
        Ok(referrers.collect())
    }

    /// Replaces the references of a resource.
    pub async fn replace_references(
        &mut self,
        source: ResourceId,
        references: &References,
    ) -> Result<(), Error> {
        let (mut types, mut kinds, mut targets) = (Vec::new(), Vec::new(), Vec::new());
        for (ref_type, links) in references {
            for link in links {
                types.push(ref_type.clone());
                kinds.push(link.kind.clone());
                targets.push(link.id.as_uuid());
            }
        }
        let result = sqlx::query!(
            "DELETE FROM resource_references WHERE source_id = $1",
            source.as_uuid()
        )
        .execute(self.connection())
        .await;
        self.complete(result, Delete(ResourceReferences), "remove references")?;
        let result = sqlx::query!(
            "INSERT INTO resource_references (source_id, ref_type, target_kind, target_id)
             SELECT $1, * FROM unnest($2::text[], $3::text[], $4::uuid[])",
            source.as_uuid(),
            &types,
            &kinds,
            &targets,
        )
        .execute(self.connection())
        .await;
        self.complete(result, Create(ResourceReferences), "insert references")?;
        Ok(())
    }

    /// Carries out the outcome of a deletion or a removal. All its rows must be locked; `has_links` says whether any
    /// of them has a reference, or is the target of one.
    ///
    /// Each row is written with its audit entries: the trail records the tenancies of resources while they exist.
    pub async fn carry_out(
        &mut self,
        outcome: &Outcome,
        has_links: bool,
        origin: &ChangeOrigin,
    ) -> Result<(), Error> {
        let Outcome {
            saved,
            removed,
            released,
            changes,
            failures: _,
        } = outcome;
        // A target cannot be removed before the references to it.
        if has_links && !(released.is_empty() && removed.is_empty()) {
            self.delete_references(released, removed).await?;
        }
        let (of_saved, of_removed): (Vec<_>, Vec<_>) = changes
            .iter()
            .partition(|change| saved.iter().any(|state| state.id == change.id));
        if !saved.is_empty() {
            let place = |state: &ResourceState| of_saved.iter().position(|c| c.id == state.id);
            let mut saved: Vec<_> = saved.iter().map(|state| (place(state), state)).collect();
            // Audit entries have the order of the changes.
            saved.sort_by_key(|(place, _)| *place);
            let saved = saved.into_iter().map(|(place, state)| {
                let change = place.map(|place| of_saved[place]);
                SaveResource::locked(state, change, origin)
            });
            SaveResource::answer(self, &saved.collect::<Vec<_>>()).await?;
        }
        if !removed.is_empty() {
            self.remove_resources(removed, &of_removed, origin).await?;
        }
        Ok(())
    }

    /// Drops the references of finalizing resources, and all references to removed ones.
    async fn delete_references(
        &mut self,
        released: &[ResourceId],
        removed: &[ResourceId],
    ) -> Result<(), Error> {
        let result = sqlx::query!(
            "DELETE FROM resource_references WHERE source_id = ANY($1) OR target_id = ANY($2)",
            &uuids(released.iter().copied()),
            &uuids(removed.iter().copied()),
        )
        .execute(self.connection())
        .await;
        self.complete(result, Delete(ResourceReferences), "drop references")?;
        Ok(())
    }
}
