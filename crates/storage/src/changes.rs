//! Table `changes`: the recorded changes of resources, in an order that can be followed (`docs/decisions/0074-watch.md`).

use std::sync::LazyLock;
use std::time::Duration;

use chrono::{DateTime, Utc};
use deadpool::managed::{PoolError, TimeoutType};
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, Row as _};
use tokio::time::timeout;

use super::measure::SqlOperation::{Delete, Query, Raw};
use super::measure::SqlTable::Changes;
use super::pool::{self, Link, Settings};
use super::row::{COLUMNS_COUNT, StoredRow, state_columns};
use super::{Db, Error};
use hyperfleet_domain::StoredResource;
use hyperfleet_domain::change::ChangePosition;
use hyperfleet_domain::watch::{PolledEnd, ResourceImage, WatchedChange};

/// The name of the connection in `pg_stat_activity`.
const NAME: &str = "hyperfleet-api-watch";

/// Which changes to read.
#[derive(Debug, Clone, Copy)]
pub struct ChangesSlice<'a> {
    /// Those after this position,
    pub after: i64,
    /// up to this one,
    pub upto: i64,
    /// of this kind; unset for all.
    pub kind: Option<&'a str>,
    /// At most so many.
    pub count_max: usize,
}

/// Changes, and which positions there are.
#[derive(Debug)]
pub struct ChangesRead {
    pub era: i64,
    /// Up to which position retention has removed changes.
    pub removed: i64,
    pub changes: Vec<WatchedChange>,
    /// Up to which position all were read.
    pub reached: i64,
}

/// The state after each change, or the last one of a removed resource; that of the change before; then the position.
static SQL: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {state}, {before}, m.era, m.removed, c.position, c.action
         FROM (SELECT audit_era() AS era, coalesce((SELECT position FROM changes_removed), 0) AS removed) m
         LEFT JOIN (SELECT position, action, resource_id FROM changes
                    WHERE position > $1 AND position <= $2 AND ($3::text IS NULL OR kind = $3)
                    ORDER BY position LIMIT $4) c ON true
         LEFT JOIN resource_states s ON s.position = c.position
         LEFT JOIN LATERAL (SELECT position FROM changes p
                            WHERE c.action = 'modified' AND p.resource_id = c.resource_id AND p.position < c.position
                            ORDER BY p.position DESC LIMIT 1) p ON true
         LEFT JOIN resource_states b ON b.position = p.position
         ORDER BY c.position",
        state = state_columns("s", true),
        before = state_columns("b", true),
    )
});

const BEFORE: usize = COLUMNS_COUNT;
const ERA: usize = 2 * COLUMNS_COUNT;
const REMOVED: usize = ERA + 1;
const POSITION: usize = ERA + 2;
const ACTION: usize = ERA + 3;

impl Db<'_> {
    /// Polls the end of the changes.
    pub async fn changes_end(&mut self) -> Result<PolledEnd, Error> {
        let result = sqlx::query!(
            r#"SELECT era AS "era!", drawn AS "drawn!", removed AS "removed!", writers AS "writers!" FROM changes_end()"#
        )
        .fetch_one(self.repeatable_connection())
        .await;
        let row = self.complete(result, Query(Changes), "read the end of the changes")?;
        Ok(PolledEnd {
            era: row.era,
            allocated: row.drawn,
            removed: row.removed,
            writers: row.writers.into_iter().collect(),
        })
    }

    /// The changes of a slice, in their order, each with the resource before and after it.
    pub async fn read_changes(&mut self, slice: ChangesSlice<'_>) -> Result<ChangesRead, Error> {
        let query = sqlx::query(AssertSqlSafe(SQL.as_str()))
            .bind(slice.after)
            .bind(slice.upto)
            .bind(slice.kind)
            .bind(i64::try_from(slice.count_max).unwrap_or(i64::MAX));
        let result = query.fetch_all(self.repeatable_connection()).await;
        let rows = self.complete(result, Query(Changes), "read changes")?;
        let is_full = rows.len() >= slice.count_max;
        let read = read(&rows, slice.upto, is_full);
        self.complete(read, Raw, "read a change")
    }

    /// Removes changes that are older than `before`, looking at `count_max` of the oldest at most; returns how many of them
    /// are older. Also notes up to which position changes may be gone.
    ///
    /// The last of these changes of an existing resource stays, with its complete state, as the base of later changes.
    /// Positions decide what is oldest: a change whose time was ahead goes with the older ones that follow it.
    pub async fn delete_changes_before(
        &mut self,
        before: DateTime<Utc>,
        count_max: i64,
    ) -> Result<u64, Error> {
        let result = sqlx::query_scalar!(
            r#"WITH oldest AS MATERIALIZED (
                   SELECT position, at, resource_id FROM changes
                   WHERE position > coalesce((SELECT position FROM changes_removed), 0) ORDER BY position LIMIT $2
               ), expired AS MATERIALIZED (
                   SELECT * FROM oldest WHERE position <= (SELECT max(position) FROM oldest WHERE at < $1)
               ), last AS MATERIALIZED (
                   SELECT DISTINCT ON (resource_id) resource_id, position FROM expired ORDER BY resource_id, position DESC
               ), filled AS (
                   UPDATE changes c
                   SET conditions = s.conditions, owner_id = s.owner_id, created_at = s.created_at, updated_at = s.updated_at,
                       deleted_at = s.deleted_at, name = s.name, created_by = s.created_by, updated_by = s.updated_by,
                       deleted_by = s.deleted_by, tenancy = s.tenancy, labels = s.labels, links = s.links, spec = s.spec
                   FROM last l JOIN resource_states s ON s.position = l.position
                   WHERE c.position = l.position AND c.action <> 'removed'
                     AND (c.updated_at IS NULL OR c.spec IS NULL OR c.conditions IS NULL)
               ), gone AS (
                   DELETE FROM changes c USING last l
                   WHERE c.resource_id = l.resource_id
                     AND (c.position < l.position OR c.position = l.position AND c.action = 'removed')
               ), noted AS (
                   -- A time that was ahead would refuse moments that are still known.
                   INSERT INTO changes_removed (position, at)
                   SELECT max(position), max(at) FILTER (WHERE at < $1) FROM expired HAVING count(*) > 0
                   ON CONFLICT (only_one) DO UPDATE SET position = greatest(changes_removed.position, excluded.position),
                                                        at = greatest(changes_removed.at, excluded.at)
               )
               SELECT count(*) AS "count!" FROM expired"#,
            before,
            count_max,
        )
        .fetch_one(self.connection())
        .await;
        let count = self.complete(result, Delete(Changes), "remove expired changes")?;
        Ok(u64::try_from(count).unwrap_or(0))
    }
}

