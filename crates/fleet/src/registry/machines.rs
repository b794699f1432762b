//! Machines. They exist while their agent renews their lease.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::key::{LabelKey, UnusablePart, check_part};
use super::record::{self, Cordon, Drain, Label, MachineRecord, MoveOrder, Resume, Stored};
use super::table::{Family, Key, KeyChange};
use super::{Error, Registry, decide_and_commit};
use crate::keys::{
    self, Guard, KeyOperation, KeyStore, Lease, Renewal, Revision, TRANSACTION_OPERATIONS_MAX,
};
use hyperfleet_fleet_model::schedule::Availability;

/// Most metadata keys of a machine in one change, which is one transaction.
pub const LABELS_MAX: usize = TRANSACTION_OPERATIONS_MAX;
/// How long the engine may take for ordered moves. Later they are dropped.
const MOVE_SECONDS: u32 = 600;
const LABEL_BYTES_MAX: usize = 4096;

/// A machine as an agent registered it. A restarted agent may resume a stored registration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    pub id: String,
    /// The lease of all keys of the machine.
    pub(super) lease: Lease,
    pub(super) created: Revision,
}

impl Registration {
    /// The revision at which the machine was registered.
    pub fn revision(&self) -> Revision {
        self.created
    }
}

/// A drain that an agent has started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BriefDrain {
    pub(crate) revision: Revision,
    lease: Lease,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Registered {
    As(Registration),
    /// A machine with this id exists: another one, or this one's earlier registration, whose lease has not
    /// expired.
    Taken,
}

/// A machine as users see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownMachine {
    pub id: String,
    /// As its agent describes it.
    pub machine: Stored<MachineRecord>,
    /// Configured metadata and labels.
    pub metadata: BTreeMap<String, String>,
    pub availability: Availability,
}

impl<S: KeyStore> Registry<S> {
    /// Registers a machine, on a lease that the agent has to [renew](Self::renew_machine).
    ///
    /// # Errors
    /// [`Error::Unusable`] for an id that is no key.
    pub async fn register_machine(
        &self,
        id: &str,
        machine: &MachineRecord,
        lease_seconds: u32,
    ) -> Result<Registered, Error> {
        check_part("machine id", id)?;
        let name = self.name(&Key::Machine(id.to_owned()));
        let record = record::write(machine);
        let acquired = keys::acquire(&self.store, name, record, lease_seconds).await?;
        Ok(match acquired {
            Ok(held) => Registered::As(Registration {
                id: id.to_owned(),
                lease: held.lease,
                created: held.created,
            }),
            Err(_) => Registered::Taken,
        })
    }

    /// Renews a machine's lease.
    ///
    /// # Errors
    /// [`Error::Unregistered`] once the lease has expired: all keys of the machine are gone.
    pub async fn renew_machine(&self, registration: &Registration) -> Result<(), Error> {
        match self.store.renew(registration.lease).await? {
            Renewal::Renewed => Ok(()),
            Renewal::Expired => Err(Error::Unregistered),
        }
    }

    /// Checks that the machine's key is the registered one.
    ///
    /// # Errors
    /// [`Error::Unregistered`] if the key was deleted, although the lease lives.
    pub async fn check_machine(&self, registration: &Registration) -> Result<(), Error> {
        self.commit_registered(registration, Vec::new()).await
    }

    /// Updates a machine's description.
    ///
    /// # Errors
    /// [`Error::Unregistered`] once its lease has expired.
    pub async fn update_machine(
        &self,
        registration: &Registration,
        machine: &MachineRecord,
    ) -> Result<(), Error> {
        let name = self.name(&Key::Machine(registration.id.clone()));
        let put = KeyOperation::Put(name, record::write(machine), Some(registration.lease));
        self.commit_registered(registration, vec![put]).await
    }

    /// Identifies the store of this registry.
    pub async fn identity(&self) -> Result<u64, Error> {
        Ok(self.store.identity().await?)
    }

    /// Orders all agents to resume with the current registry although it has gone back in time. Returns the
    /// revision of the order.
    pub async fn resume(&self) -> Result<Revision, Error> {
        let put = self.put(&Key::Resume, &Resume {});
        Ok(self.commit(Vec::new(), vec![put]).await?.revision)
    }

