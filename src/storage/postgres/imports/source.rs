//! The database of the older service, read in one transaction that cannot write: everything is of one moment.

use std::collections::HashSet;

use deadpool::managed::PoolError;
use futures_util::TryStreamExt as _;
use sqlx::ConnectOptions as _;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgRow};
use sqlx::{FromRow, Row as _};

use super::columns;
use super::digest::{self, Digests};
use crate::domain::ResourceId;
use crate::domain::import::{
    DELETED_BY_DEFAULT, SourceKey, SourceOrphan, SourceReference, SourceResource,
};
use crate::storage::postgres::Error;
use crate::storage::postgres::error::Doing as _;

/// What the connection is called in `pg_stat_activity`.
const NAME: &str = "hyperfleet-api-import";

/// `$1` is a transaction; rows that it or a later one has written are changed. Without it all are.
const KEYS: &str = "SELECT id, kind, deleted_time IS NOT NULL,
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

/// The older service's database, as of one moment.
pub struct ImportSource {
    connection: PgConnection,
}

/// Where the older service's database is. Not to be printed: it would show the password.
#[derive(Clone)]
pub struct SourceSettings {
    /// The server, the database, the user.
    pub connect: PgConnectOptions,
}

/// What a snapshot of the source is, for the next run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcePosition {
    /// Which server and database.
    pub source: String,
    /// Every transaction before this one had ended. Rows that it or a later one has written may be missing.
    pub transaction: i64,
}

impl ImportSource {
    /// Connects and opens the transaction. Gives what the source lacks, if it is no database of the older service.
    ///
    /// # Errors
    ///
    /// The database cannot be reached, does not let us in, or cannot be read.
    pub async fn open(settings: &SourceSettings) -> Result<(Self, Vec<String>), Error> {
        let options = settings.connect.clone().application_name(NAME).options([
            ("default_transaction_read_only", "on"),
            ("timezone", "UTC"),
            // The lists of keys take as long as the source is large, and the transaction waits for writes here.
            ("statement_timeout", "0"),
            ("idle_in_transaction_session_timeout", "0"),
        ]);
        let connected = options.disable_statement_logging().connect().await;
        let connection =
            connected.map_err(|error| Error::no_connection(PoolError::Backend(error)))?;
        let mut source = Self { connection };
        let statement = "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY";
        let begun = sqlx::raw_sql(statement)
            .execute(&mut source.connection)
            .await;
        begun.doing("open a read-only transaction")?;
        let missing = columns::missing(&mut source.connection).await?;
        Ok((source, missing))
    }

    /// The moment that is read.
    ///
    /// # Errors
    ///
    /// The source does not answer.
    pub async fn position(&mut self) -> Result<SourcePosition, Error> {
        // The number of the database is its own on each server; it changes when the database is restored from a dump.
        let position = "SELECT (SELECT system_identifier FROM pg_control_system())::text || '/' ||
                (SELECT oid FROM pg_database WHERE datname = current_database())::text,
                txid_snapshot_xmin(txid_current_snapshot())";
        let found = sqlx::query_as(position).fetch_one(&mut self.connection);
        let (source, transaction) = found.await.doing("read the position of the source")?;
        Ok(SourcePosition {
            source,
            transaction,
        })
    }

    /// Hands over the key of every resource. `since` is an earlier position; without it every row counts as changed.
    ///
    /// # Errors
    ///
    /// The source does not answer.
    pub async fn each_key(
        &mut self,
        since: Option<i64>,
        mut take: impl FnMut(SourceKey<'_>),
    ) -> Result<(), Error> {
        let keys = sqlx::query_as::<_, (String, String, bool, bool)>(KEYS).bind(since);
        let mut keys = keys.fetch(&mut self.connection);
        while let Some((id, kind, is_finalizing, is_changed)) = keys
            .try_next()
            .await
            .doing("list the resources of the source")?
        {
            take(SourceKey {
                id: &id,
                kind: &kind,
                is_finalizing,
                is_changed,
            });
        }
        Ok(())
    }

    /// Resources of which a label, condition, reference or report was written since an earlier position.
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

    /// Resources with everything that belongs to them.
    ///
    /// # Errors
    ///
    /// The source does not answer.
    pub async fn resources(&mut self, ids: &[String]) -> Result<Vec<SourceResource>, Error> {
        let rows = sqlx::query_as(RESOURCES).bind(ids);
        let rows = rows.fetch_all(&mut self.connection).await;
        rows.doing("read resources of the source")
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

    /// Hands over every report without a resource.
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

    /// Digests of resources, computed by the source itself.
    ///
    /// # Errors
    ///
    /// The source does not answer, or cannot compute them.
    pub async fn digests(&mut self, ids: &[String]) -> Result<Digests, Error> {
        digest::of_source(&mut self.connection, ids, DELETED_BY_DEFAULT).await
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
