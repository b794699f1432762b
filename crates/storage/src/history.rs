//! The history of one resource: earlier states, generations and changes (`docs/decisions/0087-changes-are-states.md`). Removed resources
//! are found, too.

use std::sync::LazyLock;

use chrono::{DateTime, Utc};
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::types::Json;
use sqlx::{AssertSqlSafe, Postgres, Row as _};

use super::audit::{ENTRY_COLUMNS, entry_of};
use super::measure::SqlOperation::{self, Raw};
use super::measure::SqlTable::{Audit, Changes};
use super::row::{COLUMNS_COUNT, StoredRow, state_columns};
use super::{Db, Error, ResourceScope};
use hyperfleet_domain::audit::AuditEntry;
use hyperfleet_domain::history::{
    GenerationAuthor, PastMoment, PastRecord, RecordedAction, RecordedChange, RecordedGeneration,
    Tombstone,
};
use hyperfleet_domain::page::PageRequest;
use hyperfleet_domain::{ResourceId, StoredResource};

/// Generations of a resource, newest first: one more than the page has, if there are more.
#[derive(Debug)]
pub struct RecordedGenerations {
    pub generations: Vec<RecordedGeneration>,
    /// Number of all that are stored.
    pub total: i64,
    /// Whether the creation of the resource is stored.
    pub is_complete: bool,
}

/// Changes of a resource, newest first.
#[derive(Debug)]
pub struct RecordedChanges {
    pub changes: Vec<RecordedChange>,
    /// Whether the creation of the resource is stored.
    pub is_complete: bool,
}

/// The resource of a [`ResourceScope`] (`$1` to `$4`) by its last change, which may be its removal. The owner of a removed one
/// may be removed as well. Whether its history is stored from its creation on: its first change is that.
const TARGET: &str = "WITH target AS MATERIALIZED (
     SELECT s.position, s.id, s.generation, s.action = 'removed' AS is_removed,
            f.action = 'created' AS is_complete, f.at AS first_at
     FROM (SELECT position FROM changes WHERE resource_id = $1 ORDER BY position DESC LIMIT 1) c
     CROSS JOIN (SELECT action, at FROM changes WHERE resource_id = $1 ORDER BY position LIMIT 1) f
     JOIN resource_states s ON s.position = c.position
     WHERE ($2::text IS NULL OR s.kind = $2) AND ($3::uuid IS NULL OR s.owner_id = $3)
       AND ($4::jsonb IS NULL OR s.tenancy = $4
            AND ($3::uuid IS NULL OR has_tenancy($3, $4) OR NOT EXISTS (SELECT FROM resources WHERE id = $3)))
 ) ";

/// The state after the last change that meets a condition.
fn past_sql(condition: &str) -> String {
    format!(
        "{TARGET} SELECT {state}, c.action = 'removed', t.is_complete, t.generation, t.first_at,
                (SELECT at FROM changes_removed)
         FROM target t LEFT JOIN LATERAL (
             SELECT x.position, x.action FROM changes x WHERE x.resource_id = $1 AND {condition}
             ORDER BY x.position DESC LIMIT 1) c ON true
         LEFT JOIN resource_states s ON s.position = c.position",
        state = state_columns("s", true),
    )
}

/// Positions say which changes were made since: clocks of instances differ.
static AT_SQL: LazyLock<String> = LazyLock::new(|| {
    past_sql(
        "x.position < coalesce((SELECT min(y.position) FROM changes y WHERE y.resource_id = $1 AND y.at > $5),
                               9223372036854775807)",
    )
});
static GENERATION_SQL: LazyLock<String> = LazyLock::new(|| past_sql("x.generation = $5"));

static TOMBSTONE_SQL: LazyLock<String> = LazyLock::new(|| {
    format!(
        "{TARGET} SELECT {state}, s.at, s.actor, s.request_id,
                (SELECT a.reason FROM audit_entries a WHERE a.resource_id = $1 AND a.generation_after IS NULL
                 ORDER BY a.sequence DESC LIMIT 1)
         FROM target t JOIN resource_states s ON s.position = t.position WHERE t.is_removed",
        state = state_columns("s", true),
    )
});

