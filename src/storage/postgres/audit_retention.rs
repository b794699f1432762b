//! Removes expired passes of the audit trail: first their entries, then their seals.

use chrono::{DateTime, Utc};

use super::measure::SqlOperation::{Bulk, Delete, Query, Raw};
use super::measure::SqlTable::{Audit, AuditSeals};
use super::{Db, Error};
use crate::domain::audit::TrailPosition;

impl Db<'_> {
    /// Allows this transaction to remove parts of the trail.
    async fn open_for_retention(&mut self) -> Result<(), Error> {
        let result = sqlx::query!("SELECT set_config('hyperfleet.audit_retention', 'on', true)")
            .fetch_one(self.connection())
            .await;
        self.complete(result, Raw, "open the audit trail for retention")?;
        Ok(())
    }

    /// Marks the seals of all passes before the first one that has an entry of `before` or later. Needs a transaction, like
    /// the other statements of retention, because the right to remove ends with it.
    pub async fn mark_expired_seals(
        &mut self,
        before: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<u64, Error> {
        self.open_for_retention().await?;
        let result = sqlx::query!(
            "WITH kept AS (SELECT end_era, end_commit_order, end_sequence FROM audit_seals
                           WHERE removed_at IS NULL AND newest_at >= $1
                           ORDER BY end_era, end_commit_order, end_sequence LIMIT 1)
             UPDATE audit_seals s SET removed_at = $2, removed_before = $1
             WHERE removed_at IS NULL AND newest_at < $1
               AND (NOT EXISTS (SELECT FROM kept)
                    OR (end_era, end_commit_order, end_sequence) < (SELECT end_era, end_commit_order, end_sequence FROM kept))",
            before,
            now,
        )
        .execute(self.connection())
        .await;
        let done = self.complete(result, Bulk(AuditSeals), "mark expired seals")?;
        Ok(done.rows_affected())
    }

    /// The end of the last pass that is marked.
    pub async fn expired_end(&mut self) -> Result<Option<TrailPosition>, Error> {
        let result = sqlx::query_as!(
            TrailPosition,
            "SELECT end_era AS era, end_commit_order AS commit_order, end_sequence AS sequence
             FROM audit_seals WHERE removed_at IS NOT NULL
             ORDER BY end_era DESC, end_commit_order DESC, end_sequence DESC LIMIT 1"
        )
        .fetch_optional(self.connection())
        .await;
        self.complete(result, Query(AuditSeals), "find the end of expired passes")
    }

    /// Removes at most `count_max` entries up to a position; returns their number.
    pub async fn delete_audit_up_to(
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

    /// Removes at most `count_max` of the marked seals, but never the last marked one of a chain: the next seal continues
    /// its number and hash.
    pub async fn delete_expired_seals(&mut self, count_max: i64) -> Result<u64, Error> {
        self.open_for_retention().await?;
        let result = sqlx::query!(
            "DELETE FROM audit_seals WHERE (tenancy, number) IN (
                 SELECT tenancy, number FROM audit_seals s
                 WHERE removed_at IS NOT NULL
                   AND EXISTS (SELECT FROM audit_seals n WHERE n.tenancy = s.tenancy AND n.number > s.number
                                                           AND n.removed_at IS NOT NULL)
                 LIMIT $1)",
            count_max,
        )
        .execute(self.connection())
        .await;
        let done = self.complete(result, Delete(AuditSeals), "remove expired seals")?;
        Ok(done.rows_affected())
    }
}