    /// The revision of a machine's last report, across registrations; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Unusable`] for an id that is no key.
    pub async fn last_report(&self, machine: &str) -> Result<Option<Revision>, Error> {
        check_part("machine id", machine)?;
        let key = Key::LastReport(machine.to_owned());
        let found = self.get(std::slice::from_ref(&key)).await?;
        Ok(found.entry(&self.name(&key)).map(|entry| entry.modified))
    }

    /// Ends a registration, if it has not ended, and deletes all keys that expire with it.
    pub async fn end_lease(&self, registration: &Registration) -> Result<(), Error> {
        Ok(self.store.revoke(registration.lease).await?)
    }

    /// Ends a registration, if it has not ended. Deletes all keys of the machine, including its last report.
    pub async fn deregister_machine(&self, registration: Registration) -> Result<(), Error> {
        self.store.revoke(registration.lease).await?;
        // Not the report of another machine with this id, which may have registered meanwhile.
        let machine = self.name(&Key::Machine(registration.id.clone()));
        let last_report = self.delete(&Key::LastReport(registration.id));
        self.commit(vec![Guard::Absent(machine)], vec![last_report])
            .await?;
        Ok(())
    }

    /// Guards that the machine's key is the registered one.
    pub(super) fn registered(&self, registration: &Registration) -> Guard {
        let name = self.name(&Key::Machine(registration.id.clone()));
        Guard::Created(name, registration.created)
    }

    /// Commits writes on a machine's lease.
    async fn commit_registered(
        &self,
        registration: &Registration,
        then: Vec<KeyOperation>,
    ) -> Result<(), Error> {
        match self.commit(vec![self.registered(registration)], then).await {
            Ok(outcome) if outcome.succeeded => Ok(()),
            Ok(_) | Err(Error::Store(keys::Error::LeaseGone { .. })) => Err(Error::Unregistered),
            Err(error) => Err(error),
        }
    }

    /// Checks metadata changes.
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

