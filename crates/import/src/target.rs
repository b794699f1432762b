//! The database of this service: what the import reads and writes there.
//!
//! Every statement is a transaction of its own, and all use one connection, which holds the lock of imports: if it breaks,
//! the lock is gone, and so is every further write.

use std::collections::{HashMap, HashSet};

use serde::Serialize;
use sqlx::ConnectOptions as _;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use uuid::Uuid;

use super::digest;
use super::document::raw;
use super::error::{Context as _, Error};
use super::plan::ImportPlan;
use super::row::ReferenceRow;
use super::translate::ImportedResource;
use hyperfleet_domain::{EntityRegistry, ResourceId};

/// The number of the advisory lock of imports; any number without another use.
const LOCK: i64 = 0x6879_7065_7266_0001;

/// The database of this service, locked against other imports while the connection lives.
pub struct ImportTarget(PgConnection);

/// A resource here.
#[derive(sqlx::FromRow)]
pub(super) struct Standing {
    id: Uuid,
    pub(super) digest: Uuid,
    /// Unset for a resource that was not imported, false for one that was changed here since.
    pub(super) is_as_imported: Option<bool>,
    pub(super) kind: String,
    pub(super) name: String,
}

/// Connects, with what statements of the import rely on in either database. These startup options take precedence over
/// settings of the role and of the database.
pub(super) async fn connect(
    options: &PgConnectOptions,
    own: &[(&str, &str)],
) -> Result<PgConnection, sqlx::Error> {
    let common = [
        // A write that waits for a row lock continues with the new row, instead of failing.
        ("default_transaction_isolation", "read committed"),
        ("timezone", "UTC"),
        ("standard_conforming_strings", "on"),
        // A list of millions takes long, and a batch may wait for locks.
        ("statement_timeout", "0"),
        ("lock_timeout", "0"),
        ("jit", "off"),
    ];
    let options = options.clone().application_name("hyperfleet-api-import");
    let options = options.options(common.iter().chain(own).copied());
    options.disable_statement_logging().connect().await
}

