//! The database of the older service, read in one read-only transaction, as of one moment.

use std::collections::HashMap;

use futures_util::{Stream, StreamExt as _, TryStreamExt as _};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::types::Json;
use uuid::Uuid;

use super::error::{Context as _, Error};
use super::finding::{ImportFinding, ImportReason};
use super::plan::SourceKey;
use super::row::{ReferenceRow, ResourceRow};
use super::translate::DELETED_BY_DEFAULT;
use super::{digest, target};
use hyperfleet_domain::ResourceId;

/// TRUNCATE, which also empties a table for older snapshots, waits for locks that are taken before the snapshot.
const BEGIN: &str = "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;
     LOCK TABLE resources, resource_labels, resource_conditions, resource_references, adapter_statuses
     IN ACCESS SHARE MODE";

const KEYS: &str = "SELECT id, kind, name, deleted_time IS NOT NULL FROM resources ORDER BY id";

const RESOURCES: &str = "SELECT to_jsonb(r) || jsonb_build_object(
        'labels', (SELECT coalesce(jsonb_object_agg(l.key, l.value), '{}')
             FROM resource_labels l WHERE l.resource_id = r.id),
        'conditions', (SELECT coalesce(jsonb_agg(jsonb_build_object(
             'type', c.type, 'status', c.status, 'reason', c.reason, 'message', c.message,
             'observed_generation', coalesce(c.observed_generation, 0), 'created_time', c.created_time,
             'last_updated_time', c.last_updated_time, 'last_transition_time', c.last_transition_time)), '[]')
             FROM resource_conditions c WHERE c.resource_id = r.id),
        'reports', (SELECT coalesce(jsonb_agg(to_jsonb(s)), '[]')
             FROM adapter_statuses s WHERE s.resource_type = r.kind AND s.resource_id = r.id),
        'has_references', EXISTS (SELECT FROM resource_references f WHERE f.source_id = r.id))
     FROM resources r WHERE r.id = ANY($1)";

const REFERENCES: &str = "SELECT source_id::uuid, ref_type, target_id, target_kind
     FROM resource_references WHERE source_id = ANY($1)";

const ORPHANS: &str = "SELECT s.resource_type, s.resource_id, s.adapter FROM adapter_statuses s
     WHERE NOT EXISTS (SELECT FROM resources r WHERE r.id = s.resource_id AND r.kind = s.resource_type)
     ORDER BY s.resource_type, s.resource_id, s.adapter";

/// The older service's database, as of one moment.
pub(super) struct Source(PgConnection);

impl Source {
    /// Connects, opens the transaction, and checks that the tables are the tables of the Go HyperFleet API.
    pub(super) async fn open(options: &PgConnectOptions) -> Result<Self, Error> {
        let own = [
            ("default_transaction_read_only", "on"),
            // Rows that a policy hides would count as removed: reading them must fail.
            ("row_security", "off"),
            // The transaction waits for writes here.
            ("idle_in_transaction_session_timeout", "0"),
        ];
        let connection = target::connect(options, &own).await;
        let mut source = Self(connection.context("connect to the source")?);
        let begun = sqlx::raw_sql(BEGIN).execute(&mut source.0).await;
        let begun = begun.context("open a read-only transaction on the source");
        begun.map_err(Error::or_not_older_service)?;
        // The statement names every column that the import reads.
        let checked = source.digests(&[Uuid::nil().into()]).await;
        checked.map_err(Error::or_not_older_service)?;
        Ok(source)
    }

    /// Passes the key and the name of every resource to `take`.
    pub(super) async fn each_key(
        &mut self,
        mut take: impl FnMut(SourceKey<'_>, &str),
    ) -> Result<(), Error> {
        let mut keys = sqlx::query_as::<_, (String, String, String, bool)>(KEYS).fetch(&mut self.0);
        while let Some((id, kind, name, is_finalizing)) = keys
            .try_next()
            .await
            .context("list resources of the source")?
        {
            let (id, kind) = (id.as_str(), kind.as_str());
            take(
                SourceKey {
                    id,
                    kind,
                    is_finalizing,
                },
                &name,
            );
        }
        Ok(())
    }

    /// Resources with all their parts except references, in no order, streamed from the source.
    pub(super) fn resources(
        &mut self,
        ids: &[ResourceId],
    ) -> impl Stream<Item = Result<ResourceRow, Error>> {
        let rows = sqlx::query_scalar::<_, Json<ResourceRow>>(RESOURCES).bind(texts(ids));
        let rows = rows.fetch(&mut self.0);
        rows.map(|row| Ok(row.context("read resources of the source")?.0))
    }

    pub(super) async fn references(
        &mut self,
        ids: &[ResourceId],
    ) -> Result<Vec<ReferenceRow>, Error> {
        let rows = sqlx::query_as(REFERENCES).bind(texts(ids));
        let rows = rows.fetch_all(&mut self.0).await;
        rows.context("read references of the source")
    }

    /// Passes every report without a resource to `take`.
    pub(super) async fn each_orphan(
        &mut self,
        mut take: impl FnMut(ImportFinding),
    ) -> Result<(), Error> {
        let rows = sqlx::query_as::<_, (String, String, String)>(ORPHANS);
        let mut rows = rows.fetch(&mut self.0);
        while let Some((kind, id, adapter)) = rows
            .try_next()
            .await
            .context("look for reports without a resource in the source")?
        {
            let adapter = Some(adapter);
            take(ImportFinding {
                adapter,
                ..ImportReason::OrphanReport.of(&kind, &id, "")
            });
        }
        Ok(())
    }

    /// The digest of each resource, computed by the source.
    pub(super) async fn digests(
        &mut self,
        ids: &[ResourceId],
    ) -> Result<HashMap<ResourceId, Uuid>, Error> {
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let rows = sqlx::query_as::<_, (Uuid, Uuid)>(digest::OF_SOURCE);
        let rows = rows.bind(texts(ids)).bind(DELETED_BY_DEFAULT);
        let rows = rows.fetch_all(&mut self.0).await;
        let rows = rows.context("compute digests of the source")?.into_iter();
        Ok(rows.map(|(id, digest)| (id.into(), digest)).collect())
    }
}

/// Ids as the source spells them.
fn texts(ids: &[ResourceId]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}
