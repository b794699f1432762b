//! Table `audit_passes`: the hash chain of the audit trail. The entries below it are read, and removed, by their positions.

use chrono::{DateTime, Utc};
use hyperfleet_audit::{AuditEntry, Hash, Link, Pass, TrailPosition};
use sqlx::postgres::PgRow;
use sqlx::{Postgres, QueryBuilder, Row as _};

use super::audit::{ENTRY_COLUMNS, entry_of, position};
use super::list::{BY_POSITION, IS_STABLE};
use super::measure::SqlOperation::{Bulk, Create, Delete, Query, Raw};
use super::measure::SqlTable::{Audit, AuditPasses};
use super::{Db, Error};
use hyperfleet_domain::audit::StableTrail;

/// The number of the advisory lock of sealing; any number without another use.
const LOCK: i64 = 0x6879_7065_7266_0002;

const PASS_COLUMNS: &str = "number, end_era, end_commit_order, end_sequence, entries, newest_at, sealed_at, root, previous, hash";

/// How far the trail is sealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealingState {
    /// The stable end of the trail, without the last position.
    pub stable: StableTrail,
    pub last: Option<Link>,
    /// The time of the first entry after it.
    pub unsealed_at: Option<DateTime<Utc>>,
}

/// Where a read of entries ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrailEnd {
    At(TrailPosition),
    /// Before the first position at which an entry can still appear.
    Stable,
    /// With the last entry.
    Newest,
}

fn link_of(row: &PgRow) -> Result<Link, sqlx::Error> {
    let hash = |column: &str| {
        let bytes = row.try_get::<&[u8], _>(column)?.try_into().map(Hash);
        bytes.map_err(|_| sqlx::Error::decode(format!("a stored {column} is not of 32 bytes")))
    };
    let pass = Pass {
        end: position(row, "end_")?,
        entries: row.try_get("entries")?,
        newest_at: row.try_get("newest_at")?,
        number: row.try_get("number")?,
        previous: hash("previous")?,
        root: hash("root")?,
        sealed_at: row.try_get("sealed_at")?,
    };
    let hash = hash("hash")?;
    Ok(Link { hash, pass })
}

