//! Table `changes`: what watchers are shown, in an order that can be followed (`docs/decisions/0074-watch.md`).
//!
//! A row has the values that its change replaced. The state after a change is, value by value, that of the earliest later
//! change that replaced it, or else that of the resource now. One statement reads the changes and the resources of one
//! moment, so that both belong together.

use std::sync::LazyLock;
use std::time::Duration;

use chrono::{DateTime, Utc};
use deadpool::managed::{PoolError, TimeoutType};
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use sqlx::{AssertSqlSafe, Row as _};
use tokio::time::timeout;
use uuid::Uuid;

use super::measure::SqlOperation::{Delete, Query, Raw};
use super::measure::SqlTable::Changes;
use super::pool::{self, Link, Settings};
use super::row::{COLUMNS_COUNT, JsonbText, Link as RowLink, StoredRow, deletion, references};
use super::states::{STATE_COLUMNS, STATE_JOINS};
use super::{Db, Error};
use crate::domain::change::ChangePosition;
use crate::domain::watch::{PolledEnd, WatchedChange};
use crate::domain::{StoredResource, Tenancy};

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

/// Consists of constants only. The columns of [`StoredRow`] come first: the state after the change, or the last one of a
/// removed resource. Then those of [`Replaced`].
static SQL: LazyLock<String> = LazyLock::new(|| {
    // A removal follows itself: the state after it is the last one.
    format!(
        "SELECT {columns},
                s.era, s.removed, c.position, r.id IS NOT NULL OR w.position IS NOT NULL, c.transaction, c.action,
                c.revision, c.generation, c.updated_at, c.updated_by, c.deleted_at, c.deleted_by,
                c.created_at, c.created_by, c.name, c.owner_id, c.tenancy, c.spec, c.labels, c.conditions, c.links
         FROM (SELECT audit_era() AS era, coalesce((SELECT upto FROM changes_removed), 0) AS removed) s
         LEFT JOIN (SELECT *, CASE action WHEN 'removed' THEN position ELSE position + 1 END AS since
                    FROM changes WHERE position > $1 AND position <= $2 AND ($3::text IS NULL OR kind = $3)
                    ORDER BY position LIMIT $4) c ON true
         {STATE_JOINS} ORDER BY c.position",
        columns = *STATE_COLUMNS,
    )
});

/// The columns of a change, after those of a resource and the three of the reader.
struct Replaced {
    position: i64,
    transaction: i64,
    action: String,
    revision: Option<i64>,
    generation: Option<i32>,
    updated_at: Option<DateTime<Utc>>,
    updated_by: Option<String>,
    deleted_at: Option<DateTime<Utc>>,
    deleted_by: Option<String>,
    created_at: Option<DateTime<Utc>>,
    created_by: Option<String>,
    name: Option<String>,
    owner_id: Option<Uuid>,
    tenancy: Option<Json<Tenancy>>,
    spec: Option<JsonbText>,
    labels: Option<JsonbText>,
    conditions: Option<JsonbText>,
    links: Option<Json<Vec<RowLink>>>,
}

const ERA: usize = COLUMNS_COUNT;
const REMOVED: usize = ERA + 1;
const POSITION: usize = ERA + 2;
const IS_KNOWN: usize = ERA + 3;
const REPLACED: usize = ERA + 4;

