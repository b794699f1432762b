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
    /// Number of all that are stored.
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

/// A step for each change that a reader cares about, one for each condition with another status, and one for each audit
/// entry whose change is not stored.
static TIMELINE_SQL: LazyLock<String> = LazyLock::new(|| {
    format!(
        "{TARGET}, stored AS MATERIALIZED (
             SELECT c.* FROM changes c JOIN target t ON t.resource_id = c.resource_id
         ), declared AS (
             SELECT s.*, s.deleted_at IS NOT NULL AS was_deleting,
                    coalesce(lead(s.deleted_at IS NOT NULL) OVER (ORDER BY s.position), t.deleted_at IS NOT NULL)
                        AS is_deleting
             FROM stored s CROSS JOIN target t WHERE s.generation IS NOT NULL
         ), observed AS (
             SELECT s.*, coalesce(lead(s.conditions) OVER (ORDER BY s.position), t.conditions) AS later
             FROM stored s CROSS JOIN target t WHERE s.conditions IS NOT NULL
         ), steps AS MATERIALIZED (
             SELECT position, 0::bigint AS place, action AS source, at, actor, request_id, cause, NULL AS reason,
                    generation_after AS generation, false AS was_deleting, false AS is_deleting, NULL::jsonb AS before,
                    NULL::jsonb AS after, NULL::timestamptz AS since
             FROM stored WHERE action = 'created'
             UNION ALL
             SELECT position, 0, action, at, actor, request_id, cause,
                    (SELECT a.reason FROM audit_entries a
                     WHERE d.action = 'removed' AND a.resource_id = d.resource_id AND a.generation_after IS NULL
                     ORDER BY a.sequence DESC LIMIT 1),
                    coalesce(generation_after, generation), was_deleting, is_deleting, NULL, NULL, NULL
             FROM declared d WHERE generation_after IS DISTINCT FROM generation
             UNION ALL
             SELECT o.position, m.place, 'moved', o.at, o.actor, o.request_id, o.cause, NULL, o.generation_after, false,
                    false, m.before, m.after, lag(o.at) OVER (PARTITION BY m.type ORDER BY o.position)
             FROM observed o CROSS JOIN LATERAL (
                 SELECT coalesce(a.place, b.place) AS place, coalesce(a.value, b.value) ->> 'type' AS type,
                        b.value AS before, a.value AS after
                 FROM jsonb_array_elements(o.conditions) WITH ORDINALITY b (value, place)
                 FULL JOIN jsonb_array_elements(o.later) WITH ORDINALITY a (value, place)
                 ON a.value ->> 'type' = b.value ->> 'type'
                 WHERE a.value ->> 'status' IS DISTINCT FROM b.value ->> 'status') m
             WHERE o.action = 'modified'
             UNION ALL
             SELECT NULL, e.sequence, e.action, e.at, e.actor, e.request_id, NULL, e.reason,
                    coalesce(e.generation_after, e.generation_before), false, false, NULL, NULL, NULL
             FROM audit_entries e JOIN target t ON t.resource_id = e.resource_id
             WHERE NOT EXISTS (SELECT FROM stored s WHERE s.request_id = e.request_id
                               AND s.generation_after IS NOT DISTINCT FROM e.generation_after)
         )
         SELECT total.count, t.is_complete, s.source, s.at, s.actor, s.request_id, s.cause, s.reason, s.generation,
                s.was_deleting, s.is_deleting, s.before, s.after, s.since
         FROM (SELECT count(*) AS count FROM steps) total CROSS JOIN target t
         LEFT JOIN (SELECT * FROM steps ORDER BY position DESC NULLS LAST, place DESC LIMIT $5 OFFSET $6) s ON true
         ORDER BY s.position DESC NULLS LAST, s.place DESC"
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
        let result = query.fetch_optional(self.repeatable_wire()).await;
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
        let result = query.fetch_optional(self.repeatable_wire()).await;
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
        let result = query.fetch_all(self.repeatable_wire()).await;
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
        let query = scoped(&TIMELINE_SQL, scope)
            .bind(i64::from(page.size))
            .bind(page.offset());
        let result = query.fetch_all(self.repeatable_wire()).await;
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
