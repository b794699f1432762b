//! Reads entries and seals for verifications and exports. Every method needs the same transaction of
//! [`Store::begin_reading`](super::Store::begin_reading): so retention and sealing change nothing in between.

use chrono::{DateTime, Utc};
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use sqlx::{FromRow, Postgres, QueryBuilder, Row as _};

use super::audit_seals::ENTRY_COLUMNS;
use super::list::BY_POSITION;
use super::measure::SqlOperation::Bulk;
use super::measure::SqlTable::{Audit, AuditSeals};
use super::{Db, Error};
use crate::domain::audit::{RemovedPart, RemovedSeal, Seal, TrailEntry, TrailPosition};

const SEAL_COLUMNS: &str = "tenancy, number, begin_era, begin_commit_order, begin_sequence, end_era, end_commit_order, \
    end_sequence, newest_at, sealed_at, entries, previous, hash, pass_previous, pass_hash";
const BY_END: &str = " ORDER BY end_era, end_commit_order, end_sequence";

/// The sealed part of the trail, and what is beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrailBounds {
    /// The end of the part that retention has removed, or removes.
    pub removed: Option<TrailPosition>,
    /// The time of the newest entry in it.
    pub removed_newest_at: Option<DateTime<Utc>>,
    /// Its entries that are still there.
    pub removed_entries: i64,
    /// The end of the last pass.
    pub sealed: TrailPosition,
    /// Entries after it, and the time of the oldest one.
    pub unsealed: i64,
    pub unsealed_at: Option<DateTime<Utc>>,
}

impl FromRow<'_, PgRow> for RemovedSeal {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            seal: Seal::from_row(row)?,
            removed_at: row.try_get("removed_at")?,
            removed_before: row.try_get("removed_before")?,
        })
    }
}

