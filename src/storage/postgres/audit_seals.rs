//! Table `audit_seals`: sealing the trail behind the writes.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use sqlx::{FromRow, QueryBuilder, Row as _};

use super::audit::position_of;
use super::list::{BY_POSITION, IS_SETTLED};
use super::measure::SqlOperation::{Bulk, Create, Query, Raw};
use super::measure::SqlTable::{Audit, AuditSeals};
use super::{Db, Error};
use crate::domain::Tenancy;
use crate::domain::audit::{
    ChainHash, ChainHead, PassHead, Seal, SettledTrail, TrailEntry, TrailPosition,
};

/// The number of the advisory lock of sealing; any number without another use.
const LOCK: i64 = 0x6879_7065_7266_0002;

/// The columns of a [`TrailEntry`].
pub(super) const ENTRY_COLUMNS: &str = "sequence, at, actor, request_id, action, kind, resource_id, name, \
    generation_before, generation_after, reason, tenancy, era, commit_order";

/// How far the trail is sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SealingState {
    /// How far it is settled; without the last position.
    pub settled: SettledTrail,
    pub last_pass: PassHead,
    /// The time of the first entry after it.
    pub unsealed_at: Option<DateTime<Utc>>,
}

impl FromRow<'_, PgRow> for Seal {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        let tenancy: Json<Tenancy> = row.try_get("tenancy")?;
        let position = |prefix| {
            let position = position_of(row, prefix)?;
            position.ok_or_else(|| sqlx::Error::decode("a seal without a position"))
        };
        Ok(Self {
            tenancy: tenancy.0,
            number: row.try_get("number")?,
            begin: position("begin")?,
            end: position("end")?,
            entries: row.try_get("entries")?,
            newest_at: row.try_get("newest_at")?,
            previous: hash_of(row, "previous")?,
            hash: hash_of(row, "hash")?,
            sealed_at: row.try_get("sealed_at")?,
            pass_previous: hash_of(row, "pass_previous")?,
            pass_hash: hash_of(row, "pass_hash")?,
        })
    }
}

fn hash_of(row: &PgRow, column: &str) -> Result<ChainHash, sqlx::Error> {
    let bytes: &[u8] = row.try_get(column)?;
    let hash = bytes.try_into().map(ChainHash);
    hash.map_err(|_| sqlx::Error::decode(format!("a stored {column} is not of 32 bytes")))
}

/// A hash of a query without a row type.
fn stored_hash(column: &'static str, bytes: &[u8]) -> Result<ChainHash, Error> {
    let hash = bytes.try_into().map(ChainHash);
    hash.map_err(|_| Error::Corrupt {
        column,
        value: "not of 32 bytes".to_owned(),
    })
}

