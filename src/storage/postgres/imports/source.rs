//! The database of the older service, read in one read-only transaction, as of one moment.

use std::collections::HashSet;

use deadpool::managed::PoolError;
use futures_util::{Stream, StreamExt as _, TryStreamExt as _};
use sqlx::ConnectOptions as _;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgRow};
use sqlx::{FromRow, Row as _};

use super::columns;
use super::digest::{self, Digests, LeftOut};
use crate::domain::ResourceId;
use crate::domain::import::{
    DELETED_BY_DEFAULT, SourceKey, SourceOrphan, SourcePosition, SourceReference, SourceResource,
};
use crate::storage::postgres::Error;
use crate::storage::postgres::error::Doing as _;

/// The connection's name in `pg_stat_activity`.
const NAME: &str = "hyperfleet-api-import";

/// `$1` is a transaction: rows that it or a later one has written count as changed. Without it all do.
const KEYS: &str = "SELECT id, kind, generation::bigint, deleted_time IS NOT NULL,
        $1::bigint IS NULL OR age(xmin) <= age(($1 % 4294967296)::text::xid)
     FROM resources";

const CHANGED_PARTS: &str = "WITH since AS (SELECT age(($1 % 4294967296)::text::xid) AS age)
     SELECT resource_id FROM resource_labels, since WHERE age(resource_labels.xmin) <= since.age
     UNION SELECT resource_id FROM resource_conditions, since WHERE age(resource_conditions.xmin) <= since.age
     UNION SELECT source_id FROM resource_references, since WHERE age(resource_references.xmin) <= since.age
     UNION SELECT resource_id FROM adapter_statuses, since WHERE age(adapter_statuses.xmin) <= since.age";

const RESOURCES: &str = "SELECT r.id, r.kind, r.name, r.href, r.owner_id, r.generation::bigint AS generation,
        to_jsonb(r.created_time) #>> '{}' AS created_time, to_jsonb(r.updated_time) #>> '{}' AS updated_time,
        to_jsonb(r.deleted_time) #>> '{}' AS deleted_time,
        r.created_by, r.updated_by, r.deleted_by, r.spec::text AS spec, r.tenancy::text AS tenancy,
        (SELECT coalesce(jsonb_object_agg(l.key, l.value), '{}')::text
         FROM resource_labels l WHERE l.resource_id = r.id) AS labels,
        (SELECT coalesce(jsonb_agg(jsonb_build_object(
             'type', c.type, 'status', c.status, 'reason', c.reason, 'message', c.message,
             'observed_generation', coalesce(c.observed_generation, 0), 'created_time', c.created_time,
             'last_updated_time', c.last_updated_time, 'last_transition_time', c.last_transition_time)), '[]')::text
         FROM resource_conditions c WHERE c.resource_id = r.id) AS conditions,
        (SELECT coalesce(jsonb_agg(jsonb_build_object(
             'adapter', s.adapter, 'observed_generation', s.observed_generation, 'created_time', s.created_time,
             'last_report_time', s.last_report_time, 'conditions', s.conditions, 'data', s.data,
             'metadata', s.metadata)), '[]')::text
         FROM adapter_statuses s WHERE s.resource_type = r.kind AND s.resource_id = r.id) AS reports,
        EXISTS (SELECT FROM resource_references f WHERE f.source_id = r.id) AS has_references
     FROM resources r WHERE r.id = ANY($1)";

const REFERENCES: &str =
    "SELECT source_id, ref_type, target_id, target_kind FROM resource_references
     WHERE source_id = ANY($1)";

const ORPHANS: &str = "SELECT s.resource_type, s.resource_id, s.adapter FROM adapter_statuses s
     WHERE NOT EXISTS (SELECT FROM resources r WHERE r.id = s.resource_id AND r.kind = s.resource_type)
     ORDER BY s.resource_type, s.resource_id, s.adapter";

