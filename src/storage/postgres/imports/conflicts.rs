//! Finds resources of the source that conflict with rows of this database.

use sqlx::types::Json;

use crate::domain::ResourceId;
use crate::domain::import::{ImportReason, ImportedResource};
use crate::storage::postgres::measure::SqlOperation::Bulk;
use crate::storage::postgres::measure::SqlTable::Resources;
use crate::storage::postgres::{Db, Error, uuids};

/// A resource that cannot be written beside the rows here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    pub id: ResourceId,
    pub reason: ImportReason,
    /// The resource that has its name.
    pub holder: Option<ResourceId>,
}

impl Db<'_> {
    /// Which of these resources cannot be written beside the rows here. `has_owners` says whether their owners are
    /// here, as in all runs but dry ones.
    pub async fn list_conflicts(
        &mut self,
        resources: &[ImportedResource],
        has_owners: bool,
    ) -> Result<Vec<Conflict>, Error> {
        let all = || resources.iter().map(|i| &i.resource);
        let kinds: Vec<_> = all().map(|r| r.state.kind.clone()).collect();
        let names: Vec<_> = all().map(|r| r.state.name.as_str().to_owned()).collect();
        let owners: Vec<_> = all()
            .map(|r| r.state.owner.map(ResourceId::as_uuid))
            .collect();
        let tenancies: Vec<_> = all().map(|r| Json(&r.tenancy)).collect();
        let is_active: Vec<_> = all().map(|r| !r.state.is_finalizing()).collect();
        // `LATERAL` with a limit looks names up in their unique indexes. The planner would join without them while a new
        // table has no statistics: 1,000 roots beside 8,000 took 7 s.
        let result = sqlx::query!(
            r#"WITH given AS MATERIALIZED (
                   SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::uuid[], $5::jsonb[], $6::bool[])
                   g (id, kind, name, owner_id, tenancy, is_active)
               )
               SELECT g.id AS "id!", i.id IS NOT NULL AS "is_imported!", NULL::uuid AS holder, false AS "is_orphan!"
               FROM given g JOIN resources r ON r.id = g.id LEFT JOIN imported_resources i ON i.id = r.id
               WHERE i.revision IS DISTINCT FROM r.revision
               UNION ALL
               SELECT g.id, true, r.id, false FROM given g CROSS JOIN LATERAL (
                   SELECT id FROM resources WHERE owner_id IS NULL AND deleted_at IS NULL
                    AND kind = g.kind AND name = g.name AND tenancy = g.tenancy LIMIT 1) r
               WHERE g.is_active AND g.owner_id IS NULL AND r.id <> g.id
               UNION ALL
               SELECT g.id, true, r.id, false FROM given g CROSS JOIN LATERAL (
                   SELECT id FROM resources WHERE owner_id = g.owner_id AND deleted_at IS NULL
                    AND kind = g.kind AND name = g.name LIMIT 1) r
               WHERE g.is_active AND r.id <> g.id
               UNION ALL
               SELECT g.id, true, NULL, true FROM given g
               WHERE $7 AND g.owner_id IS NOT NULL AND NOT EXISTS (SELECT FROM resources r WHERE r.id = g.owner_id)"#,
            &uuids(all().map(|r| r.state.id)),
            &kinds,
            &names,
            &owners as _,
            &tenancies as _,
            &is_active,
            has_owners,
        )
        .fetch_all(self.connection())
        .await;
        let rows = self.complete(result, Bulk(Resources), "look for conflicts")?;
        let conflicts = rows.into_iter().map(|row| Conflict {
            id: row.id.into(),
            reason: match (row.holder, row.is_imported) {
                _ if row.is_orphan => ImportReason::NoParent,
                (Some(_), _) => ImportReason::NameTaken,
                (None, true) => ImportReason::ChangedHere,
                (None, false) => ImportReason::IdTaken,
            },
            holder: row.holder.map(Into::into),
        });
        Ok(conflicts.collect())
    }
}