impl ImportTarget {
    /// Connects and takes the lock.
    ///
    /// # Errors
    ///
    /// The database is unreachable, or another import has the lock.
    pub async fn open(options: &PgConnectOptions) -> Result<Self, Error> {
        // The source is idle in a transaction only, and its server may be too old to know this setting.
        let connection = connect(options, &[("idle_session_timeout", "0")]).await;
        let mut connection = connection.context("connect to the database of this service")?;
        let lock = sqlx::query_scalar!(r#"SELECT pg_try_advisory_lock($1) AS "is_taken!""#, LOCK);
        let is_taken = lock
            .fetch_one(&mut connection)
            .await
            .context("lock imports")?;
        if is_taken {
            Ok(Self(connection))
        } else {
            Err(Error::Busy)
        }
    }

    /// Lets the next import run immediately, and not only when the server has noticed the end of the connection.
    pub(super) async fn unlock(&mut self) {
        // If this fails, the connection is lost, and the lock with it.
        let unlock = sqlx::query("SELECT pg_advisory_unlock($1)").bind(LOCK);
        let _ = unlock.execute(&mut self.0).await;
    }

    /// What earlier passes have imported.
    pub(super) async fn list_imported<'r>(
        &mut self,
        registry: &'r EntityRegistry,
    ) -> Result<ImportPlan<'r>, Error> {
        let rows = sqlx::query!(
            r#"SELECT i.id, r.kind AS "kind?" FROM imported_resources i LEFT JOIN resources r ON r.id = i.id"#
        );
        let rows = rows.fetch_all(&mut self.0).await;
        let mut plan = ImportPlan::new(registry);
        for row in rows.context("list what was imported")? {
            plan.add(row.id.into(), row.kind.as_deref(), false);
        }
        Ok(plan)
    }

    /// Those of these resources that are here, each with its digest.
    pub(super) async fn list_standings(
        &mut self,
        ids: &[ResourceId],
    ) -> Result<HashMap<ResourceId, Standing>, Error> {
        let rows = sqlx::query_as::<_, Standing>(digest::OF_TARGET).bind(uuids(ids));
        let rows = rows
            .fetch_all(&mut self.0)
            .await
            .context("compute digests")?;
        Ok(rows.into_iter().map(|row| (row.id.into(), row)).collect())
    }

    /// Writes resources with their reports, where they differ. Returns the ids of the written resources. A resource is
    /// left as it is if it was changed or removed here since it was imported, if it was not imported, or if its parent
    /// is gone.
    pub(super) async fn save_resources(
        &mut self,
        resources: &[ImportedResource],
    ) -> Result<HashSet<ResourceId>, Error> {
        // Documents are compared as texts: 1.5 and 1.50 are equal numbers and different answers.
        let written = sqlx::query_scalar!(
            "WITH source AS MATERIALIZED (
                 SELECT * FROM json_to_recordset($1::text::json) AS g (
                     id uuid, owner_id uuid, created_at timestamptz, updated_at timestamptz, deleted_at timestamptz, generation int,
                     kind text, name text, created_by text, updated_by text, deleted_by text, tenancy jsonb, labels jsonb,
                     conditions jsonb, spec jsonb, reports json)
             ), locked AS MATERIALIZED (
                 SELECT r.id FROM resources r JOIN imported_resources i ON i.id = r.id AND i.revision = r.revision
                 WHERE r.id IN (SELECT id FROM source) ORDER BY r.id FOR UPDATE OF r
             ), fit AS MATERIALIZED (
                 SELECT * FROM source g
                 WHERE (g.owner_id IS NULL OR EXISTS (SELECT FROM resources o WHERE o.id = g.owner_id))
                   AND (g.id IN (SELECT id FROM locked)
                        OR NOT EXISTS (SELECT FROM resources r WHERE r.id = g.id)
                           AND NOT EXISTS (SELECT FROM imported_resources i WHERE i.id = g.id))
             ), reports AS MATERIALIZED (
                 SELECT g.id AS resource_id, s.* FROM fit g CROSS JOIN LATERAL json_to_recordset(g.reports) AS s (
                     adapter text, observed_generation int, created_at timestamptz, reported_at timestamptz, conditions jsonb,
                     data jsonb, metadata jsonb)
             ), removed AS (
                 DELETE FROM adapter_reports a
                 WHERE a.resource_id IN (SELECT id FROM locked) AND a.resource_id IN (SELECT id FROM fit)
                   AND (a.resource_id, a.adapter) NOT IN (SELECT resource_id, adapter FROM reports)
                 RETURNING a.resource_id
             ), reported AS (
                 INSERT INTO adapter_reports AS a (resource_id, adapter, observed_generation, created_at, reported_at, conditions,
                     data, metadata)
                 SELECT resource_id, adapter, observed_generation, created_at, reported_at, conditions, data, metadata FROM reports
                 ON CONFLICT (resource_id, adapter) DO UPDATE
                 SET (observed_generation, created_at, reported_at, conditions, data, metadata) = (
                     excluded.observed_generation, excluded.created_at, excluded.reported_at, excluded.conditions,
                     excluded.data, excluded.metadata)
                 WHERE (a.observed_generation, a.created_at, a.reported_at, a.conditions, a.data::text, a.metadata)
                     IS DISTINCT FROM (excluded.observed_generation, excluded.created_at, excluded.reported_at,
                                       excluded.conditions, excluded.data::text, excluded.metadata)
                 RETURNING a.resource_id
             ), written AS (
                 INSERT INTO resources AS r (id, owner_id, created_at, updated_at, deleted_at, generation, kind, name, created_by,
                     updated_by, deleted_by, tenancy, labels, conditions, spec)
                 SELECT id, owner_id, created_at, updated_at, deleted_at, generation, kind, name, created_by,
                        updated_by, deleted_by, tenancy, labels, conditions, spec FROM fit
                 ON CONFLICT (id) DO UPDATE
                 SET (owner_id, name, created_at, updated_at, deleted_at, generation, created_by, updated_by, deleted_by, tenancy,
                      labels, conditions, spec, revision) = (
                     excluded.owner_id, excluded.name, excluded.created_at, excluded.updated_at, excluded.deleted_at,
                     excluded.generation, excluded.created_by, excluded.updated_by, excluded.deleted_by, excluded.tenancy,
                     excluded.labels, excluded.conditions, excluded.spec, r.revision + 1)
                 WHERE r.id IN (SELECT resource_id FROM removed UNION ALL SELECT resource_id FROM reported)
                    OR (r.owner_id, r.name, r.created_at, r.updated_at, r.deleted_at, r.generation, r.created_by,
                        r.updated_by, r.deleted_by, r.tenancy, r.labels, r.conditions, r.spec::text
                    ) IS DISTINCT FROM (
                        excluded.owner_id, excluded.name, excluded.created_at, excluded.updated_at, excluded.deleted_at,
                        excluded.generation, excluded.created_by, excluded.updated_by, excluded.deleted_by, excluded.tenancy,
                        excluded.labels, excluded.conditions, excluded.spec::text)
                 RETURNING r.id, r.revision
             )
             INSERT INTO imported_resources (id, revision) SELECT id, revision FROM written
             ON CONFLICT (id) DO UPDATE SET revision = excluded.revision
             RETURNING id",
            rows(resources.iter().map(|resource| &resource.row)),
        );
        let written = written.fetch_all(&mut self.0).await;
        Ok(set(written.context("write imported resources")?))
    }

    /// Makes the references of imported resources these ones, except to targets that are gone. Returns the resources whose
    /// references differed.
    pub(super) async fn save_references(
        &mut self,
        ids: &[ResourceId],
        references: &[ReferenceRow],
    ) -> Result<HashSet<ResourceId>, Error> {
        let written = sqlx::query_scalar!(
            "WITH locked AS MATERIALIZED (
                 SELECT r.id FROM resources r JOIN imported_resources i ON i.id = r.id AND i.revision = r.revision
                 WHERE r.id = ANY($1) ORDER BY r.id FOR UPDATE OF r
             ), source AS MATERIALIZED (
                 SELECT g.* FROM json_to_recordset($2::text::json)
                     AS g (source_id uuid, target_id uuid, ref_type text, target_kind text)
                 JOIN resources t ON t.id = g.target_id WHERE g.source_id IN (SELECT id FROM locked)
             ), gone AS (
                 DELETE FROM resource_references f WHERE f.source_id IN (SELECT id FROM locked)
                   AND (f.source_id, f.ref_type, f.target_id) NOT IN (SELECT source_id, ref_type, target_id FROM source)
                 RETURNING f.source_id
             ), written AS (
                 INSERT INTO resource_references (source_id, target_id, ref_type, target_kind)
                 SELECT source_id, target_id, ref_type, target_kind FROM source
                 ON CONFLICT DO NOTHING
                 RETURNING source_id
             ), raised AS (
                 UPDATE resources SET revision = revision + 1
                 WHERE id IN (SELECT source_id FROM gone UNION SELECT source_id FROM written)
                 RETURNING id, revision
             )
             UPDATE imported_resources i SET revision = r.revision FROM raised r WHERE i.id = r.id RETURNING i.id",
            &uuids(ids),
            rows(references.iter()),
        );
        let written = written.fetch_all(&mut self.0).await;
        Ok(set(written.context("write imported references")?))
    }

    /// Removes imported resources with the references to them, and returns the ids of the removed resources. A resource
    /// stays if it was changed here, if it has a child, or if a resource that was changed here or not imported
    /// references it.
    pub(super) async fn remove(
        &mut self,
        ids: &[ResourceId],
    ) -> Result<HashSet<ResourceId>, Error> {
        let removed = sqlx::query_scalar!(
            "WITH removable AS MATERIALIZED (
                 SELECT r.id FROM resources r JOIN imported_resources i ON i.id = r.id AND i.revision = r.revision
                 WHERE r.id = ANY($1)
                   AND NOT EXISTS (SELECT FROM resources c WHERE c.owner_id = r.id)
                   AND NOT EXISTS (
                       SELECT FROM resource_references f WHERE f.target_id = r.id AND NOT EXISTS (
                           SELECT FROM imported_resources o JOIN resources s ON s.id = o.id AND s.revision = o.revision
                           WHERE o.id = f.source_id))
                 ORDER BY r.id FOR UPDATE OF r
             ), cut AS (
                 DELETE FROM resource_references WHERE target_id IN (SELECT id FROM removable)
             ), gone AS (
                 DELETE FROM resources WHERE id IN (SELECT id FROM removable) RETURNING id
             )
             DELETE FROM imported_resources WHERE id IN (SELECT id FROM gone) RETURNING id",
            &uuids(ids),
        );
        let removed = removed.fetch_all(&mut self.0).await;
        Ok(set(removed.context("remove vanished resources")?))
    }
}

/// Rows as JSON, for `json_to_recordset`.
fn rows(rows: impl Iterator<Item = impl Serialize>) -> String {
    raw(&rows.collect::<Vec<_>>()).get().to_owned()
}

fn uuids(ids: &[ResourceId]) -> Vec<Uuid> {
    ids.iter().map(|id| id.as_uuid()).collect()
}

fn set(ids: Vec<Uuid>) -> HashSet<ResourceId> {
    ids.into_iter().map(ResourceId::from).collect()
}
