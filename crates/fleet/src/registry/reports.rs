//! The reports of an agent on its units. Reports are written on change, and deleted with the machine's lease. Each
//! report also puts the key `report/`, which outlives the lease. The next report is guarded by the revision of that
//! key: if it is not the one that the agent wrote, etcd was restored, and the agent writes nothing.

use std::collections::BTreeMap;

use super::key::{StateKey, check_part};
use super::machines::Registration;
use super::record::{self, LastReport, Stored, UnitState};
use super::table::{Family, Key};
use super::{Error, Registry};
use crate::keys::{
    self, Entry, Guard, KeyOperation, KeyStore, Revision, TRANSACTION_OPERATIONS_MAX, Transaction,
};

/// What an agent has reported under one registration. A new registration starts empty.
#[derive(Debug)]
pub struct Reports {
    registration: Registration,
    /// By unit; `None` after a failed write, when the stored state is unknown.
    written: BTreeMap<String, Option<UnitState>>,
    /// Revision of the machine's last known report under any registration; 0 for none.
    last: Revision,
}

impl<S: KeyStore> Registry<S> {
    /// What a machine reports of a unit.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if it is unreadable.
    pub async fn find_state(
        &self,
        unit: &str,
        machine: &str,
    ) -> Result<Option<Stored<UnitState>>, Error> {
        check_part("unit name", unit)?;
        check_part("machine id", machine)?;
        let (unit, machine) = (unit.to_owned(), machine.to_owned());
        self.find(Key::State(StateKey { unit, machine })).await
    }

    /// The units that a machine reports, readable or not. All states are read to find them.
    pub async fn reported_by(&self, machine: &str) -> Result<Vec<String>, Error> {
        let mut units = Vec::new();
        let take = |entry: Entry| {
            if let Some(Key::State(key)) = self.prefix.read(&entry.key)
                && key.machine == machine
            {
                units.push(key.unit);
            }
        };
        let states = self.prefix.family(Family::State);
        self.read_each(states, None, take).await?;
        Ok(units)
    }
}

impl Reports {
    /// For a newly registered machine.
    pub fn new(registration: Registration) -> Self {
        Self {
            registration,
            written: BTreeMap::new(),
            last: 0,
        }
    }

    /// For a resumed registration: the stored states of these units are unknown, and no others exist. `last` is
    /// the machine's last known report, 0 for none.
    pub fn resumed(
        registration: Registration,
        units: impl IntoIterator<Item = String>,
        last: Revision,
    ) -> Self {
        Self {
            registration,
            written: units.into_iter().map(|unit| (unit, None)).collect(),
            last,
        }
    }

    /// Writes the states that have changed since the last call, and removes units that are not among them.
    /// Returns how many keys were written or removed.
    ///
    /// # Errors
    /// [`Error::Unregistered`] once the machine's lease has expired, [`Error::WentBack`] if the registry does
    /// not know the machine's last report. After any error the next call writes again what is in doubt.
    pub async fn publish<S: KeyStore>(
        &mut self,
        registry: &Registry<S>,
        current: &BTreeMap<String, UnitState>,
    ) -> Result<usize, Error> {
        let changes = self.changes(current)?;
        for some in changes.chunks(TRANSACTION_OPERATIONS_MAX - 1) {
            let operations = some.iter().map(|(unit, state)| {
                let key = Key::State(StateKey {
                    unit: unit.clone(),
                    machine: self.registration.id.clone(),
                });
                match state {
                    Some(state) => {
                        let lease = Some(self.registration.lease);
                        KeyOperation::Put(registry.name(&key), record::write(state), lease)
                    }
                    None => registry.delete(&key),
                }
            });
            let operations = operations.collect();
            for (unit, _) in some {
                self.written.insert(unit.clone(), None);
            }
            self.write(registry, None, operations).await?;
            for (unit, state) in some {
                match state {
                    Some(_) => self.written.insert(unit.clone(), state.clone()),
                    None => self.written.remove(unit),
                };
            }
        }
        Ok(changes.len())
    }

