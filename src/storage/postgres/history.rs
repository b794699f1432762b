//! The history of one resource: earlier states, generations and events, each in one statement
//! (`docs/decisions/0078-history.md`). Removed resources are found, too.

use std::sync::LazyLock;

use chrono::{DateTime, Utc};
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::types::Json;
use sqlx::{AssertSqlSafe, Postgres, Row as _};

use super::measure::SqlOperation::{self, Raw};
use super::measure::SqlTable::Changes;
use super::row::{COLUMNS_COUNT, StoredRow};
use super::states::{STATE_COLUMNS, STATE_JOINS};
use super::{Db, Error, ResourceScope};
use crate::domain::Condition;
use crate::domain::history::{
    GenerationAuthor, NextChange, PastMoment, PastRecord, RecordedGeneration, RecordedStep,
    StepSource, Tombstone,
};
use crate::domain::page::PageRequest;

/// Generations of a resource, newest first: one more than the page has, if there are more.
#[derive(Debug)]
pub struct RecordedGenerations {
    pub generations: Vec<RecordedGeneration>,
    /// Number of all that are stored.
    pub total: i64,
    /// Whether the creation of the resource is stored.
    pub is_complete: bool,
}

/// Steps in the life of a resource, newest first.
#[derive(Debug)]
pub struct RecordedTimeline {
    pub steps: Vec<RecordedStep>,
    /// Number of all that are stored, [`STEPS_MAX`] at most from the first step of the page on.
    pub total: i64,
    /// Whether the creation of the resource is stored.
    pub is_complete: bool,
}

/// The resource of a [`ResourceScope`] (`$1` to `$4`), or its last state if it is removed. The owner of a removed one may be
/// removed as well. Whether its history is stored from its creation on: its first change is that.
const TARGET: &str = "WITH named AS (
     SELECT id AS resource_id, kind, owner_id, tenancy, generation, deleted_at, conditions, NULL::bigint AS removal
     FROM resources WHERE id = $1
     UNION ALL
     (SELECT resource_id, kind, owner_id, tenancy, generation, deleted_at, conditions, position FROM changes
      WHERE resource_id = $1 AND generation IS NOT NULL AND action = 'removed'
        AND NOT EXISTS (SELECT FROM resources WHERE id = $1)
      ORDER BY position DESC LIMIT 1)
 ), target AS MATERIALIZED (
     SELECT *, coalesce((SELECT f.action = 'created' FROM changes f WHERE f.resource_id = n.resource_id
                         ORDER BY f.position LIMIT 1), false) AS is_complete
     FROM named n
     WHERE ($2::text IS NULL OR kind = $2) AND ($3::uuid IS NULL OR owner_id = $3)
       AND ($4::jsonb IS NULL OR tenancy = $4
            AND ($3::uuid IS NULL OR has_tenancy($3, $4) OR NOT EXISTS (SELECT FROM resources WHERE id = $3)))
 ) ";

/// One state: the moment decides which change is the first one after it.
fn past_sql(next: &str) -> String {
    format!(
        "{TARGET} SELECT {columns}, c.generation, c.removal IS NOT NULL, c.is_complete, c.next,
                (SELECT k.at FROM changes_removed k)
         FROM (SELECT t.*, n.action AS next, coalesce(n.position, t.removal) AS since FROM target t
               LEFT JOIN LATERAL (SELECT action, position FROM changes x WHERE x.resource_id = t.resource_id AND {next}
                                  LIMIT 1) n ON true) c
         {STATE_JOINS}",
        columns = *STATE_COLUMNS,
    )
}

static AT_SQL: LazyLock<String> = LazyLock::new(|| past_sql("x.at > $5 ORDER BY x.position"));
static GENERATION_SQL: LazyLock<String> = LazyLock::new(|| {
    past_sql(
        "x.generation = $5 AND x.generation_after IS DISTINCT FROM x.generation ORDER BY x.position DESC",
    )
});

static TOMBSTONE_SQL: LazyLock<String> = LazyLock::new(|| {
    format!(
        "{TARGET} SELECT {columns}, c.at, c.actor, c.request_id,
                (SELECT a.reason FROM audit_entries a WHERE a.resource_id = c.resource_id AND a.generation_after IS NULL
                 ORDER BY a.sequence DESC LIMIT 1)
         FROM (SELECT t.resource_id, t.kind, t.removal AS since, x.at, x.actor, x.request_id
               FROM target t JOIN changes x ON x.position = t.removal) c {STATE_JOINS}",
        columns = *STATE_COLUMNS,
    )
});