    /// Sets metadata of a machine in one transaction. A missing value hides the configured one. The machine
    /// need not exist, and labels outlive it. Returns the revision; `None` if there was nothing to set.
    ///
    /// # Errors
    /// [`Error::Unusable`] as [`check_labels`](Self::check_labels); [`Error::Unreadable`] for a record of a newer
    /// version.
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
        decide_and_commit(|| async {
            let found = self.get(&keys).await?;
            let (mut guards, mut then) = (Vec::new(), Vec::new());
            for (key, value) in keys.iter().zip(labels.values()) {
                let before = self.read_record::<Label>(&found, key.clone())?;
                guards.push(self.unchanged(key, before.as_ref()));
                let value = value.clone();
                then.push(self.put(key, &Label { value }));
            }
            let outcome = self.commit(guards, then).await?;
            // If another request has set one of them, the last one wins.
            Ok(outcome.succeeded.then_some(Some(outcome.revision)))
        })
        .await
    }

    /// Cordons a machine. Returns the revision.
    ///
    /// # Errors
    /// [`Error::Unusable`] for an id that is no key; [`Error::Unreadable`] for a record of a newer version.
    pub async fn cordon_machine(&self, id: &str) -> Result<Revision, Error> {
        self.set_availability(id, |cordon, _| vec![self.put(cordon, &Cordon {})])
            .await
    }

    /// Removes a machine's cordon and drain. Returns the revision.
    ///
    /// # Errors
    /// As [`cordon_machine`](Self::cordon_machine).
    pub async fn uncordon_machine(&self, id: &str) -> Result<Revision, Error> {
        self.set_availability(id, |cordon, drain| {
            vec![self.delete(cordon), self.delete(drain)]
        })
        .await
    }

    /// Cordons and drains a machine, for a time or until the drain is ended. Returns the revision.
    ///
    /// # Errors
    /// As [`cordon_machine`](Self::cordon_machine).
    pub async fn drain_machine(&self, id: &str, seconds: Option<u32>) -> Result<Revision, Error> {
        check_part("machine id", id)?;
        let lease = match seconds {
            Some(seconds) => Some(self.store.grant(seconds).await?),
            None => None,
        };
        let drained = self.set_availability(id, |cordon, drain| {
            let value = record::write(&lease.map_or_else(Drain::default, Drain::on));
            let drain = KeyOperation::Put(self.name(drain), value, lease);
            vec![self.put(cordon, &Cordon {}), drain]
        });
        let drained = drained.await;
        if let (Err(_), Some(lease)) = (&drained, lease) {
            // The transaction may have been committed. Its key expires with the lease.
            let _ = self.store.revoke(lease).await;
        }
        drained
    }

    /// Drains a machine for a time without a cordon. `None` if it is already drained.
    ///
    /// # Errors
    /// As [`cordon_machine`](Self::cordon_machine).
    pub async fn drain_briefly(&self, id: &str, seconds: u32) -> Result<Option<BriefDrain>, Error> {
        check_part("machine id", id)?;
        let key = Key::Drain(id.to_owned());
        let lease = self.store.grant(seconds).await?;
        let put = KeyOperation::Put(
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
                // If the key was put, it is deleted with the lease.
                self.store.revoke(lease).await?;
                other.map(|_| None)
            }
        }
    }

    /// Ends such a drain, unless another request has changed it since.
    pub async fn end_brief_drain(&self, id: &str, drain: &BriefDrain) -> Result<(), Error> {
        let key = Key::Drain(id.to_owned());
        let guard = Guard::Modified(self.name(&key), drain.revision);
        self.commit(vec![guard], vec![self.delete(&key)]).await?;
        Ok(self.store.revoke(drain.lease).await?)
    }

    /// Ends a machine's drain. It remains cordoned. Returns the revision.
    ///
    /// # Errors
    /// As [`cordon_machine`](Self::cordon_machine).
    pub async fn end_drain(&self, id: &str) -> Result<Revision, Error> {
        self.set_availability(id, |_, drain| vec![self.delete(drain)])
            .await
    }

    async fn set_availability(
        &self,
        id: &str,
        then: impl Fn(&Key, &Key) -> Vec<KeyOperation>,
    ) -> Result<Revision, Error> {
        check_part("machine id", id)?;
        let keys = [Key::Cordon(id.to_owned()), Key::Drain(id.to_owned())];
        decide_and_commit(|| async {
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
            if !outcome.succeeded {
                // Another request has changed one of them. The last one wins.
                return Ok(None);
            }
            let lease = before.into_stored().and_then(|drain| drain.value.lease);
            if let Some(lease) = lease.filter(|_| changes_drain) {
                // The lease has no keys any more. If this fails, it expires.
                let _ = self.store.revoke(lease).await;
            }
            Ok(Some(outcome.revision))
        })
        .await
    }

    /// Orders the engine to move units, in one transaction. Returns the revision.
    ///
    /// # Errors
    /// [`Error::Unusable`] for names that are no keys; [`Error::Unreadable`] for an order of a newer version.
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
        decide_and_commit(|| async {
            let found = self.get(&keys).await?;
            let guards = keys.iter();
            let guards = guards.map(|key| self.overwritable::<MoveOrder>(key, &found));
            let puts = keys.iter().zip(orders.values());
            let put = |(key, order): (&Key, &MoveOrder)| {
                KeyOperation::Put(self.name(key), record::write(order), Some(lease))
            };
            let then = puts.map(put).collect();
            let outcome = self.commit(guards.collect::<Result<_, _>>()?, then).await?;
            // If another request has ordered one of these moves, the last one wins.
            Ok(outcome.succeeded.then_some(outcome.revision))
        })
        .await
    }

    /// The machine with this id.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if it is unreadable.
    pub async fn find_machine(&self, id: &str) -> Result<Option<KnownMachine>, Error> {
        check_part("machine id", id)?;
        let keys = [Key::Machine, Key::Cordon, Key::Drain].map(|key| key(id.to_owned()));
        let found = self.get(&keys).await?;
        let machine = self.read_record::<MachineRecord>(&found, keys[0].clone())?;
        if machine.is_none() {
            return Ok(None);
        }
        let mut known = self.snapshot_of(&found);
        let take = |entry| _ = known.apply(KeyChange::of_entry(&self.prefix, &entry));
        let labels = self.prefix.part(Family::Label, id);
        self.read_each(labels, Some(found.revision), take).await?;
        Ok(known.machine(id))
    }
}
