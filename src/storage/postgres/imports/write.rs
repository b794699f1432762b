//! Writes of an import: sets of rows, in one statement for each batch.

use chrono::{DateTime, Utc};
use serde_json::value::RawValue;
use sqlx::types::Json;
use uuid::Uuid;

use crate::domain::import::{ImportedParts, ImportedResource};
use crate::domain::{Condition, Labels, Reference, ResourceId, Tenancy};
use crate::storage::postgres::measure::SqlOperation::Bulk;
use crate::storage::postgres::measure::SqlTable::{AdapterReports, ResourceReferences, Resources};
use crate::storage::postgres::{Db, Error, uuids};

/// A reference to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenReference {
    /// The resource that has it.
    pub source: ResourceId,
    pub ref_type: String,
    pub target: Reference,
}

impl Db<'_> {
    /// Writes resources, and records them as imported. Returns those that were written: an existing one is written
    /// only if it was imported and not changed since, and one that was removed here since does not come back.
    /// Resources that were imported before must be locked.
    pub async fn save_imported(
        &mut self,
        resources: &[ImportedResource],
    ) -> Result<Vec<ResourceId>, Error> {
        let columns = Columns::of(resources);
        let result = sqlx::query_scalar!(
            r#"WITH given AS MATERIALIZED (
                   SELECT * FROM unnest(
                       $1::uuid[], $2::uuid[], $3::timestamptz[], $4::timestamptz[], $5::timestamptz[], $6::int[],
                       $7::text[], $8::text[], $9::text[], $10::text[], $11::text[], $12::jsonb[], $13::jsonb[],
                       $14::jsonb[], $15::jsonb[], $16::bool[])
                   g (id, owner_id, created_at, updated_at, deleted_at, generation, kind, name, created_by,
                      updated_by, deleted_by, tenancy, labels, conditions, spec, is_complete)
               ), written AS (
                   INSERT INTO resources AS r (id, owner_id, created_at, updated_at, deleted_at, generation, kind,
                       name, created_by, updated_by, deleted_by, tenancy, labels, conditions, spec)
                   SELECT id, owner_id, created_at, updated_at, deleted_at, generation, kind, name, created_by,
                          updated_by, deleted_by, tenancy, labels, conditions, spec FROM given g
                   WHERE NOT EXISTS (SELECT FROM imported_resources i WHERE i.id = g.id)
                      OR EXISTS (SELECT FROM resources r WHERE r.id = g.id)
                   ON CONFLICT (id) DO UPDATE
                   SET owner_id = excluded.owner_id, name = excluded.name,
                       created_at = excluded.created_at, updated_at = excluded.updated_at,
                       deleted_at = excluded.deleted_at, generation = excluded.generation,
                       created_by = excluded.created_by, updated_by = excluded.updated_by,
                       deleted_by = excluded.deleted_by, tenancy = excluded.tenancy, labels = excluded.labels,
                       conditions = excluded.conditions, spec = excluded.spec, revision = r.revision + 1
                   WHERE EXISTS (SELECT FROM imported_resources i WHERE i.id = r.id AND i.revision = r.revision)
                   RETURNING r.id, r.revision
               )
               INSERT INTO imported_resources (id, revision, is_complete)
               SELECT w.id, w.revision, g.is_complete FROM written w JOIN given g ON g.id = w.id
               ON CONFLICT (id) DO UPDATE SET revision = excluded.revision, is_complete = excluded.is_complete
               RETURNING id"#,
            &columns.ids,
            &columns.owners as _,
            &columns.created_at,
            &columns.updated_at,
            &columns.deleted_at as _,
            &columns.generations,
            &columns.kinds,
            &columns.names,
            &columns.created_by,
            &columns.updated_by,
            &columns.deleted_by as _,
            &columns.tenancies as _,
            &columns.labels as _,
            &columns.conditions as _,
            &columns.specs as _,
            &columns.is_complete,
        )
        .fetch_all(self.connection())
        .await;
        let written = self.complete(result, Bulk(Resources), "write imported resources")?;
        Ok(written.into_iter().map(Into::into).collect())
    }

    /// Removes the reports and the references of resources, before those of the source are written.
    pub async fn clear_imported_parts(&mut self, ids: &[ResourceId]) -> Result<(), Error> {
        let ids = uuids(ids.iter().copied());
        let result = sqlx::query!(
            "DELETE FROM adapter_reports WHERE resource_id = ANY($1)",
            &ids
        )
        .execute(self.connection())
        .await;
        self.complete(result, Bulk(AdapterReports), "remove older reports")?;
        let result = sqlx::query!(
            "DELETE FROM resource_references WHERE source_id = ANY($1)",
            &ids
        )
        .execute(self.connection())
        .await;
        self.complete(result, Bulk(ResourceReferences), "remove older references")?;
        Ok(())
    }

    /// Writes the reports of the resources that `is_written` names. They must have none here.
    pub async fn insert_imported_reports(
        &mut self,
        resources: &[ImportedResource],
        is_written: impl Fn(ResourceId) -> bool,
    ) -> Result<(), Error> {
        let of_all = resources.iter().filter(|i| is_written(i.resource.state.id));
        let of_all = of_all.flat_map(|i| i.reports.iter().map(|r| (i.resource.state.id, r)));
        let all: Vec<_> = of_all.collect();
        if all.is_empty() {
            return Ok(());
        }
        let adapters: Vec<_> = all.iter().map(|(_, r)| r.state.adapter.clone()).collect();
        let generations: Vec<_> = all
            .iter()
            .map(|(_, r)| r.state.observed_generation)
            .collect();
        let created: Vec<_> = all.iter().map(|(_, r)| r.state.created_at).collect();
        let reported: Vec<_> = all.iter().map(|(_, r)| r.state.reported_at).collect();
        let conditions: Vec<_> = all.iter().map(|(_, r)| Json(&r.state.conditions)).collect();
        let data: Vec<_> = all.iter().map(|(_, r)| Json(&*r.data)).collect();
        let metadata: Vec<_> = all
            .iter()
            .map(|(_, r)| r.metadata.as_ref().map(Json))
            .collect();
        let result = sqlx::query!(
            "INSERT INTO adapter_reports (resource_id, adapter, observed_generation, created_at, reported_at,
                                          conditions, data, metadata)
             SELECT * FROM unnest($1::uuid[], $2::text[], $3::int[], $4::timestamptz[], $5::timestamptz[],
                                  $6::jsonb[], $7::jsonb[], $8::jsonb[])",
            &uuids(all.iter().map(|(id, _)| *id)),
            &adapters,
            &generations,
            &created,
            &reported,
            &conditions as _,
            &data as _,
            &metadata as _,
        )
        .execute(self.connection())
        .await;
        self.complete(result, Bulk(AdapterReports), "write imported reports")?;
        Ok(())
    }

    /// Which of these resources are as the last import left them.
    pub async fn list_unchanged_here(
        &mut self,
        ids: &[ResourceId],
    ) -> Result<Vec<ResourceId>, Error> {
        let result = sqlx::query_scalar!(
            "SELECT r.id FROM resources r JOIN imported_resources i ON i.id = r.id AND i.revision = r.revision
             WHERE r.id = ANY($1)",
            &uuids(ids.iter().copied()),
        )
        .fetch_all(self.connection())
        .await;
        let unchanged = self.complete(result, Bulk(Resources), "list what is unchanged")?;
        Ok(unchanged.into_iter().map(Into::into).collect())
    }

    /// Writes references whose targets are here, and raises the revisions of the resources that have new ones.
    pub async fn insert_imported_references(
        &mut self,
        references: &[WrittenReference],
    ) -> Result<(), Error> {
        let types: Vec<_> = references.iter().map(|r| r.ref_type.clone()).collect();
        let kinds: Vec<_> = references.iter().map(|r| r.target.kind.clone()).collect();
        let result = sqlx::query!(
            "WITH written AS (
                 INSERT INTO resource_references (source_id, target_id, ref_type, target_kind)
                 SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[])
                 ON CONFLICT DO NOTHING
                 RETURNING source_id
             ), raised AS (
                 UPDATE resources SET revision = revision + 1 WHERE id IN (SELECT source_id FROM written)
                 RETURNING id, revision
             )
             UPDATE imported_resources i SET revision = r.revision FROM raised r
             WHERE i.id = r.id AND i.revision = r.revision - 1",
            &uuids(references.iter().map(|r| r.source)),
            &uuids(references.iter().map(|r| r.target.id)),
            &types,
            &kinds,
        )
        .execute(self.connection())
        .await;
        self.complete(
            result,
            Bulk(ResourceReferences),
            "write imported references",
        )?;
        Ok(())
    }
}