/// The oldest known state is a generation, too, although the change that made it is not stored.
static GENERATIONS_SQL: LazyLock<String> = LazyLock::new(|| {
    format!(
        "{TARGET}, stored AS MATERIALIZED (
             SELECT c.position, c.position + 1 AS since, c.at, c.actor, c.request_id, c.action
             FROM changes c JOIN target t ON t.resource_id = c.resource_id
             WHERE c.generation IS NOT NULL AND c.action = 'modified'
               AND c.generation_after IS DISTINCT FROM c.generation
             UNION ALL
             SELECT coalesce(f.position, 0), CASE f.action WHEN 'created' THEN f.position + 1 ELSE 0 END, f.at, f.actor,
                    f.request_id, CASE f.action WHEN 'created' THEN 'created' END
             FROM target t LEFT JOIN LATERAL (
                 SELECT x.* FROM changes x WHERE x.resource_id = t.resource_id ORDER BY x.position LIMIT 1) f ON true
         )
         SELECT {columns}, total.count, c.is_complete, c.action, c.at, c.actor, c.request_id
         FROM (SELECT count(*) AS count FROM stored) total CROSS JOIN target t
         LEFT JOIN (SELECT t.resource_id, t.kind, t.is_complete, s.* FROM stored s CROSS JOIN target t
                    ORDER BY s.since DESC LIMIT $5 OFFSET $6) c ON true
         {STATE_JOINS} ORDER BY c.since DESC",
        columns = *STATE_COLUMNS,
    )
});