/// The oldest stored state also is a generation, although the change that made it may not be stored.
static GENERATIONS_SQL: LazyLock<String> = LazyLock::new(|| {
    format!(
        "{TARGET}, stored AS MATERIALIZED (
             SELECT position FROM (
                 SELECT c.position, c.action, c.generation, lag(c.generation) OVER (ORDER BY c.position) AS before
                 FROM changes c JOIN target t ON t.id = c.resource_id WHERE c.updated_at IS NOT NULL) c
             WHERE action = 'created' OR generation IS DISTINCT FROM before
         )
         SELECT {state}, total.count, t.is_complete, s.action, p.position = total.first, s.at, s.actor, s.request_id
         FROM (SELECT count(*) AS count, min(position) AS first FROM stored) total CROSS JOIN target t
         LEFT JOIN (SELECT position FROM stored ORDER BY position DESC LIMIT $5 OFFSET $6) p ON true
         LEFT JOIN resource_states s ON s.position = p.position ORDER BY p.position DESC",
        state = state_columns("s", true),
    )
});

const CHANGES_SQL: &str =
    "SELECT t.is_complete, c.position, c.at, c.action, c.actor, c.request_id, c.cause, c.generation,
            CASE WHEN c.updated_at IS NOT NULL THEN c.deleted_at IS NOT NULL END, c.conditions
     FROM target t LEFT JOIN LATERAL (
         SELECT * FROM changes c WHERE c.resource_id = $1 AND ($5::bigint IS NULL OR c.position < $5)
         ORDER BY c.position DESC LIMIT $6) c ON true ORDER BY c.position DESC";

static ENTRIES_SQL: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {ENTRY_COLUMNS} FROM audit_entries WHERE resource_id = $1 ORDER BY sequence DESC LIMIT $2"
    )
});

const AFTER_STATE: usize = COLUMNS_COUNT;

impl Db<'_> {
    /// What is stored of a resource about a moment; `None` if nothing is.
    pub async fn find_past(
        &mut self,
        scope: ResourceScope<'_>,
        moment: PastMoment,
    ) -> Result<Option<PastRecord>, Error> {
        let query = match moment {
            PastMoment::At(at) => scoped(&AT_SQL, scope).bind(at),
            PastMoment::Generation(generation) => scoped(&GENERATION_SQL, scope).bind(generation),
        };
        let result = query.fetch_optional(self.repeatable_connection()).await;
        let row = self.complete(
            result,
            SqlOperation::Query(Changes),
            "find an earlier state",
        )?;
        let record = row.as_ref().map(past_record).transpose();
        self.complete(record, Raw, "read an earlier state")
    }

    /// A removed resource; `None` if there is none, or its removal is not stored.
    pub async fn find_tombstone(
        &mut self,
        scope: ResourceScope<'_>,
    ) -> Result<Option<Tombstone>, Error> {
        let query = scoped(&TOMBSTONE_SQL, scope);
        let result = query.fetch_optional(self.repeatable_connection()).await;
        let row = self.complete(
            result,
            SqlOperation::Query(Changes),
            "find a removed resource",
        )?;
        let found = row.as_ref().map(tombstone).transpose();
        let found = self.complete(found, Raw, "read a removed resource")?;
        Ok(found.flatten())
    }

    /// The generations of a resource that a page shows; `None` if nothing is stored of it.
    pub async fn list_generations(
        &mut self,
        scope: ResourceScope<'_>,
        page: PageRequest,
    ) -> Result<Option<RecordedGenerations>, Error> {
        let query = scoped(&GENERATIONS_SQL, scope)
            .bind(i64::from(page.size) + 1)
            .bind(page.offset());
        let result = query.fetch_all(self.repeatable_connection()).await;
        let rows = self.complete(result, SqlOperation::Query(Changes), "list generations")?;
        let read = recorded_generations(&rows);
        self.complete(read, Raw, "read generations")
    }

    /// The newest changes of a resource before a position, or of all; `None` if nothing is stored of it.
    pub async fn list_recorded(
        &mut self,
        scope: ResourceScope<'_>,
        before: Option<i64>,
        count_max: u16,
    ) -> Result<Option<RecordedChanges>, Error> {
        static SQL: LazyLock<String> = LazyLock::new(|| format!("{TARGET} {CHANGES_SQL}"));
        let query = scoped(&SQL, scope).bind(before).bind(i64::from(count_max));
        let result = query.fetch_all(self.repeatable_connection()).await;
        let rows = self.complete(
            result,
            SqlOperation::Query(Changes),
            "list changes of a resource",
        )?;
        let read = recorded_changes(&rows);
        self.complete(read, Raw, "read changes of a resource")
    }

    /// The newest audit entries of a resource.
    pub async fn list_entries_of(
        &mut self,
        id: ResourceId,
        count_max: i64,
    ) -> Result<Vec<AuditEntry>, Error> {
        let query = sqlx::query(AssertSqlSafe(ENTRIES_SQL.as_str()));
        let query = query.bind(id.as_uuid()).bind(count_max);
        let result = query.fetch_all(self.repeatable_connection()).await;
        let rows = self.complete(
            result,
            SqlOperation::Query(Audit),
            "list the audit entries of a resource",
        )?;
        let entries: Result<Vec<_>, _> = rows.iter().map(entry_of).collect();
        self.complete(entries, Raw, "read an audit entry")
    }
}