/// TRUNCATE, which empties a table for older snapshots, too, waits for locks that are taken before the snapshot.
const BEGIN: &str = "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;
     LOCK TABLE resources, resource_labels, resource_conditions, resource_references, adapter_statuses
     IN ACCESS SHARE MODE";

/// The amount of log of the server; on a standby, of the replayed log.
const WAL_BYTES: &str = "SELECT (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()
        ELSE pg_current_wal_insert_lsn() END - '0/0')::bigint";

/// Server, database, table, transaction and timeline. A standby knows the timeline as of its last checkpoint.
const POSITION: &str = "SELECT (SELECT system_identifier FROM pg_control_system())::text || '/' ||
            (SELECT oid FROM pg_database WHERE datname = current_database())::text,
        'resources'::regclass::oid::bigint, txid_snapshot_xmin(txid_current_snapshot()),
        CASE WHEN pg_is_in_recovery() THEN (SELECT timeline_id FROM pg_control_checkpoint())
        ELSE ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int END";

/// The older service's database, as of one moment.
pub struct ImportSource {
    connection: PgConnection,
    /// The amount of log before that moment.
    wal_bytes_min: i64,
}

/// Connection to the older service's database. Must not be printed: it contains the password.
#[derive(Clone)]
pub struct SourceSettings {
    /// The server, the database, the user.
    pub connect: PgConnectOptions,
}

impl ImportSource {
    /// Connects and opens the transaction. Returns what the source lacks, if it is not a database of the older
    /// service.
    ///
    /// # Errors
    ///
    /// The database is unreachable, refuses the login, or is unreadable.
    pub async fn open(settings: &SourceSettings) -> Result<(Self, Vec<String>), Error> {
        let options = settings.connect.clone().application_name(NAME).options([
            ("default_transaction_read_only", "on"),
            ("timezone", "UTC"),
            ("standard_conforming_strings", "on"),
            // Rows that a policy hides would count as removed: reading them must fail.
            ("row_security", "off"),
            // The lists of keys take long for a large source, and the transaction waits for writes here.
            ("statement_timeout", "0"),
            ("idle_in_transaction_session_timeout", "0"),
        ]);
        let connected = options.disable_statement_logging().connect().await;
        let connection =
            connected.map_err(|error| Error::no_connection(PoolError::Backend(error)))?;
        let mut source = Self {
            connection,
            wal_bytes_min: 0,
        };
        let missing = columns::missing(&mut source.connection).await?;
        if missing.is_empty() {
            source.wal_bytes_min = source.wal_bytes().await?;
            let begun = sqlx::raw_sql(BEGIN).execute(&mut source.connection).await;
            begun.doing("open a read-only transaction")?;
        }
        Ok((source, missing))
    }

    /// The position of the read state.
    ///
    /// # Errors
    ///
    /// The source does not answer, or keeps its control data from the role.
    pub async fn position(&mut self) -> Result<SourcePosition, Error> {
        let found = sqlx::query_as(POSITION).fetch_one(&mut self.connection);
        let (source, table, transaction, timeline) =
            found.await.doing("read the position of the source")?;
        Ok(SourcePosition {
            source,
            table,
            transaction,
            timeline,
            wal_bytes_min: self.wal_bytes_min,
            wal_bytes_max: self.wal_bytes().await?,
        })
    }

    async fn wal_bytes(&mut self) -> Result<i64, Error> {
        let bytes = sqlx::query_scalar(WAL_BYTES).fetch_one(&mut self.connection);
        bytes.await.doing("read how much log the source has")
    }