    /// The revision of the machine's last known report; 0 for none.
    pub const fn last(&self) -> Revision {
        self.last
    }

    /// Writes a report after the last one, unless `guard` fails. Returns whether it was written.
    async fn write<S: KeyStore>(
        &mut self,
        registry: &Registry<S>,
        guard: Option<Guard>,
        mut then: Vec<KeyOperation>,
    ) -> Result<bool, Error> {
        let is_registered = registry.registered(&self.registration);
        let key = Key::LastReport(self.registration.id.clone());
        then.push(registry.put(&key, &LastReport {}));
        loop {
            let is_last = registry.guard_at(&key, (self.last > 0).then_some(self.last));
            let guards = [is_registered.clone(), is_last.clone()];
            let guards: Vec<_> = guards.into_iter().chain(guard.clone()).collect();
            let gets = guards.iter();
            let gets = gets.map(|guard| KeyOperation::Get(guard.key().to_owned()));
            let transaction = Transaction {
                otherwise: gets.collect(),
                then: then.clone(),
                guards,
            };
            let outcome = match registry.store.commit(transaction).await {
                Err(keys::Error::LeaseGone { .. }) => return Err(Error::Unregistered),
                outcome => outcome?,
            };
            if outcome.succeeded {
                self.last = outcome.revision;
                return Ok(true);
            }
            if !is_registered.holds(&outcome) {
                return Err(Error::Unregistered);
            }
            if is_last.holds(&outcome) {
                return Ok(false);
            }
            let found = outcome.entry(is_last.key());
            let found = found.map_or(0, |entry| entry.modified);
            if found < self.last {
                return Err(Error::WentBack {
                    revision: outcome.revision,
                });
            }
            // A write of this machine that was not answered.
            self.last = found;
        }
    }

    /// Whether the registry certainly holds a state of the unit.
    pub fn has(&self, unit: &str) -> bool {
        self.written.get(unit).is_some_and(Option::is_some)
    }

    /// Reports a unit before it is started, unless its order has changed since it was read at revision `run`.
    /// So an engine that withdraws the unit sees that this machine may run it, or this report is refused.
    ///
    /// # Errors
    /// As [`publish`](Self::publish).
    pub async fn claim<S: KeyStore>(
        &mut self,
        registry: &Registry<S>,
        unit: &str,
        hash: &str,
        run: Revision,
    ) -> Result<bool, Error> {
        check_part("unit name", unit)?;
        let (machine, lease) = (self.registration.id.clone(), self.registration.lease);
        let state = UnitState {
            load: "loaded".to_owned(),
            active: "inactive".to_owned(),
            sub: "dead".to_owned(),
            hash: hash.to_owned(),
            launched: false,
            restarts: None,
            error: String::new(),
            result: String::new(),
        };
        let is_ordered = Guard::Modified(registry.name(&Key::run(&machine, unit)), run);
        let unit_key = unit.to_owned();
        let key = Key::State(StateKey {
            unit: unit_key.clone(),
            machine,
        });
        let put = KeyOperation::Put(registry.name(&key), record::write(&state), Some(lease));
        let before = self.written.insert(unit_key.clone(), None);
        let is_claimed = self.write(registry, Some(is_ordered), vec![put]).await?;
        if is_claimed {
            self.written.insert(unit_key, Some(state));
        } else if before.is_none() {
            self.written.remove(unit);
        }
        Ok(is_claimed)
    }

    fn changes(
        &self,
        current: &BTreeMap<String, UnitState>,
    ) -> Result<Vec<(String, Option<UnitState>)>, Error> {
        let mut changes = Vec::new();
        for (unit, state) in current {
            check_part("unit name", unit)?;
            if self.written.get(unit).and_then(Option::as_ref) != Some(state) {
                changes.push((unit.clone(), Some(state.clone())));
            }
        }
        let gone = self
            .written
            .keys()
            .filter(|unit| !current.contains_key(*unit));
        changes.extend(gone.map(|unit| (unit.clone(), None)));
        Ok(changes)
    }
}
