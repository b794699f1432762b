//! Units of which something cannot be read, and what is left of units that are not there.

use super::key::{Family, Key, RunKey, check_part};
use super::record::is_newer;
use super::units::Written;
use super::{Error, Registry};
use crate::keys::{Guard, KeyStore, Operation, Outcome, TRANSACTION_OPERATIONS_MAX, Transaction};

impl<S: KeyStore> Registry<S> {
    /// Removes all keys of a unit of which something is missing or cannot be read, and is of no newer version: also
    /// the work of the agents, wherever that is. Takes time in proportion to all units that are placed.
    ///
    /// # Guarantees
    /// The unit's own keys go last and at once: cut off half-way, it is found damaged again.
    ///
    /// # Errors
    /// [`Error::Foreign`] if something of it is of a newer version: nothing was done.
    pub async fn destroy_damaged_unit(&self, name: &str) -> Result<Written, Error> {
        check_part("unit name", name)?;
        let found = self.get(&Key::own(name)).await?;
        match self.known(&found).unreadable_key(name) {
            Some((key, version)) if is_newer(version) => return Err(self.foreign(key, version)),
            Some(_) => {}
            None => return Ok(Written::Stale),
        }
        let guards = self.as_found(name, &found);
        let runs = self.runs_of(name).await?;
        for some in runs.chunks(TRANSACTION_OPERATIONS_MAX) {
            if !self.commit(guards.clone(), some.to_vec()).await?.succeeded {
                return Ok(Written::Stale);
            }
        }
        let gone = Key::own(name)
            .into_iter()
            .chain([Key::Why(name.to_owned())]);
        let gone = gone.map(|key| self.delete(&key)).collect();
        Ok(self.commit(guards, gone).await?.into())
    }

    /// Writes a new unit where only parts of one are left, as by hand or by a restored backup: if these are still as
    /// they were found, and without that of them which the new unit does not write over. None if there is a unit.
    pub(super) fn over_leftovers(
        &self,
        name: &str,
        found: &Outcome,
        is_global: bool,
        mut then: Vec<Operation>,
    ) -> Result<Option<Transaction>, Error> {
        let (known, unit) = (self.known(found), Key::Unit(name.to_owned()));
        if known.bodies.contains_key(name) || known.foreign.contains_key(&unit) {
            return Ok(None);
        }
        if let Some((key, version)) = known.unreadable_key(name) {
            return Err(self.foreign(key, version));
        }
        let delete = |key: fn(String) -> Key| self.delete(&key(name.to_owned()));
        then.extend([delete(Key::Place), delete(Key::Why)]);
        if !is_global {
            then.push(delete(Key::Global));
        }
        if let Some(place) = known.places.get(name) {
            then.push(self.delete(&Key::run(&place.value.machine, name)));
        }
        Ok(Some(Transaction {
            guards: self.as_found(name, found),
            then,
            otherwise: Vec::new(),
        }))
    }

    /// That all keys of a unit are as a transaction found them, whatever stands there.
    fn as_found(&self, name: &str, found: &Outcome) -> Vec<Guard> {
        let guard = |key: &Key| {
            let name = self.name(key);
            let entry = found.found.iter().find(|e| e.key == name.as_bytes());
            match entry.map(|entry| entry.modified) {
                Some(revision) => Guard::Modified(name, revision),
                None => Guard::Absent(name),
            }
        };
        Key::own(name).iter().map(guard).collect()
    }

    /// What takes the work with a unit from every agent that has it.
    async fn runs_of(&self, name: &str) -> Result<Vec<Operation>, Error> {
        let mut runs = Vec::new();
        let take = |entry: crate::keys::Entry| {
            let key = self.prefix.read(&entry.key);
            if let Some(Key::Run(RunKey { machine, unit })) = key
                && unit == name
            {
                runs.push(self.delete(&Key::run(&machine, name)));
            }
        };
        let range = self.prefix.family(Family::Run);
        self.read_each(range, None, take).await?;
        Ok(runs)
    }
}