impl Replaced {
    fn read(row: &PgRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            position: row.try_get(POSITION)?,
            transaction: row.try_get(REPLACED)?,
            action: row.try_get(REPLACED + 1)?,
            revision: row.try_get(REPLACED + 2)?,
            generation: row.try_get(REPLACED + 3)?,
            updated_at: row.try_get(REPLACED + 4)?,
            updated_by: row.try_get(REPLACED + 5)?,
            deleted_at: row.try_get(REPLACED + 6)?,
            deleted_by: row.try_get(REPLACED + 7)?,
            created_at: row.try_get(REPLACED + 8)?,
            created_by: row.try_get(REPLACED + 9)?,
            name: row.try_get(REPLACED + 10)?,
            owner_id: row.try_get(REPLACED + 11)?,
            tenancy: row.try_get(REPLACED + 12)?,
            spec: row.try_get(REPLACED + 13)?,
            labels: row.try_get(REPLACED + 14)?,
            conditions: row.try_get(REPLACED + 15)?,
            links: row.try_get(REPLACED + 16)?,
        })
    }

    /// The state before the change, from the state after it.
    fn undone(self, after: &StoredResource) -> StoredResource {
        let mut before = after.clone();
        if let Some(revision) = self.revision {
            before.revision = revision;
        }
        if let Some(((generation, at), by)) =
            self.generation.zip(self.updated_at).zip(self.updated_by)
        {
            before.generation = generation;
            before.updated_at = at;
            before.updated_by = by;
            before.deletion = deletion(self.deleted_at, self.deleted_by);
        }
        if let Some((((at, by), name), tenancy)) = self
            .created_at
            .zip(self.created_by)
            .zip(self.name)
            .zip(self.tenancy)
        {
            before.created_at = at;
            before.created_by = by;
            before.name = name;
            before.tenancy = tenancy.0;
            before.owner = self.owner_id.map(Into::into);
        }
        for (part, replaced) in [
            (&mut before.spec, self.spec),
            (&mut before.labels, self.labels),
            (&mut before.conditions, self.conditions),
        ] {
            if let Some(text) = replaced {
                *part = text.0;
            }
        }
        if let Some(links) = self.links {
            before.references = references(links.0);
        }
        before
    }

    fn change(self, era: i64, state: StoredResource) -> WatchedChange {
        let position = ChangePosition {
            era,
            number: self.position,
        };
        let transaction = self.transaction;
        let (before, after) = match self.action.as_str() {
            "created" => (None, Some(state)),
            "removed" => (Some(state), None),
            _ => (Some(self.undone(&state)), Some(state)),
        };
        WatchedChange {
            position,
            transaction,
            before: before.map(Into::into),
            after: after.map(Into::into),
        }
    }
}

impl Db<'_> {
    /// What can be said of the end of the changes now.
    pub async fn changes_end(&mut self) -> Result<PolledEnd, Error> {
        let result = sqlx::query!(
            r#"SELECT era AS "era!", drawn AS "drawn!", removed AS "removed!", writers AS "writers!" FROM changes_end()"#
        )
        .fetch_one(self.repeatable_connection())
        .await;
        let row = self.complete(result, Query(Changes), "read the end of the changes")?;
        Ok(PolledEnd {
            era: row.era,
            drawn: row.drawn,
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

    /// Removes changes that are older than `before`, at most `count_max` of the oldest; returns their number. Also notes
    /// up to which position changes are gone.
    ///
    /// Positions decide what is oldest: a change whose time was ahead goes with the older ones that follow it.
    pub async fn delete_changes_before(
        &mut self,
        before: DateTime<Utc>,
        count_max: i64,
    ) -> Result<u64, Error> {
        let result = sqlx::query_scalar!(
            r#"WITH oldest AS MATERIALIZED (
                   -- Rows that were removed before stay in the index while another transaction may see them.
                   SELECT position, at FROM changes
                   WHERE position > coalesce((SELECT upto FROM changes_removed), 0) ORDER BY position LIMIT $2
               ), gone AS (
                   DELETE FROM changes c USING oldest o
                   WHERE c.position = o.position AND o.position <= (SELECT max(position) FROM oldest WHERE at < $1)
                   RETURNING c.position, c.at
               ), noted AS (
                   -- A time that was ahead would refuse moments that are still known.
                   INSERT INTO changes_removed (upto, at)
                   SELECT max(position), max(at) FILTER (WHERE at < $1) FROM gone HAVING count(*) > 0
                   ON CONFLICT (only_one) DO UPDATE SET upto = greatest(changes_removed.upto, excluded.upto),
                                                        at = greatest(changes_removed.at, excluded.at)
               )
               SELECT count(*) AS "count!" FROM gone"#,
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
        // There is a row without a change if there are none. Of a resource that was truncated away nothing is known.
        let is_there = row.try_get::<Option<i64>, _>(POSITION)?.is_some();
        if is_there && row.try_get(IS_KNOWN)? {
            let state = StoredRow::read(row)?.into();
            changes.push(Replaced::read(row)?.change(era, state));
        }
    }
    Ok(ChangesRead {
        era,
        removed,
        changes,
        reached: last.flatten().unwrap_or(upto),
    })
}

/// One connection that follows the end of the changes: it takes none from requests. Made on demand, and kept while it
/// works.
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