impl Db<'_> {
    /// How far the trail is sealed, as of one moment.
    pub async fn sealing_state(&mut self) -> Result<SealingState, Error> {
        let statement = sqlx::query(
            "SELECT audit_era() AS era, pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS transaction,
                    p.number, p.end_era, p.end_commit_order, p.end_sequence, p.entries, p.newest_at, p.sealed_at, p.root,
                    p.previous, p.hash,
                    (SELECT at FROM audit_entries
                     WHERE (era, commit_order, sequence)
                           > (coalesce(p.end_era, 0), coalesce(p.end_commit_order, 0), coalesce(p.end_sequence, 0))
                     ORDER BY era, commit_order, sequence LIMIT 1) AS unsealed_at
             FROM (SELECT) one
             LEFT JOIN (SELECT * FROM audit_passes ORDER BY number DESC LIMIT 1) p ON true",
        );
        let state = |row: PgRow| {
            let number: Option<i64> = row.try_get("number")?;
            Ok(SealingState {
                stable: StableTrail {
                    era: row.try_get("era")?,
                    transaction: row.try_get("transaction")?,
                    last: None,
                },
                last: number.map(|_| link_of(&row)).transpose()?,
                unsealed_at: row.try_get("unsealed_at")?,
            })
        };
        let result = statement.try_map(state);
        let result = result.fetch_one(self.repeatable_connection()).await;
        let doing = "read how far the trail is sealed";
        self.complete(result, Query(AuditPasses), doing)
    }

    /// Takes the lock of sealing until the transaction ends; false if another transaction has it. A statement of its own:
    /// later ones see the passes of the transaction that had the lock before.
    pub async fn lock_sealing(&mut self) -> Result<bool, Error> {
        let result = sqlx::query_scalar!(
            r#"SELECT pg_try_advisory_xact_lock($1) AS "is_taken!""#,
            LOCK
        )
        .fetch_one(self.connection())
        .await;
        self.complete(result, Raw, "lock the sealing of the trail")
    }

    pub async fn insert_pass(&mut self, link: &Link) -> Result<(), Error> {
        let Link { hash, pass } = link;
        let result = sqlx::query!(
            "INSERT INTO audit_passes (number, end_era, end_commit_order, end_sequence, entries, newest_at, sealed_at, root,
                                       previous, hash)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
            pass.number,
            pass.end.era,
            pass.end.commit_order,
            pass.end.sequence,
            pass.entries,
            pass.newest_at,
            pass.sealed_at,
            &pass.root.0,
            &pass.previous.0,
            &hash.0,
        )
        .execute(self.connection())
        .await;
        self.complete(result, Create(AuditPasses), "seal the trail")?;
        Ok(())
    }

    /// At most `count_max` entries after a position, in the order of the trail.
    pub async fn entries_after(
        &mut self,
        after: TrailPosition,
        end: TrailEnd,
        count_max: i64,
    ) -> Result<Vec<AuditEntry>, Error> {
        let mut query = QueryBuilder::new("SELECT ");
        query.push(ENTRY_COLUMNS).push(" FROM audit_entries WHERE ");
        push_position(&mut query, ">", after);
        match end {
            TrailEnd::At(end) => push_position(query.push(" AND "), "<=", end),
            TrailEnd::Stable => drop(query.push(" AND ").push(IS_STABLE)),
            TrailEnd::Newest => {}
        }
        query.push(BY_POSITION).push(" LIMIT ").push_bind(count_max);
        let result = query.build().try_map(|row| entry_of(&row));
        let result = result.fetch_all(self.connection()).await;
        self.complete(result, Bulk(Audit), "read entries of the trail")
    }

    pub async fn count_entries_up_to(&mut self, end: TrailPosition) -> Result<i64, Error> {
        let mut query = QueryBuilder::new("SELECT count(*) FROM audit_entries WHERE ");
        push_position(&mut query, "<=", end);
        let result = query
            .build_query_scalar()
            .fetch_one(self.connection())
            .await;
        self.complete(result, Bulk(Audit), "count removed entries")
    }

    pub async fn first_pass(&mut self) -> Result<Option<Link>, Error> {
        let query = select_passes("ORDER BY number LIMIT 1");
        Ok(self.passes(query).await?.pop())
    }

    /// The last pass up to whose end every entry is older.
    pub async fn last_pass_before(&mut self, time: DateTime<Utc>) -> Result<Option<Link>, Error> {
        let mut query = select_passes("WHERE newest_at < ");
        query.push_bind(time).push(" ORDER BY number DESC LIMIT 1");
        Ok(self.passes(query).await?.pop())
    }

    /// The first pass up to whose end there is an entry of this time or later.
    pub async fn first_pass_since(&mut self, time: DateTime<Utc>) -> Result<Option<Link>, Error> {
        let mut query = select_passes("WHERE newest_at >= ");
        query.push_bind(time).push(" ORDER BY number LIMIT 1");
        Ok(self.passes(query).await?.pop())
    }

    /// At most `count_max` passes from one number to another.
    pub async fn passes_between(
        &mut self,
        first: i64,
        last: i64,
        count_max: i64,
    ) -> Result<Vec<Link>, Error> {
        let mut query = select_passes("WHERE number BETWEEN ");
        query.push_bind(first).push(" AND ").push_bind(last);
        query.push(" ORDER BY number LIMIT ").push_bind(count_max);
        self.passes(query).await
    }

    /// The stored passes among these numbers.
    pub async fn passes_numbered(&mut self, numbers: Vec<i64>) -> Result<Vec<Link>, Error> {
        let mut query = select_passes("WHERE number = ANY(");
        query.push_bind(numbers).push(")");
        self.passes(query).await
    }

    async fn passes(&mut self, mut query: QueryBuilder<Postgres>) -> Result<Vec<Link>, Error> {
        let query = query.build().try_map(|row| link_of(&row));
        let result = query.fetch_all(self.connection()).await;
        self.complete(result, Bulk(AuditPasses), "read passes")
    }

    /// Allows this transaction to remove parts of the trail.
    async fn open_for_retention(&mut self) -> Result<(), Error> {
        let result = sqlx::query!("SELECT set_config('hyperfleet.audit_retention', 'on', true)")
            .fetch_one(self.connection())
            .await;
        self.complete(result, Raw, "open the audit trail for retention")?;
        Ok(())
    }

    /// Removes at most `count_max` of the passes whose entries are older than `before`, the oldest ones first; returns their
    /// number. The last one of them stays, so that the next pass follows something. Needs a transaction, because the right
    /// to remove ends with it.
    pub async fn delete_expired_passes(
        &mut self,
        before: DateTime<Utc>,
        count_max: i64,
    ) -> Result<u64, Error> {
        self.open_for_retention().await?;
        // By the first pass that stays: to look for the last one that goes would read all that stay.
        let result = sqlx::query!(
            "DELETE FROM audit_passes WHERE number IN (
                 SELECT number FROM audit_passes
                 WHERE number < coalesce((SELECT number FROM audit_passes WHERE newest_at >= $1 ORDER BY number LIMIT 1) - 1,
                                         (SELECT max(number) FROM audit_passes))
                 ORDER BY number LIMIT $2)",
            before,
            count_max,
        )
        .execute(self.connection())
        .await;
        let done = self.complete(result, Delete(AuditPasses), "remove expired passes")?;
        Ok(done.rows_affected())
    }

    /// Removes at most `count_max` of the entries up to a position; returns their number. Also needs a transaction.
    pub async fn delete_entries_up_to(
        &mut self,
        end: TrailPosition,
        count_max: i64,
    ) -> Result<u64, Error> {
        self.open_for_retention().await?;
        let result = sqlx::query!(
            "DELETE FROM audit_entries WHERE sequence IN (
                 SELECT sequence FROM audit_entries WHERE (era, commit_order, sequence) <= ($1, $2, $3)
                 ORDER BY era, commit_order, sequence LIMIT $4)",
            end.era,
            end.commit_order,
            end.sequence,
            count_max,
        )
        .execute(self.connection())
        .await;
        let done = self.complete(result, Delete(Audit), "remove expired audit entries")?;
        Ok(done.rows_affected())
    }
}

fn select_passes(which: &str) -> QueryBuilder<Postgres> {
    let mut query = QueryBuilder::new("SELECT ");
    query
        .push(PASS_COLUMNS)
        .push(" FROM audit_passes ")
        .push(which);
    query
}

fn push_position(query: &mut QueryBuilder<Postgres>, operator: &str, position: TrailPosition) {
    query.push("(era, commit_order, sequence) ").push(operator);
    query.push(" (").push_bind(position.era);
    query.push(", ").push_bind(position.commit_order);
    query.push(", ").push_bind(position.sequence).push(")");
}