impl Db<'_> {
    pub async fn trail_bounds(&mut self) -> Result<TrailBounds, Error> {
        let removed = self.expired_end().await?;
        let sealed = self.sealing_state().await?.last_pass.end;
        let start = removed.unwrap_or(TrailPosition::START);
        let result = sqlx::query!(
            r#"SELECT u.count AS "unsealed!", u.oldest_at AS unsealed_at,
                      (SELECT count(*) FROM audit_entries WHERE (era, commit_order, sequence) <= ($4, $5, $6)) AS "removed!",
                      (SELECT max(newest_at) FROM audit_seals WHERE removed_at IS NOT NULL) AS removed_newest_at
               FROM (SELECT count(*), min(at) AS oldest_at FROM audit_entries
                     WHERE (era, commit_order, sequence) > ($1, $2, $3)) u"#,
            sealed.era,
            sealed.commit_order,
            sealed.sequence,
            start.era,
            start.commit_order,
            start.sequence,
        )
        .fetch_one(self.connection())
        .await;
        let row = self.complete(result, Bulk(Audit), "count unsealed entries")?;
        Ok(TrailBounds {
            removed,
            removed_newest_at: row.removed_newest_at,
            removed_entries: row.removed,
            sealed,
            unsealed: row.unsealed,
            unsealed_at: row.unsealed_at,
        })
    }

    /// The last marked seal of each chain that has one.
    pub async fn removed_part(&mut self) -> Result<RemovedPart, Error> {
        let mut query = QueryBuilder::new("SELECT DISTINCT ON (tenancy) ");
        query.push(SEAL_COLUMNS);
        query.push(", removed_at, removed_before");
        query.push(" FROM audit_seals WHERE removed_at IS NOT NULL ORDER BY tenancy, number DESC");
        let result = query
            .build_query_as::<RemovedSeal>()
            .fetch_all(self.connection())
            .await;
        let doing = "read the ends of removed chains";
        let seals = self.complete(result, Bulk(AuditSeals), doing)?;
        Ok(seals.into_iter().collect())
    }

    /// Seals that are not marked although those of a later pass are; at most 1,000.
    pub async fn unmarked_seals_up_to(&mut self, end: TrailPosition) -> Result<Vec<Seal>, Error> {
        let mut query = QueryBuilder::new("SELECT ");
        query.push(SEAL_COLUMNS);
        query.push(" FROM audit_seals WHERE removed_at IS NULL AND ");
        push_end(&mut query, "<=", end);
        query.push(BY_END).push(" LIMIT 1000");
        self.seals(query, "read unmarked seals").await
    }

    /// A seal of the first pass with an entry of `time` or later.
    pub async fn first_seal_since(&mut self, time: DateTime<Utc>) -> Result<Option<Seal>, Error> {
        let mut query = QueryBuilder::new("SELECT ");
        query.push(SEAL_COLUMNS);
        query.push(" FROM audit_seals WHERE removed_at IS NULL AND newest_at >= ");
        query.push_bind(time).push(BY_END).push(" LIMIT 1");
        let seals = self
            .seals(query, "find the first pass since a time")
            .await?;
        Ok(seals.into_iter().next())
    }

    /// Seals of the passes after a position, and up to another: about `count_max`, and all of the last pass. By passes,
    /// then by tenancy.
    pub async fn seals_between(
        &mut self,
        after: TrailPosition,
        end: TrailPosition,
        count_max: i64,
    ) -> Result<Vec<Seal>, Error> {
        let mut query = QueryBuilder::new("SELECT ");
        query.push(SEAL_COLUMNS).push(" FROM audit_seals WHERE ");
        push_end(&mut query, ">", after);
        query.push(" AND ");
        push_end(&mut query, "<=", end);
        query.push(BY_END).push(" FETCH FIRST ");
        query.push(count_max).push(" ROWS WITH TIES");
        let mut seals = self.seals(query, "read seals").await?;
        seals.sort_by(|one, other| (one.end, &one.tenancy).cmp(&(other.end, &other.tenancy)));
        Ok(seals)
    }

    /// At most `count_max` entries after a position, and up to another; without one, settled ones only.
    pub async fn entries_between(
        &mut self,
        after: TrailPosition,
        end: Option<TrailPosition>,
        count_max: i64,
    ) -> Result<Vec<TrailEntry>, Error> {
        let Some(end) = end else {
            return self.settled_after(after, count_max).await;
        };
        let mut query = QueryBuilder::new("SELECT ");
        query.push(ENTRY_COLUMNS);
        query.push(" FROM audit_entries WHERE (era, commit_order, sequence) > (");
        push_position(&mut query, after);
        query.push(") AND (era, commit_order, sequence) <= (");
        push_position(&mut query, end);
        query.push(")").push(BY_POSITION).push(" LIMIT ");
        query.push_bind(count_max);
        let result = query.build_query_as().fetch_all(self.connection()).await;
        self.complete(result, Bulk(Audit), "read entries")
    }

    /// The seals with the tenancies and numbers of these, of those that are there.
    pub async fn seals_like(&mut self, seals: &[Seal]) -> Result<Vec<Seal>, Error> {
        let tenancies: Vec<_> = seals
            .iter()
            .map(|seal| Json(seal.tenancy.clone()))
            .collect();
        let numbers: Vec<_> = seals.iter().map(|seal| seal.number).collect();
        let mut query = QueryBuilder::new("SELECT ");
        query.push(SEAL_COLUMNS);
        query.push(" FROM audit_seals WHERE (tenancy, number) IN (SELECT * FROM unnest(");
        query.push_bind(tenancies).push(", ");
        query.push_bind(numbers).push("))");
        self.seals(query, "read seals of an export").await
    }

    async fn seals(
        &mut self,
        mut query: QueryBuilder<Postgres>,
        doing: &'static str,
    ) -> Result<Vec<Seal>, Error> {
        let result = query.build_query_as().fetch_all(self.connection()).await;
        self.complete(result, Bulk(AuditSeals), doing)
    }
}

fn push_end(query: &mut QueryBuilder<Postgres>, operator: &'static str, position: TrailPosition) {
    query.push("(end_era, end_commit_order, end_sequence) ");
    query.push(operator).push(" (");
    push_position(query, position);
    query.push(")");
}

fn push_position(query: &mut QueryBuilder<Postgres>, position: TrailPosition) {
    query.push_bind(position.era).push(", ");
    query.push_bind(position.commit_order).push(", ");
    query.push_bind(position.sequence);
}