/// The newest steps, as many as the page and its total need (`$6` before the page, [`STEPS_MAX`] from there on): changes are
/// read one by one through their index, the newest first, until there are so many steps. A change is a step of its own if it
/// is declared, and one for each condition with another status.
///
/// Changes of the service have the same steps as audit entries, so that only two sorts of entries are steps: those of the removing
/// transaction that left no change of their own (a deletion that no adapter had to finalize), and those before the first stored
/// change. Their generations tell both, because each declared change has its own.
static TIMELINE_SQL: LazyLock<String> = LazyLock::new(|| {
    format!(
        "{TARGET}, walked AS MATERIALIZED (
             SELECT w.* FROM target t CROSS JOIN LATERAL (
                 SELECT c.position, s.place, s.source, c.at, coalesce(s.actor, c.actor) AS actor,
                        coalesce(s.request_id, c.request_id) AS request_id, c.cause, s.generation, s.is_deleting,
                        c.deleted_at IS NOT NULL AS was_deleting, s.before, s.after, c.generation_after,
                        k.is_declared
                 FROM changes c CROSS JOIN LATERAL (
                     SELECT (c.action = 'created' OR c.generation IS NOT NULL)
                            AND c.generation_after IS DISTINCT FROM c.generation AS is_declared) k
                 CROSS JOIN LATERAL (
                     SELECT 0::bigint AS place, c.action AS source, NULL AS actor, NULL AS request_id,
                            coalesce(c.generation_after, c.generation) AS generation,
                            coalesce((SELECT n.deleted_at IS NOT NULL FROM changes n
                                      WHERE n.resource_id = $1 AND n.position > c.position AND n.generation IS NOT NULL
                                      ORDER BY n.position LIMIT 1), t.deleted_at IS NOT NULL) AS is_deleting,
                            NULL::jsonb AS before, NULL::jsonb AS after
                     WHERE k.is_declared
                     UNION ALL
                     SELECT m.place, 'moved', NULL, NULL, c.generation_after, false, m.before, m.after
                     FROM (SELECT coalesce((SELECT n.conditions FROM changes n
                                            WHERE n.resource_id = $1 AND n.position > c.position
                                              AND n.conditions IS NOT NULL
                                            ORDER BY n.position LIMIT 1), t.conditions) AS conditions
                           WHERE c.conditions IS NOT NULL AND c.action = 'modified' OFFSET 0) later
                     CROSS JOIN LATERAL (
                         SELECT coalesce(a.place, b.place) AS place, b.value AS before, a.value AS after
                         FROM jsonb_array_elements(c.conditions) WITH ORDINALITY b (value, place)
                         FULL JOIN jsonb_array_elements(later.conditions) WITH ORDINALITY a (value, place)
                         ON a.value ->> 'type' = b.value ->> 'type'
                         WHERE a.value ->> 'status' IS DISTINCT FROM b.value ->> 'status') m
                     UNION ALL
                     SELECT -row_number() OVER (ORDER BY e.sequence DESC), e.action, e.actor, e.request_id,
                            e.generation_after, false, NULL, NULL
                     FROM (SELECT * FROM audit_entries WHERE resource_id = $1 AND c.action = 'removed'
                           ORDER BY sequence DESC LIMIT {REMOVAL_ENTRIES_MAX}) e
                     WHERE e.generation_after > c.generation
                 ) s
                 WHERE c.resource_id = $1
                 ORDER BY c.position DESC, s.place DESC LIMIT $6::bigint + {STEPS_MAX}
             ) w
         ), earlier AS MATERIALIZED (
             SELECT e.* FROM target t CROSS JOIN audit_entries e
             WHERE e.resource_id = $1 AND NOT t.is_complete
               AND e.generation_after <= coalesce((SELECT f.generation FROM changes f
                                                   WHERE f.resource_id = $1 AND f.generation IS NOT NULL
                                                   ORDER BY f.position LIMIT 1), t.generation)
               AND (SELECT count(*) FROM walked) < $6::bigint + {STEPS_MAX}
             ORDER BY e.sequence DESC LIMIT $6::bigint + {STEPS_MAX}
         ), steps AS MATERIALIZED (
             SELECT position, place, source, at, actor, request_id, cause, generation, was_deleting, is_deleting, before,
                    after, generation_after, is_declared, lag(at) OVER (
                        PARTITION BY source, coalesce(before, after) ->> 'type' ORDER BY position) AS since
             FROM walked
             UNION ALL
             SELECT NULL, sequence, action, at, actor, request_id, NULL, generation_after, false, false, NULL, NULL, NULL,
                    false, NULL
             FROM earlier
         )
         SELECT least(total.count, $6::bigint + {STEPS_MAX}), t.is_complete, s.source, s.at,
                coalesce(s.actor, e.actor), coalesce(s.request_id, e.request_id), s.cause, e.reason, s.generation,
                s.was_deleting, s.is_deleting, s.before, s.after, s.since
         FROM (SELECT count(*) AS count FROM steps) total CROSS JOIN target t
         LEFT JOIN (SELECT * FROM steps ORDER BY position DESC NULLS LAST, place DESC LIMIT $5 OFFSET $6) s ON true
         LEFT JOIN LATERAL (
             SELECT actor, request_id, reason FROM audit_entries
             WHERE (s.source = 'removed' OR s.is_declared AND s.request_id IS NULL) AND resource_id = $1
               AND generation_after IS NOT DISTINCT FROM s.generation_after
             ORDER BY sequence DESC LIMIT 1) e ON true
         ORDER BY s.position DESC NULLS LAST, s.place DESC"
    )
});