impl Db<'_> {
    /// How far the trail is sealed, as of one moment.
    pub async fn sealing_state(&mut self) -> Result<SealingState, Error> {
        let result = sqlx::query!(
            r#"SELECT audit_era() AS "era!", pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS "transaction!",
                      s.end_era AS "end_era?", s.end_commit_order AS "end_commit_order?", s.end_sequence AS "end_sequence?",
                      s.pass_hash AS "pass_hash?",
                      (SELECT at FROM audit_entries
                       WHERE (era, commit_order, sequence)
                             > (coalesce(s.end_era, 0), coalesce(s.end_commit_order, 0), coalesce(s.end_sequence, 0))
                       ORDER BY era, commit_order, sequence LIMIT 1) AS unsealed_at
               FROM (SELECT) one
               LEFT JOIN (SELECT end_era, end_commit_order, end_sequence, pass_hash FROM audit_seals
                          ORDER BY end_era DESC, end_commit_order DESC, end_sequence DESC LIMIT 1) s ON true"#
        )
        .fetch_one(self.repeatable_connection())
        .await;
        let row = self.complete(
            result,
            Query(AuditSeals),
            "read how far the trail is sealed",
        )?;
        let end = row.end_era.zip(row.end_commit_order).zip(row.end_sequence);
        let end = end.map(|((era, commit_order), sequence)| TrailPosition {
            era,
            commit_order,
            sequence,
        });
        let hash = row.pass_hash.as_deref();
        let hash = hash.map(|bytes| stored_hash("pass_hash", bytes));
        let last_pass = end.zip(hash.transpose()?);
        let last_pass = last_pass.map(|(end, hash)| PassHead { end, hash });
        Ok(SealingState {
            settled: SettledTrail {
                era: row.era,
                transaction: row.transaction,
                last: None,
            },
            last_pass: last_pass.unwrap_or_default(),
            unsealed_at: row.unsealed_at,
        })
    }

    /// Takes the lock of sealing until the transaction ends; false if another transaction has it. A statement of its own:
    /// later ones see the seals of the transaction that had the lock before.
    pub async fn lock_sealing(&mut self) -> Result<bool, Error> {
        let result = sqlx::query_scalar!(
            r#"SELECT pg_try_advisory_xact_lock($1) AS "is_taken!""#,
            LOCK
        )
        .fetch_one(self.connection())
        .await;
        self.complete(result, Raw, "lock the sealing of the trail")
    }

    /// At most `count_max` settled entries after a position, in the order of the trail.
    pub async fn settled_after(
        &mut self,
        after: TrailPosition,
        count_max: i64,
    ) -> Result<Vec<TrailEntry>, Error> {
        let mut query = QueryBuilder::new("SELECT ");
        query.push(ENTRY_COLUMNS);
        query.push(" FROM audit_entries WHERE (era, commit_order, sequence) > (");
        query.push_bind(after.era).push(", ");
        query.push_bind(after.commit_order).push(", ");
        query.push_bind(after.sequence).push(") AND ");
        query.push(IS_SETTLED).push(BY_POSITION).push(" LIMIT ");
        query.push_bind(count_max);
        let result = query.build_query_as().fetch_all(self.connection()).await;
        self.complete(result, Bulk(Audit), "read entries to seal")
    }

    /// The ends of the chains of these tenancies, of those that have one.
    pub async fn chain_heads(
        &mut self,
        tenancies: &[&Tenancy],
    ) -> Result<BTreeMap<Tenancy, ChainHead>, Error> {
        let tenancies: Vec<_> = tenancies.iter().map(Json).collect();
        let result = sqlx::query!(
            r#"SELECT t.tenancy AS "tenancy!: Json<Tenancy>", s.number, s.hash
               FROM unnest($1::jsonb[]) t (tenancy)
               CROSS JOIN LATERAL (SELECT number, hash FROM audit_seals s WHERE s.tenancy = t.tenancy
                                   ORDER BY number DESC LIMIT 1) s"#,
            tenancies as _,
        )
        .fetch_all(self.connection())
        .await;
        let rows = self.complete(result, Query(AuditSeals), "read the ends of chains")?;
        let head = |hash: &[u8], number| {
            let hash = stored_hash("hash", hash);
            hash.map(|hash| ChainHead { number, hash })
        };
        rows.into_iter()
            .map(|row| Ok((row.tenancy.0, head(&row.hash, row.number)?)))
            .collect()
    }

    pub async fn insert_seals(&mut self, seals: &[Seal]) -> Result<(), Error> {
        let column = |value: fn(&Seal) -> i64| seals.iter().map(value).collect::<Vec<_>>();
        let tenancies: Vec<_> = seals.iter().map(|seal| Json(&seal.tenancy)).collect();
        let entries: Vec<_> = seals.iter().map(|seal| seal.entries).collect();
        let newest: Vec<_> = seals.iter().map(|seal| seal.newest_at).collect();
        let sealed: Vec<_> = seals.iter().map(|seal| seal.sealed_at).collect();
        let hashes = |value: fn(&Seal) -> ChainHash| {
            let bytes = seals.iter().map(|seal| value(seal).0.to_vec());
            bytes.collect::<Vec<_>>()
        };
        let result = sqlx::query!(
            "INSERT INTO audit_seals (tenancy, number, begin_era, begin_commit_order, begin_sequence,
                                      end_era, end_commit_order, end_sequence, entries, newest_at, sealed_at, previous, hash,
                                      pass_previous, pass_hash)
             SELECT * FROM unnest($1::jsonb[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
                                  $7::bigint[], $8::bigint[], $9::int[], $10::timestamptz[], $11::timestamptz[],
                                  $12::bytea[], $13::bytea[], $14::bytea[], $15::bytea[])",
            tenancies as _,
            &column(|seal| seal.number),
            &column(|seal| seal.begin.era),
            &column(|seal| seal.begin.commit_order),
            &column(|seal| seal.begin.sequence),
            &column(|seal| seal.end.era),
            &column(|seal| seal.end.commit_order),
            &column(|seal| seal.end.sequence),
            &entries,
            &newest,
            &sealed,
            &hashes(|seal| seal.previous),
            &hashes(|seal| seal.hash),
            &hashes(|seal| seal.pass_previous),
            &hashes(|seal| seal.pass_hash),
        )
        .execute(self.connection())
        .await;
        self.complete(result, Create(AuditSeals), "seal the trail")?;
        Ok(())
    }
}