fn read(rows: &[PgRow], upto: i64, is_full: bool) -> Result<ChangesRead, sqlx::Error> {
    let last = rows.last().filter(|_| is_full);
    let last = last
        .map(|row| row.try_get::<Option<i64>, _>(POSITION))
        .transpose()?;
    let (mut era, mut removed) = (0, 0);
    let mut changes = Vec::with_capacity(rows.len());
    for row in rows {
        era = row.try_get(ERA)?;
        removed = row.try_get(REMOVED)?;
        // There is a row without a change if there are none.
        if let Some(number) = row.try_get(POSITION)? {
            changes.push(change(row, ChangePosition { era, number })?);
        }
    }
    Ok(ChangesRead {
        era,
        removed,
        changes,
        reached: last.flatten().unwrap_or(upto),
    })
}

fn change(row: &PgRow, position: ChangePosition) -> Result<WatchedChange, sqlx::Error> {
    let (before, after) = match row.try_get(ACTION)? {
        "created" => (None, state(row, 0)?),
        "removed" => (state(row, 0)?, None),
        _ => (state(row, BEFORE)?, state(row, 0)?),
    };
    Ok(WatchedChange {
        position,
        before,
        after,
    })
}

fn state(row: &PgRow, column: usize) -> Result<Option<ResourceImage>, sqlx::Error> {
    let read = StoredRow::read_state(row, column)?;
    Ok(read.map(|state| StoredResource::from(state).into()))
}

/// A connection of its own that polls the end of the changes, so that requests lose none. It is opened on demand, and
/// reused while it works.
pub struct ChangeFeed {
    settings: Settings,
    link: Option<Link>,
}

impl ChangeFeed {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            settings,
            link: None,
        }
    }

    /// [`Db::changes_end`] on this connection. If it is cancelled half-way, the next call makes a new one.
    ///
    /// # Errors
    ///
    /// The database is unavailable, or has an older schema.
    pub async fn end(&mut self) -> Result<PolledEnd, Error> {
        let mut link = self.take().await?;
        let end = Db { link: &mut link }.changes_end().await?;
        self.link = Some(link);
        Ok(end)
    }

    /// [`Db::read_changes`] on this connection, likewise.
    ///
    /// # Errors
    ///
    /// The database is unavailable, or has an older schema.
    pub async fn read(&mut self, slice: ChangesSlice<'_>) -> Result<ChangesRead, Error> {
        let mut link = self.take().await?;
        let read = Db { link: &mut link }.read_changes(slice).await?;
        self.link = Some(link);
        Ok(read)
    }

    async fn take(&mut self) -> Result<Link, Error> {
        if let Some(link) = self.link.take() {
            return Ok(link);
        }
        let time = Duration::from_secs(self.settings.acquire_seconds_max);
        let connected = timeout(time, pool::connect(&self.settings, NAME)).await;
        let connected = connected.map_or(Err(PoolError::Timeout(TimeoutType::Create)), |link| {
            link.map_err(PoolError::Backend)
        });
        connected.map_err(Error::no_connection)
    }
}
