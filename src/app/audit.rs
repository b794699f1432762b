//! Reads and expires the audit trail.

use chrono::{DateTime, Utc};

use super::expiry::{STEP_ROWS, Steps};
use super::{Error, Service};
use crate::domain::audit::{AuditFilter, TrailPage};
use crate::domain::page::PageRequest;
use crate::domain::tenancy::TenantScope;

impl Service {
    /// Returns one page of the entries that a caller sees: newest first, or those after a position.
    ///
    /// A read that counts or filters entries is slow on a long trail, so it waits in line with searches. Only the
    /// whole trail after a position does neither.
    ///
    /// # Errors
    ///
    /// [`Error::AheadOfTrail`] if the position is not one of this state of the database.
    pub async fn audit(
        &self,
        tenants: &TenantScope,
        filter: &AuditFilter,
        page: PageRequest,
    ) -> Result<TrailPage, Error> {
        let is_read_in_order = filter.is_after_alone() && tenants.tenancy().is_none();
        let mut session = if is_read_in_order {
            self.store.session().await?
        } else {
            self.store.slow_session().await?
        };
        let rows = session.db().list_audit(tenants, filter, page).await?;
        if filter
            .after
            .is_some_and(|after| !rows.settled.reaches(after))
        {
            return Err(Error::AheadOfTrail);
        }
        let end = rows.end.unwrap_or_else(|| rows.settled.end(filter.after));
        Ok(TrailPage {
            listing: rows.listing,
            position: end,
            sealed: rows.sealed,
        })
    }

    /// Removes the entries of all passes that are older than `before` as a whole; returns the number of entries. Their seals
    /// are marked first: so a verification never misses an entry that retention removes. Entries without a seal stay.
    pub async fn expire_audit(
        &self,
        before: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<u64, Error> {
        let mut tx = self.store.begin().await?;
        let marked = tx.db().mark_expired_seals(before, now).await;
        tx.finish(marked.map_err(Error::from)).await?;
        let Some(end) = self.store.session().await?.db().expired_end().await? else {
            return Ok(0);
        };
        let (mut removed, mut steps) = (0, Steps::begin());
        loop {
            let mut tx = self.store.begin().await?;
            let result = tx.db().delete_audit_up_to(end, STEP_ROWS).await;
            let count = tx.finish(result.map_err(Error::from)).await?;
            if count == 0 {
                break;
            }
            removed += count;
            steps.rest().await;
        }
        loop {
            let mut tx = self.store.begin().await?;
            let result = tx.db().delete_expired_seals(STEP_ROWS).await;
            if tx.finish(result.map_err(Error::from)).await? == 0 {
                return Ok(removed);
            }
            steps.rest().await;
        }
    }
}