/// One array per column.
struct Columns<'a> {
    ids: Vec<Uuid>,
    owners: Vec<Option<Uuid>>,
    created_at: Vec<DateTime<Utc>>,
    updated_at: Vec<DateTime<Utc>>,
    deleted_at: Vec<Option<DateTime<Utc>>>,
    generations: Vec<i32>,
    kinds: Vec<String>,
    names: Vec<String>,
    created_by: Vec<String>,
    updated_by: Vec<String>,
    deleted_by: Vec<Option<String>>,
    tenancies: Vec<Json<&'a Tenancy>>,
    labels: Vec<Json<&'a Labels>>,
    conditions: Vec<Json<&'a [Condition]>>,
    specs: Vec<Json<&'a RawValue>>,
    is_complete: Vec<bool>,
}

impl<'a> Columns<'a> {
    fn of(resources: &'a [ImportedResource]) -> Self {
        let all = || resources.iter().map(|i| &i.resource);
        let states = || all().map(|r| &r.state);
        let deletions = || states().map(|s| s.deletion.as_ref());
        Self {
            ids: uuids(states().map(|s| s.id)),
            owners: states().map(|s| s.owner.map(ResourceId::as_uuid)).collect(),
            created_at: all().map(|r| r.created_at).collect(),
            updated_at: states().map(|s| s.updated_at).collect(),
            deleted_at: deletions().map(|d| d.map(|d| d.at)).collect(),
            generations: states().map(|s| s.generation).collect(),
            kinds: states().map(|s| s.kind.clone()).collect(),
            names: states().map(|s| s.name.as_str().to_owned()).collect(),
            created_by: all().map(|r| r.created_by.clone()).collect(),
            updated_by: all().map(|r| r.updated_by.clone()).collect(),
            deleted_by: deletions().map(|d| d.map(|d| d.by.clone())).collect(),
            tenancies: all().map(|r| Json(&r.tenancy)).collect(),
            labels: all().map(|r| Json(&r.labels)).collect(),
            conditions: states().map(|s| Json(s.conditions.as_slice())).collect(),
            specs: resources.iter().map(|i| Json(&*i.spec)).collect(),
            is_complete: resources
                .iter()
                .map(|imported| imported.parts() == ImportedParts::All)
                .collect(),
        }
    }
}
