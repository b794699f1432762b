//! Acquires, renews, reads and releases leases: one statement each.

use super::expiry::{STEP_ROWS, Steps};
use super::{Error, Service};
use hyperfleet_domain::Tenancy;
use hyperfleet_domain::lease::{HeldLease, LeaseClaim, LeaseHolder, LeaseName};

impl Service {
    /// Acquires or renews a lease for a holder.
    ///
    /// # Errors
    ///
    /// [`Error::LeaseHeld`] if another holder has it.
    pub async fn acquire_lease(
        &self,
        tenancy: &Tenancy,
        name: &LeaseName,
        claim: &LeaseClaim,
    ) -> Result<HeldLease, Error> {
        let mut session = self.store.session().await?;
        let lease = session.db().acquire_lease(tenancy, name, claim).await?;
        if lease.is_held_by(&claim.holder) {
            Ok(lease)
        } else {
            Err(Error::LeaseHeld(lease))
        }
    }

    /// Returns a lease that is held now.
    ///
    /// # Errors
    ///
    /// [`Error::NoLease`] if it is not held.
    pub async fn lease(&self, tenancy: &Tenancy, name: &LeaseName) -> Result<HeldLease, Error> {
        let mut session = self.store.session().await?;
        let found = session.db().find_lease(tenancy, name).await?;
        found.ok_or_else(|| Error::NoLease {
            name: name.as_str().to_owned(),
        })
    }

    /// Releases the lease of a holder, so that another copy can acquire it immediately.
    ///
    /// # Errors
    ///
    /// [`Error::NoLease`] if this holder does not have it.
    pub async fn release_lease(
        &self,
        tenancy: &Tenancy,
        name: &LeaseName,
        holder: &LeaseHolder,
    ) -> Result<(), Error> {
        let mut session = self.store.session().await?;
        if session.db().delete_lease(tenancy, name, holder).await? {
            return Ok(());
        }
        Err(Error::NoLease {
            name: name.as_str().to_owned(),
        })
    }

    /// Removes all expired leases; returns their number.
    pub async fn expire_leases(&self) -> Result<u64, Error> {
        let mut steps = Steps::begin();
        loop {
            let mut session = self.store.session().await?;
            let count = session.db().delete_expired_leases(STEP_ROWS).await?;
            drop(session);
            if !steps.rest_after(count).await {
                return Ok(steps.removed());
            }
        }
    }
}
