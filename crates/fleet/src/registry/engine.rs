//! Who decides. One engine at a time leads, on a lease; the revision that made its key is the epoch of its term, and
//! every write of an engine compares it.

use super::key::{Key, check_part};
use super::record::{self, EngineVersion, Leader, Stored};
use super::{Error, Registry};
use crate::keys::{Guard, Kept, KeyStore, Lease, Operation, Outcome, Revision, Transaction};

/// A term as leader. It may have ended without the engine knowing: then its writes change nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leading {
    /// Grows from term to term, whoever leads.
    pub epoch: Revision,
    pub(super) lease: Lease,
}

/// Who leads now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Acquired {
    /// We do.
    Leading(Leading),
    /// Somebody else does.
    Standby(Leader),
}

/// Whether an engine of our version may decide at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// It may; no newer one ever has.
    Open,
    /// A newer one has.
    Closed {
        /// The version of that.
        version: u64,
    },
}

impl<S: KeyStore> Registry<S> {
    /// Tries to lead, on a lease of that length that the engine has to [keep](Self::keep_leading). An engine of an
    /// older version is put out of its term. Writes nothing while another leads.
    ///
    /// # Errors
    /// [`Error::Foreign`] if who leads is not ours to read: somebody does.
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
        let lease = self.store.grant(lease_seconds).await?;
        match self.campaign(leader, lease).await {
            Ok(leading @ Acquired::Leading(_)) => Ok(leading),
            not_leading => {
                // After an error it may have gone through, unknown to us: nobody should lead so.
                let _ = self.store.revoke(lease).await;
                not_leading
            }
        }
    }

    /// Who leads now, if anybody does.
    ///
    /// # Errors
    /// [`Error::Foreign`] if that is not ours to read.
    pub async fn find_leader(&self) -> Result<Option<Stored<Leader>>, Error> {
        self.find(Key::Leader).await
    }

    async fn campaign(&self, leader: &Leader, lease: Lease) -> Result<Acquired, Error> {
        let name = self.name(&Key::Leader);
        let put = Operation::Put(name.clone(), record::write(leader), Some(lease));
        let transaction = Transaction {
            guards: vec![Guard::Absent(name.clone())],
            then: vec![put],
            otherwise: vec![Operation::Get(name)],
        };
        let outcome = self.store.commit(transaction).await?;
        if outcome.succeeded {
            let epoch = outcome.revision;
            return Ok(Acquired::Leading(Leading { epoch, lease }));
        }
        let other = self.ours::<Leader>(&outcome, Key::Leader)?;
        let other = other.ok_or(Error::Deposed)?;
        Ok(Acquired::Standby(other.value))
    }

    /// Says that the leader is there.
    ///
    /// # Errors
    /// [`Error::Deposed`] once the term has ended.
    pub async fn keep_leading(&self, leading: &Leading) -> Result<(), Error> {
        if self.store.keep(leading.lease).await? == Kept::Gone {
            return Err(Error::Deposed);
        }
        // The lease outlives the term where a newer engine has ended that.
        let outcome = self.commit(vec![self.leads(leading)], Vec::new()).await?;
        if outcome.succeeded {
            Ok(())
        } else {
            Err(Error::Deposed)
        }
    }

    /// Ends the term, so that another may lead at once. Fine if it has ended.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn resign(&self, leading: Leading) -> Result<(), Error> {
        Ok(self.store.revoke(leading.lease).await?)
    }

    /// What every write of an engine compares.
    pub(super) fn leads(&self, leading: &Leading) -> Guard {
        Guard::Created(self.name(&Key::Leader), leading.epoch)
    }

    /// Notes that an engine of that version decides, unless a newer one ever has.
    ///
    /// # Errors
    /// [`Error::Foreign`] if that is not ours to read: then a newer program has been here, and no engine of ours may
    /// decide.
    pub async fn pass_gate(&self, version: u64) -> Result<Gate, Error> {
        let key = Key::EngineVersion;
        loop {
            let stored = self.find::<EngineVersion>(key.clone()).await?;
            match &stored {
                Some(newest) if newest.value.version > version => {
                    let version = newest.value.version;
                    return Ok(Gate::Closed { version });
                }
                Some(newest) if newest.value.version == version => return Ok(Gate::Open),
                _ => {}
            }
            let guard = self.unchanged(&key, stored.as_ref());
            let put = self.put(&key, &EngineVersion { version });
            let Outcome { succeeded, .. } = self.commit(vec![guard], vec![put]).await?;
            // Otherwise somebody else has passed; versions only grow, so this ends.
            if succeeded {
                return Ok(Gate::Open);
            }
        }
    }
}