/// A statement that begins with [`TARGET`], with its parameters.
fn scoped<'q>(sql: &'static str, scope: ResourceScope<'q>) -> Query<'q, Postgres, PgArguments> {
    sqlx::query(AssertSqlSafe(sql))
        .bind(scope.id.as_uuid())
        .bind(scope.kind.map(ToOwned::to_owned))
        .bind(scope.owner_uuid())
        .bind(scope.tenancy().map(|tenancy| Json(tenancy.0.clone())))
}

/// `None` for a row without a state.
fn state(row: &PgRow) -> Result<Option<StoredResource>, sqlx::Error> {
    Ok(StoredRow::read_state(row, 0)?.map(Into::into))
}

fn past_record(row: &PgRow) -> Result<PastRecord, sqlx::Error> {
    Ok(PastRecord {
        state: state(row)?,
        is_removal: row
            .try_get::<Option<bool>, _>(AFTER_STATE)?
            .unwrap_or_default(),
        is_complete: row.try_get(AFTER_STATE + 1)?,
        generation: row.try_get(AFTER_STATE + 2)?,
        first_at: row.try_get(AFTER_STATE + 3)?,
        stored_since: row.try_get(AFTER_STATE + 4)?,
    })
}

fn tombstone(row: &PgRow) -> Result<Option<Tombstone>, sqlx::Error> {
    let Some(last) = state(row)? else {
        return Ok(None);
    };
    Ok(Some(Tombstone {
        last,
        removed_at: row.try_get(AFTER_STATE)?,
        removed_by: row.try_get(AFTER_STATE + 1)?,
        request_id: row.try_get(AFTER_STATE + 2)?,
        reason: row.try_get(AFTER_STATE + 3)?,
    }))
}

fn recorded_generations(rows: &[PgRow]) -> Result<Option<RecordedGenerations>, sqlx::Error> {
    let Some(first) = rows.first() else {
        return Ok(None);
    };
    let mut generations = Vec::with_capacity(rows.len());
    for row in rows {
        // A page behind the end has one row: the total.
        let Some(state) = state(row)? else { continue };
        let is_created = row.try_get::<&str, _>(AFTER_STATE + 2)? == "created";
        // The oldest change that is stored may be a later one of its generation.
        let is_oldest: bool = row.try_get(AFTER_STATE + 3)?;
        let author = GenerationAuthor {
            at: row.try_get(AFTER_STATE + 4)?,
            actor: row.try_get(AFTER_STATE + 5)?,
            request_id: row.try_get(AFTER_STATE + 6)?,
        };
        generations.push(RecordedGeneration {
            state,
            author: (is_created || !is_oldest).then_some(author),
            is_created,
        });
    }
    Ok(Some(RecordedGenerations {
        generations,
        total: first.try_get(AFTER_STATE)?,
        is_complete: first.try_get(AFTER_STATE + 1)?,
    }))
}

fn recorded_changes(rows: &[PgRow]) -> Result<Option<RecordedChanges>, sqlx::Error> {
    let Some(first) = rows.first() else {
        return Ok(None);
    };
    let changes = rows.iter().map(recorded_change);
    Ok(Some(RecordedChanges {
        changes: changes
            .filter_map(Result::transpose)
            .collect::<Result<_, _>>()?,
        is_complete: first.try_get(0)?,
    }))
}

/// `None` if there are no more changes: the row says only that the resource is known.
fn recorded_change(row: &PgRow) -> Result<Option<RecordedChange>, sqlx::Error> {
    let Some(position) = row.try_get(1)? else {
        return Ok(None);
    };
    let at: DateTime<Utc> = row.try_get(2)?;
    let conditions: Option<Json<_>> = row.try_get(9)?;
    Ok(Some(RecordedChange {
        position,
        at,
        action: match row.try_get(3)? {
            "created" => RecordedAction::Created,
            "removed" => RecordedAction::Removed,
            _ => RecordedAction::Modified,
        },
        actor: row.try_get(4)?,
        request_id: row.try_get(5)?,
        cause: row.try_get(6)?,
        generation: row.try_get(7)?,
        is_deleting: row.try_get(8)?,
        conditions: conditions.map(|found| found.0),
    }))
}
