//! What an agent reports of its units: written when it changes, and gone with the machine. Each report also puts a key
//! that outlives the machine: an agent that finds it older than its own last report knows that etcd was restored.

use std::collections::BTreeMap;

use super::key::{Key, StateKey, check_part};
use super::machines::Registration;
use super::record::{self, LastReport, UnitState};
use super::{Error, Registry};
use crate::keys::{Guard, KeyStore, Operation, Revision, TRANSACTION_OPERATIONS_MAX};

/// What an agent has reported under one registration: a new one begins with nothing.
#[derive(Debug)]
pub struct Reports {
    registration: Registration,
    /// By unit; none where a write failed and nobody knows what stands there.
    written: BTreeMap<String, Option<UnitState>>,
    last: Option<Revision>,
}

impl Reports {
    /// For a machine that was just registered.
    pub fn new(registration: Registration) -> Self {
        Self {
            registration,
            written: BTreeMap::new(),
            last: None,
        }
    }

    /// For a registration that is taken up: what stands there of these units is not known, and others have none.
    pub fn resumed(registration: Registration, units: impl IntoIterator<Item = String>) -> Self {
        Self {
            registration,
            written: units.into_iter().map(|unit| (unit, None)).collect(),
            last: None,
        }
    }

    /// Makes the registry say what is: writes what has changed since the last time, and removes units that are no
    /// longer among them. Returns how many keys were written or removed.
    ///
    /// # Errors
    /// [`Error::Unregistered`] once the machine's lease has run out. After any error the next call writes again
    /// what is in doubt.
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
                        Operation::Put(registry.name(&key), record::write(state), lease)
                    }
                    None => registry.delete(&key),
                }
            });
            let operations = operations.chain([self.is_last(registry)]).collect();
            for (unit, _) in some {
                self.written.insert(unit.clone(), None);
            }
            let reported = registry.commit_registered(&self.registration, operations);
            self.last = Some(reported.await?);
            for (unit, state) in some {
                match state {
                    Some(_) => self.written.insert(unit.clone(), state.clone()),
                    None => self.written.remove(unit),
                };
            }
        }
        Ok(changes.len())
    }

    /// The revision of the last report that was written.
    pub const fn last(&self) -> Option<Revision> {
        self.last
    }

    fn is_last<S: KeyStore>(&self, registry: &Registry<S>) -> Operation {
        let key = Key::LastReport(self.registration.id.clone());
        registry.put(&key, &LastReport {})
    }

    /// Whether something stands in the registry of a unit for sure.
    pub fn has(&self, unit: &str) -> bool {
        self.written.get(unit).is_some_and(Option::is_some)
    }

    /// Reports a unit before it is started, unless its order has changed since it was read at `run`. So an engine that
    /// withdraws the unit sees that this machine may run it, or this machine is refused.
    ///
    /// # Errors
    /// As of [`publish`](Self::publish).
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
            error: String::new(),
        };
        let guards = vec![
            Guard::Created(
                registry.name(&Key::Machine(machine.clone())),
                self.registration.created,
            ),
            Guard::Modified(registry.name(&Key::run(&machine, unit)), run),
        ];
        let unit_key = unit.to_owned();
        let key = Key::State(StateKey {
            unit: unit_key.clone(),
            machine,
        });
        let put = Operation::Put(registry.name(&key), record::write(&state), Some(lease));
        self.written.insert(unit_key.clone(), None);
        let then = vec![put, self.is_last(registry)];
        let outcome = registry.commit(guards, then).await?;
        if outcome.succeeded {
            self.last = Some(outcome.revision);
            self.written.insert(unit_key, Some(state));
        } else {
            self.written.remove(unit);
        }
        Ok(outcome.succeeded)
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