    /// Passes the key of every resource to `take`. `since` is an earlier position; without it every row counts as
    /// changed.
    ///
    /// # Errors
    ///
    /// The source does not answer.
    pub async fn each_key(
        &mut self,
        since: Option<i64>,
        mut take: impl FnMut(SourceKey<'_>),
    ) -> Result<(), Error> {
        let keys = sqlx::query_as::<_, (String, String, i64, bool, bool)>(KEYS).bind(since);
        let mut keys = keys.fetch(&mut self.connection);
        while let Some((id, kind, generation, is_finalizing, is_changed)) = keys
            .try_next()
            .await
            .doing("list the resources of the source")?
        {
            take(SourceKey {
                id: &id,
                kind: &kind,
                generation,
                is_finalizing,
                is_changed,
            });
        }
        Ok(())
    }

    /// Resources with a label, condition, reference or report written since an earlier position.
    ///
    /// # Errors
    ///
    /// The source does not answer.
    pub async fn changed_parts(&mut self, since: i64) -> Result<HashSet<ResourceId>, Error> {
        let ids = sqlx::query_scalar::<_, String>(CHANGED_PARTS).bind(since);
        let ids = ids.fetch_all(&mut self.connection).await;
        let ids = ids.doing("list the changes of the source")?;
        Ok(ids.iter().filter_map(|id| ResourceId::parse(id)).collect())
    }

    /// Resources with all their parts, in no order, streamed from the source.
    pub fn resources(
        &mut self,
        ids: Vec<String>,
    ) -> impl Stream<Item = Result<SourceResource, Error>> {
        let rows = sqlx::query_as::<_, SourceResource>(RESOURCES).bind(ids);
        let rows = rows.fetch(&mut self.connection);
        rows.map(|row| row.doing("read resources of the source"))
    }

    /// References of resources.
    ///
    /// # Errors
    ///
    /// The source does not answer.
    pub async fn references(&mut self, ids: &[String]) -> Result<Vec<SourceReference>, Error> {
        let rows = sqlx::query_as::<_, (String, String, String, String)>(REFERENCES).bind(ids);
        let rows = rows.fetch_all(&mut self.connection).await;
        let rows = rows.doing("read references of the source")?;
        let rows = rows.into_iter();
        let references =
            rows.map(
                |(source_id, ref_type, target_id, target_kind)| SourceReference {
                    source_id,
                    ref_type,
                    target_id,
                    target_kind,
                },
            );
        Ok(references.collect())
    }

    /// Passes every report without a resource to `take`.
    ///
    /// # Errors
    ///
    /// The source does not answer.
    pub async fn each_orphan(&mut self, mut take: impl FnMut(SourceOrphan)) -> Result<(), Error> {
        let rows = sqlx::query_as::<_, (String, String, String)>(ORPHANS);
        let mut rows = rows.fetch(&mut self.connection);
        while let Some((kind, id, adapter)) = rows
            .try_next()
            .await
            .doing("look for reports without a resource")?
        {
            take(SourceOrphan { kind, id, adapter });
        }
        Ok(())
    }

    /// Digests of resources without their refused parts, computed by the source.
    ///
    /// # Errors
    ///
    /// The source does not answer, or cannot compute them.
    pub async fn digests(&mut self, ids: &[String], left_out: LeftOut) -> Result<Digests, Error> {
        digest::of_source(&mut self.connection, ids, left_out, DELETED_BY_DEFAULT).await
    }
}

impl FromRow<'_, PgRow> for SourceResource {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: row.try_get("id")?,
            kind: row.try_get("kind")?,
            name: row.try_get("name")?,
            href: row.try_get("href")?,
            owner_id: row.try_get("owner_id")?,
            generation: row.try_get("generation")?,
            created_time: row.try_get("created_time")?,
            updated_time: row.try_get("updated_time")?,
            deleted_time: row.try_get("deleted_time")?,
            created_by: row.try_get("created_by")?,
            updated_by: row.try_get("updated_by")?,
            deleted_by: row.try_get("deleted_by")?,
            spec: row.try_get("spec")?,
            tenancy: row.try_get("tenancy")?,
            labels: row.try_get("labels")?,
            conditions: row.try_get("conditions")?,
            reports: row.try_get("reports")?,
            has_references: row.try_get("has_references")?,
        })
    }
}
