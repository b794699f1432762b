//! Reads and expires the audit trail.

use chrono::{DateTime, Utc};

use super::expiry::{STEP_ROWS, Steps};
use super::{Error, Service};
use hyperfleet_domain::audit::{AuditFilter, TrailPage, TrailPosition};
use hyperfleet_domain::page::PageRequest;
use hyperfleet_domain::tenancy::TenantScope;

impl Service {
    /// Returns one page of the entries that a caller sees: newest first, or those after a position.
    ///
    /// A read that counts or filters entries is slow on a long trail, so it waits in the queue of searches. Only a read
    /// of the entire trail after a position does neither.
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
        let is_read_in_order = filter.is_only_after() && tenants.tenancy().is_none();
        let mut session = if is_read_in_order {
            self.store.session().await?
        } else {
            self.store.slow_session().await?
        };
        let rows = session.db().list_audit(tenants, filter, page).await?;
        if filter
            .after
            .is_some_and(|after| !rows.stable.reaches(after))
        {
            return Err(Error::AheadOfTrail);
        }
        let end = rows.end.unwrap_or_else(|| rows.stable.end(filter.after));
        Ok(TrailPage {
            listing: rows.listing,
            position: end,
            sealed: rows.sealed,
        })
    }

    /// Removes the passes that are older than `before`, then their entries; returns the number of entries. A verification
    /// begins after the last one of these passes, which stays: so it misses no entry that retention removes. Entries that are
    /// not sealed stay.
    pub async fn expire_audit(&self, before: DateTime<Utc>) -> Result<u64, Error> {
        let mut steps = Steps::begin();
        while steps.rest_after(self.expire_passes(before).await?).await {}
        let mut session = self.store.session().await?;
        let first = session.db().first_pass().await?;
        drop(session);
        // The first pass is one that retention has removed, unless another program has removed those before it.
        let Some(first) = first.filter(|first| first.pass.newest_at < before) else {
            return Ok(0);
        };
        let mut steps = Steps::begin();
        let end = first.pass.end;
        while steps.rest_after(self.expire_entries(end).await?).await {}
        Ok(steps.removed())
    }

    /// Removes some of the passes.
    async fn expire_passes(&self, before: DateTime<Utc>) -> Result<u64, Error> {
        let mut tx = self.store.begin().await?;
        let result = tx.db().delete_expired_passes(before, STEP_ROWS).await;
        tx.finish(result.map_err(Error::from)).await
    }

    /// Removes some of the entries up to a position.
    async fn expire_entries(&self, end: TrailPosition) -> Result<u64, Error> {
        let mut tx = self.store.begin().await?;
        let result = tx.db().delete_entries_up_to(end, STEP_ROWS).await;
        tx.finish(result.map_err(Error::from)).await
    }
}
