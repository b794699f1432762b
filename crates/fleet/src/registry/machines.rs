//! Machines: they are there as long as their agent keeps their lease.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::key::{Key, LabelKey, UnusablePart, check_part};
use super::record::{self, Cordon, Drain, Label, Machine, MoveOrder, Resume, Stored};
use super::{Error, Registry};
use crate::keys::{
    self, Guard, Kept, KeyStore, Lease, Operation, Revision, TRANSACTION_OPERATIONS_MAX,
};
use hyperfleet_fleet_model::schedule::Availability;

/// How much metadata of a machine may be set at once: it is one transaction.
pub const LABELS_MAX: usize = TRANSACTION_OPERATIONS_MAX;
/// How long the engine has for moves that users have asked for: what it has not done by then is not done.
const MOVE_SECONDS: u32 = 600;
/// Longest value of metadata, in bytes.
const LABEL_BYTES_MAX: usize = 4096;

/// A machine that is there, as an agent registered it. An agent that starts again may take up one that it has stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    /// The machine.
    pub id: String,
    /// What all keys of the machine hang on.
    pub(super) lease: Lease,
    /// When it was registered.
    pub(super) created: Revision,
}

/// A drain that an agent has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BriefDrain {
    revision: Revision,
    lease: Lease,
}

/// Whether a machine was registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Registered {
    /// It was.
    As(Registration),
    /// There is one of that id: another with the same, or the same before, whose lease has not run out yet.
    Taken,
}

/// A machine as users see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownMachine {
    /// Its id.
    pub id: String,
    /// As its agent describes it.
    pub machine: Stored<Machine>,
    /// Its metadata, with what was set while it runs.
    pub metadata: BTreeMap<String, String>,
    /// Whether it takes units.
    pub availability: Availability,
}

impl<S: KeyStore> Registry<S> {
    /// Registers a machine, on a lease of that length that the agent has to [keep](Self::keep_machine).
    ///
    /// # Errors
    /// [`Error::Unusable`] for an id that is no key.
    pub async fn register_machine(
        &self,
        id: &str,
        machine: &Machine,
        lease_seconds: u32,
    ) -> Result<Registered, Error> {
        check_part("machine id", id)?;
        let key = Key::Machine(id.to_owned());
        let lease = self.store.grant(lease_seconds).await?;
        let put = Operation::Put(self.name(&key), record::write(machine), Some(lease));
        let guard = Guard::Absent(self.name(&key));
        match self.commit(vec![guard], vec![put]).await {
            Ok(outcome) if outcome.succeeded => Ok(Registered::As(Registration {
                id: id.to_owned(),
                lease,
                created: outcome.revision,
            })),
            Ok(_) => {
                self.store.revoke(lease).await?;
                Ok(Registered::Taken)
            }
            Err(error) => {
                // It may have gone through; whoever asks again should not find the way barred by it.
                let _ = self.store.revoke(lease).await;
                Err(error)
            }
        }
    }

    /// Says that the machine is there.
    ///
    /// # Errors
    /// [`Error::Unregistered`] once its lease has run out: all keys of the machine are gone.
    pub async fn keep_machine(&self, registration: &Registration) -> Result<(), Error> {
        match self.store.keep(registration.lease).await? {
            Kept::Alive => Ok(()),
            Kept::Gone => Err(Error::Unregistered),
        }
    }

    /// Whether the machine's key is the one that was registered.
    ///
    /// # Errors
    /// [`Error::Unregistered`] if not: somebody has deleted it, although its lease lives.
    pub async fn check_machine(&self, registration: &Registration) -> Result<(), Error> {
        self.commit_registered(registration, Vec::new()).await
    }

    /// Describes a machine anew.
    ///
    /// # Errors
    /// [`Error::Unregistered`] once its lease has run out.
    pub async fn update_machine(
        &self,
        registration: &Registration,
        machine: &Machine,
    ) -> Result<(), Error> {
        let name = self.name(&Key::Machine(registration.id.clone()));
        let put = Operation::Put(name, record::write(machine), Some(registration.lease));
        self.commit_registered(registration, vec![put]).await
    }