/// Most steps that a page of events reads and counts from its first one on.
const STEPS_MAX: u32 = 1_000;
const _: () = assert!(PageRequest::SIZE_MAX < STEPS_MAX);
/// The removal of a resource and what else its transaction did to it have at most so many entries, the last ones.
const REMOVAL_ENTRIES_MAX: u32 = 4;

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
        self.complete(found, Raw, "read a removed resource")
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

    /// The events of a resource that a page shows; `None` if nothing is stored of it.
    pub async fn list_timeline(
        &mut self,
        scope: ResourceScope<'_>,
        page: PageRequest,
    ) -> Result<Option<RecordedTimeline>, Error> {
        // Planned with its numbers: only with them does the plan read no more changes than it must.
        let query = scoped(&TIMELINE_SQL, scope)
            .bind(i64::from(page.size))
            .bind(page.offset())
            .persistent(false);
        let result = query.fetch_all(self.repeatable_connection()).await;
        let rows = self.complete(result, SqlOperation::Query(Changes), "list events")?;
        let read = recorded_timeline(&rows);
        self.complete(read, Raw, "read events")
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

fn past_record(row: &PgRow) -> Result<PastRecord, sqlx::Error> {
    let next: Option<&str> = row.try_get(AFTER_STATE + 3)?;
    Ok(PastRecord {
        state: StoredRow::read(row)?.into(),
        next: next.map(|action| match action {
            "created" => NextChange::Created,
            _ => NextChange::Other,
        }),
        is_removed: row.try_get(AFTER_STATE + 1)?,
        is_complete: row.try_get(AFTER_STATE + 2)?,
        generation: row.try_get(AFTER_STATE)?,
        kept_since: row.try_get(AFTER_STATE + 4)?,
    })
}

fn tombstone(row: &PgRow) -> Result<Tombstone, sqlx::Error> {
    Ok(Tombstone {
        last: StoredRow::read(row)?.into(),
        removed_at: row.try_get(AFTER_STATE)?,
        removed_by: row.try_get(AFTER_STATE + 1)?,
        request_id: row.try_get(AFTER_STATE + 2)?,
        reason: row.try_get(AFTER_STATE + 3)?,
    })
}

fn recorded_generations(rows: &[PgRow]) -> Result<Option<RecordedGenerations>, sqlx::Error> {
    let Some(first) = rows.first() else {
        return Ok(None);
    };
    let mut generations = Vec::with_capacity(rows.len());
    for row in rows {
        // A page behind the end has one row: the total.
        if row.try_get::<Option<uuid::Uuid>, _>(0)?.is_none() {
            continue;
        }
        let at: Option<DateTime<Utc>> = row.try_get(AFTER_STATE + 3)?;
        let is_created = row.try_get::<Option<&str>, _>(AFTER_STATE + 2)? == Some("created");
        let is_known = row.try_get::<Option<&str>, _>(AFTER_STATE + 2)?.is_some();
        let author = match at.filter(|_| is_known) {
            None => None,
            Some(at) => Some(GenerationAuthor {
                at,
                actor: row.try_get(AFTER_STATE + 4)?,
                request_id: row.try_get(AFTER_STATE + 5)?,
            }),
        };
        generations.push(RecordedGeneration {
            state: StoredRow::read(row)?.into(),
            author,
            is_created,
        });
    }
    Ok(Some(RecordedGenerations {
        generations,
        total: first.try_get(AFTER_STATE)?,
        is_complete: first
            .try_get::<Option<bool>, _>(AFTER_STATE + 1)?
            .unwrap_or(false),
    }))
}

fn recorded_timeline(rows: &[PgRow]) -> Result<Option<RecordedTimeline>, sqlx::Error> {
    let Some(first) = rows.first() else {
        return Ok(None);
    };
    let steps = rows.iter().map(recorded_step).filter_map(Result::transpose);
    Ok(Some(RecordedTimeline {
        steps: steps.collect::<Result<_, _>>()?,
        total: first.try_get(0)?,
        is_complete: first.try_get(1)?,
    }))
}

/// `None` for the row of a page behind the end.
fn recorded_step(row: &PgRow) -> Result<Option<RecordedStep>, sqlx::Error> {
    let Some(source) = row.try_get::<Option<&str>, _>(2)? else {
        return Ok(None);
    };
    let condition = |column: usize| -> Result<Option<Box<Condition>>, sqlx::Error> {
        let found: Option<Json<Condition>> = row.try_get(column)?;
        Ok(found.map(|found| Box::new(found.0)))
    };
    let source = match source {
        "created" => StepSource::Created,
        "modified" => StepSource::Declared {
            was_deleting: row.try_get(9)?,
            is_deleting: row.try_get(10)?,
        },
        "removed" => StepSource::Removed,
        "moved" => StepSource::Moved {
            before: condition(11)?,
            after: condition(12)?,
            since: row.try_get(13)?,
        },
        audited => StepSource::Audited(audited.parse().map_err(|_| {
            sqlx::Error::decode(format!("a stored action is impossible: {audited}"))
        })?),
    };
    Ok(Some(RecordedStep {
        at: row.try_get(3)?,
        actor: row.try_get(4)?,
        request_id: row.try_get(5)?,
        cause: row.try_get(6)?,
        reason: row.try_get(7)?,
        generation: row.try_get(8)?,
        source,
    }))
}
