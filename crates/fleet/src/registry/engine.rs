//! The leader among engines. One engine at a time leads, on a lease. The revision that created its key is the
//! epoch of its term, and every write of an engine is guarded by it.

use super::key::check_part;
use super::record::{self, EngineVersion, Leader, Stored};
use super::table::Key;
use super::{Error, Registry};
use crate::keys::{
    self, Entry, Guard, KeyOperation, KeyStore, Lease, Renewal, Revision,
    TRANSACTION_OPERATIONS_MAX, TransactionOutcome,
};

/// A term as leader. It may have ended without the engine's knowledge: its writes then change nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leading {
    /// Grows from term to term, across engines.
    pub epoch: Revision,
    pub(super) lease: Lease,
}

/// The result of a campaign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Acquired {
    /// This engine leads.
    Leading(Leading),
    /// Another engine leads.
    Standby(Leader),
}

/// Whether an engine of our version may decide at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineGate {
    /// No newer engine has ever led.
    Open,
    /// A newer engine has led.
    Closed { version: u64 },
}

impl<S: KeyStore> Registry<S> {
    /// Campaigns, on a lease that the engine has to [renew](Self::renew_leadership). An engine of an older version
    /// is deposed. Writes nothing while another leads.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if the leader's record is unreadable: some engine leads.
    pub async fn acquire_leadership(
        &self,
        leader: &Leader,
        lease_seconds: u32,
    ) -> Result<Acquired, Error> {
        check_part("machine id", &leader.id)?;
        if let Some(other) = self.find_leader().await? {
            if other.value.version >= leader.version {
                return Ok(Acquired::Standby(other.value));
            }
            let guard = self.unchanged(&Key::Leader, Some(&other));
            self.commit(vec![guard], vec![self.delete(&Key::Leader)])
                .await?;
        }
        let name = self.name(&Key::Leader);
        let record = record::write(leader);
        match keys::acquire(&self.store, name, record, lease_seconds).await? {
            Ok(held) => Ok(Acquired::Leading(Leading {
                epoch: held.created,
                lease: held.lease,
            })),
            Err(found) => {
                let other = self.read_record::<Leader>(&found, Key::Leader)?;
                let other = other.ok_or(Error::Deposed)?;
                Ok(Acquired::Standby(other.value))
            }
        }
    }

    /// The current leader, if any.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if its record is unreadable.
    pub async fn find_leader(&self) -> Result<Option<Stored<Leader>>, Error> {
        self.find(Key::Leader).await
    }

    /// Renews the term.
    ///
    /// # Errors
    /// [`Error::Deposed`] once the term has ended.
    pub async fn renew_leadership(&self, leading: &Leading) -> Result<(), Error> {
        if self.store.renew(leading.lease).await? == Renewal::Expired {
            return Err(Error::Deposed);
        }
        // The lease outlives a term that a newer engine has ended.
        let outcome = self.commit(vec![self.leads(leading)], Vec::new()).await?;
        if outcome.succeeded {
            Ok(())
        } else {
            Err(Error::Deposed)
        }
    }

    /// Ends the term, so that another engine can lead at once.
    pub async fn resign(&self, leading: Leading) -> Result<(), Error> {
        Ok(self.store.revoke(leading.lease).await?)
    }

    /// Removes what engines of earlier versions stored below `why/`. Agents of those versions believe it, and stop units
    /// that could move. No such engine writes while this one leads.
    ///
    /// # Errors
    /// [`Error::Deposed`] once the term has ended.
    pub async fn remove_reasons(&self, leading: &Leading) -> Result<(), Error> {
        let mut found = Vec::new();
        let take = |entry: Entry| found.extend(String::from_utf8(entry.key).ok());
        self.read_each(self.prefix.reasons(), None, take).await?;
        for some in found.chunks(TRANSACTION_OPERATIONS_MAX) {
            let deleted = some.iter().cloned().map(KeyOperation::Delete).collect();
            let outcome = self.commit(vec![self.leads(leading)], deleted).await?;
            if !outcome.succeeded {
                return Err(Error::Deposed);
            }
        }
        Ok(())
    }

    /// The guard of every write of an engine.
    pub(super) fn leads(&self, leading: &Leading) -> Guard {
        Guard::Created(self.name(&Key::Leader), leading.epoch)
    }

    /// Records that an engine of this version decides, unless a newer one ever has.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if the record is unreadable: a newer program has been here, and no engine of ours may
    /// decide.
    pub async fn pass_gate(&self, version: u64) -> Result<EngineGate, Error> {
        let key = Key::EngineVersion;
        loop {
            let stored = self.find::<EngineVersion>(key.clone()).await?;
            match &stored {
                Some(newest) if newest.value.version > version => {
                    let version = newest.value.version;
                    return Ok(EngineGate::Closed { version });
                }
                Some(newest) if newest.value.version == version => return Ok(EngineGate::Open),
                _ => {}
            }
            let guard = self.unchanged(&key, stored.as_ref());
            let put = self.put(&key, &EngineVersion { version });
            let TransactionOutcome { succeeded, .. } = self.commit(vec![guard], vec![put]).await?;
            // Otherwise another engine has passed. Versions only grow, so this ends.
            if succeeded {
                return Ok(EngineGate::Open);
            }
        }
    }
}