    /// Names the store of this registry.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn identity(&self) -> Result<u64, Error> {
        Ok(self.store.identity().await?)
    }

    /// Tells all agents to go on with what stands here, although it went back in time. Returns since when.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn resume(&self) -> Result<Revision, Error> {
        let put = self.put(&Key::Resume, &Resume {});
        Ok(self.commit(Vec::new(), vec![put]).await?.revision)
    }

    /// The revision of a machine's last report, under whichever registration; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Unusable`] for an id that is no key.
    pub async fn last_report(&self, machine: &str) -> Result<Option<Revision>, Error> {
        check_part("machine id", machine)?;
        let key = Key::LastReport(machine.to_owned());
        let found = self.get(std::slice::from_ref(&key)).await?;
        Ok(found.entry(&self.name(&key)).map(|entry| entry.modified))
    }

    /// Ends a registration; all keys of the machine go with it, that of its last report too. Fine if it has ended.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn deregister_machine(&self, registration: Registration) -> Result<(), Error> {
        self.store.revoke(registration.lease).await?;
        // Not that of another machine of this id, which may have registered meanwhile.
        let machine = self.name(&Key::Machine(registration.id.clone()));
        let last_report = self.delete(&Key::LastReport(registration.id));
        self.commit(vec![Guard::Absent(machine)], vec![last_report])
            .await?;
        Ok(())
    }

    /// The machine's key is the one that was registered.
    pub(super) fn registered(&self, registration: &Registration) -> Guard {
        let name = self.name(&Key::Machine(registration.id.clone()));
        Guard::Created(name, registration.created)
    }

    /// Writes what hangs on a machine's lease.
    async fn commit_registered(
        &self,
        registration: &Registration,
        then: Vec<Operation>,
    ) -> Result<(), Error> {
        match self.commit(vec![self.registered(registration)], then).await {
            Ok(outcome) if outcome.succeeded => Ok(()),
            Ok(_) | Err(Error::Store(keys::Error::LeaseGone { .. })) => Err(Error::Unregistered),
            Err(error) => Err(error),
        }
    }

    /// Whether metadata could be set so.
    ///
    /// # Errors
    /// [`Error::Unusable`] for names that are no keys, values that are too long, or too many of them.
    pub fn check_labels(
        machine: &str,
        labels: &BTreeMap<String, Option<String>>,
    ) -> Result<(), Error> {
        check_part("machine id", machine)?;
        let refused = |what, rule| Err(UnusablePart { what, rule }.into());
        if labels.len() > LABELS_MAX {
            let rule = format!("at most {LABELS_MAX} keys of a machine at once");
            return refused("metadata", rule);
        }
        for (key, value) in labels {
            check_part("metadata key", key)?;
            if value.as_ref().is_some_and(|v| v.len() > LABEL_BYTES_MAX) {
                let rule = format!("at most {LABEL_BYTES_MAX} bytes");
                return refused("metadata value", rule);
            }
        }
        Ok(())
    }

    /// Sets metadata of a machine: values, or none for what is to be hidden. All of it, or nothing. The machine
    /// need not be there, and what is set outlives it. Gives the revision since when it is so; none if there is
    /// nothing to set.
    ///
    /// # Errors
    /// [`Error::Unusable`] as of [`check_labels`](Self::check_labels);
    /// [`Error::Foreign`] where something stands that is not ours to overwrite.
    pub async fn set_labels(
        &self,
        machine: &str,
        labels: &BTreeMap<String, Option<String>>,
    ) -> Result<Option<Revision>, Error> {
        Self::check_labels(machine, labels)?;
        if labels.is_empty() {
            return Ok(None);
        }
        let key = |key: &String| {
            let (machine, key) = (machine.to_owned(), key.clone());
            Key::Label(LabelKey { machine, key })
        };
        let keys: Vec<_> = labels.keys().map(key).collect();
        loop {
            let found = self.get(&keys).await?;
            let (mut guards, mut then) = (Vec::new(), Vec::new());
            for (key, value) in keys.iter().zip(labels.values()) {
                let before = self.ours::<Label>(&found, key.clone())?;
                guards.push(self.unchanged(key, before.as_ref()));
                let value = value.clone();
                then.push(self.put(key, &Label { value }));
            }
            let outcome = self.commit(guards, then).await?;
            if outcome.succeeded {
                return Ok(Some(outcome.revision));
            }
            // Somebody else has set one of them; the last to do so is right.
        }
    }

    /// Says that a machine takes no further units. Returns since when.
    ///
    /// # Errors
    /// [`Error::Unusable`] for an id that is no key; [`Error::Foreign`] where a newer version has said something else.
    pub async fn cordon_machine(&self, id: &str) -> Result<Revision, Error> {
        self.set_availability(id, |cordon, _| vec![self.put(cordon, &Cordon {})])
            .await
    }

    /// Says that a machine takes units again, and that its units need not leave it. Returns since when.
    ///
    /// # Errors
    /// As of [`cordon_machine`](Self::cordon_machine).
    pub async fn uncordon_machine(&self, id: &str) -> Result<Revision, Error> {
        self.set_availability(id, |cordon, drain| {
            vec![self.delete(cordon), self.delete(drain)]
        })
        .await
    }

    /// Says that a machine takes no further units, and that its own are to leave it: for that many seconds, or until it is
    /// taken back. Returns since when.
    ///
    /// # Errors
    /// As of [`cordon_machine`](Self::cordon_machine).
    pub async fn drain_machine(&self, id: &str, seconds: Option<u32>) -> Result<Revision, Error> {
        check_part("machine id", id)?;
        let lease = match seconds {
            Some(seconds) => Some(self.store.grant(seconds).await?),
            None => None,
        };
        let drained = self.set_availability(id, |cordon, drain| {
            let value = record::write(&lease.map_or_else(Drain::default, Drain::on));
            let drain = Operation::Put(self.name(drain), value, lease);
            vec![self.put(cordon, &Cordon {}), drain]
        });
        let drained = drained.await;
        if let (Err(_), Some(lease)) = (&drained, lease) {
            // The transaction may have been committed. Its key goes with the lease.
            let _ = self.store.revoke(lease).await;
        }
        drained
    }

    /// Has the units of a machine leave it for that many seconds, without a cordon. `None` if they are to leave it anyway.
    ///
    /// # Errors
    /// As of [`cordon_machine`](Self::cordon_machine).
    pub async fn drain_briefly(&self, id: &str, seconds: u32) -> Result<Option<BriefDrain>, Error> {
        check_part("machine id", id)?;
        let key = Key::Drain(id.to_owned());
        let lease = self.store.grant(seconds).await?;
        let put = Operation::Put(
            self.name(&key),
            record::write(&Drain::on(lease)),
            Some(lease),
        );
        let guard = Guard::Absent(self.name(&key));
        match self.commit(vec![guard], vec![put]).await {
            Ok(outcome) if outcome.succeeded => Ok(Some(BriefDrain {
                revision: outcome.revision,
                lease,
            })),
            other => {
                // The key, if it was put after all, goes with it.
                self.store.revoke(lease).await?;
                other.map(|_| None)
            }
        }
    }

    /// Ends such a drain, unless another request has changed it since.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn end_brief_drain(&self, id: &str, drain: &BriefDrain) -> Result<(), Error> {
        let key = Key::Drain(id.to_owned());
        let guard = Guard::Modified(self.name(&key), drain.revision);
        self.commit(vec![guard], vec![self.delete(&key)]).await?;
        Ok(self.store.revoke(drain.lease).await?)
    }

    /// Says that the units of a machine need not leave it any more. It still takes no further ones. Returns since when.
    ///
    /// # Errors
    /// As of [`cordon_machine`](Self::cordon_machine).
    pub async fn end_drain(&self, id: &str) -> Result<Revision, Error> {
        self.set_availability(id, |_, drain| vec![self.delete(drain)])
            .await
    }

    async fn set_availability(
        &self,
        id: &str,
        then: impl Fn(&Key, &Key) -> Vec<Operation>,
    ) -> Result<Revision, Error> {
        check_part("machine id", id)?;
        let keys = [Key::Cordon(id.to_owned()), Key::Drain(id.to_owned())];
        loop {
            let found = self.get(&keys).await?;
            let guards = vec![
                self.overwritable::<Cordon>(&keys[0], &found)?,
                self.overwritable::<Drain>(&keys[1], &found)?,
            ];
            let before = record::read::<Drain>(found.entry(&self.name(&keys[1])));
            let then = then(&keys[0], &keys[1]);
            let drain = self.name(&keys[1]);
            let changes_drain = then.iter().any(|operation| operation.key() == drain);
            let outcome = self.commit(guards, then).await?;
            if outcome.succeeded {
                let lease = before.here().and_then(|drain| drain.value.lease);
                if let Some(lease) = lease.filter(|_| changes_drain) {
                    // No key hangs on it any more. If that fails it runs out.
                    let _ = self.store.revoke(lease).await;
                }
                return Ok(outcome.revision);
            }
            // Another request has changed one of them; the last to do so is right.
        }
    }

    /// Asks the engine to move units: all of these orders are stored, or none. Returns since when.
    ///
    /// # Errors
    /// [`Error::Unusable`] for names that are no keys; [`Error::Foreign`] where a newer version has ordered something else.
    pub async fn order_moves(
        &self,
        orders: &BTreeMap<String, MoveOrder>,
    ) -> Result<Revision, Error> {
        for (unit, order) in orders {
            check_part("unit name", unit)?;
            check_part("machine id", &order.from)?;
            check_part("machine id", &order.to)?;
        }
        let keys: Vec<_> = orders.keys().cloned().map(Key::Move).collect();
        let lease = self.store.grant(MOVE_SECONDS).await?;
        loop {
            let found = self.get(&keys).await?;
            let guards = keys.iter();
            let guards = guards.map(|key| self.overwritable::<MoveOrder>(key, &found));
            let puts = keys.iter().zip(orders.values());
            let put = |(key, order): (&Key, &MoveOrder)| {
                Operation::Put(self.name(key), record::write(order), Some(lease))
            };
            let then = puts.map(put).collect();
            let outcome = self.commit(guards.collect::<Result<_, _>>()?, then).await?;
            if outcome.succeeded {
                return Ok(outcome.revision);
            }
            // Another request has ordered one of them to move; the last to do so is right.
        }
    }

    /// The machine of that id.
    ///
    /// # Errors
    /// [`Error::Foreign`] if it is not ours to read.
    pub async fn find_machine(&self, id: &str) -> Result<Option<KnownMachine>, Error> {
        check_part("machine id", id)?;
        let key = Key::Machine(id.to_owned());
        let found = self.get(std::slice::from_ref(&key)).await?;
        if self.ours::<Machine>(&found, key)?.is_none() {
            return Ok(None);
        }
        let mut known = self.known(&found);
        self.read_about_machines(&mut known, id, id).await?;
        Ok(known.machine(id))
    }
}
