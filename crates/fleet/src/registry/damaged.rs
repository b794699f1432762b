//! Units of which something cannot be read, and what is left of units that are not there.

use super::key::{Family, Key, check_part};
use super::record::is_newer;
use super::units::{Leftovers, UnitKeys, Written};
use super::{Error, Registry};
use crate::keys::{Guard, KeyStore, Operation, Outcome, TRANSACTION_OPERATIONS_MAX};

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
        let keys = UnitKeys::new(name);
        let found = self.get(&keys.own()).await?;
        match self.known(&found).unreadable_key(name) {
            Some((key, version)) if is_newer(version) => return Err(self.foreign(key, version)),
            Some(_) => {}
            None => return Ok(Written::Stale),
        }
        let guards = self.as_found(&keys, &found);
        let runs = self.runs_of(name).await?;
        for some in runs.chunks(TRANSACTION_OPERATIONS_MAX) {
            if !self.commit(guards.clone(), some.to_vec()).await?.succeeded {
                return Ok(Written::Stale);
            }
        }
        let gone = keys.own().into_iter().chain([keys.why]);
        let gone = gone.map(|key| self.delete(&key)).collect();
        Ok(self.commit(guards, gone).await?.into())
    }

    /// What is in the way where only parts of a unit are left, as by hand or by a restored backup. None if there is a
    /// unit.
    pub(super) fn leftovers(
        &self,
        keys: &UnitKeys,
        found: &Outcome,
        is_global: bool,
    ) -> Result<Option<Leftovers>, Error> {
        let (name, known) = (keys.name.as_str(), self.known(found));
        if known.bodies.contains_key(name) || known.foreign.contains_key(&keys.unit) {
            return Ok(None);
        }
        if let Some((key, version)) = known.unreadable_key(name) {
            return Err(self.foreign(key, version));
        }
        let mut gone = vec![self.delete(&keys.place), self.delete(&keys.why)];
        if !is_global {
            gone.push(self.delete(&keys.global));
        }
        if let Some(place) = known.places.get(name) {
            gone.push(self.delete(&keys.run(&place.value.machine)));
        }
        let guards = self.as_found(keys, found);
        Ok(Some(Leftovers { guards, gone }))
    }

    /// That all keys of a unit are as a transaction found them, whatever stands there.
    fn as_found(&self, keys: &UnitKeys, found: &Outcome) -> Vec<Guard> {
        let guard = |key: &Key| {
            let name = self.name(key);
            let entry = found.found.iter().find(|e| e.key == name.as_bytes());
            match entry.map(|entry| entry.modified) {
                Some(revision) => Guard::Modified(name, revision),
                None => Guard::Absent(name),
            }
        };
        keys.own().iter().map(guard).collect()
    }

    /// What takes the work with a unit from every agent that has it.
    async fn runs_of(&self, name: &str) -> Result<Vec<Operation>, Error> {
        let mut runs = Vec::new();
        let take = |entry: crate::keys::Entry| {
            if let Some(key @ Key::Run { .. }) = self.prefix.read(&entry.key)
                && matches!(&key, Key::Run { unit, .. } if unit == name)
            {
                runs.push(self.delete(&key));
            }
        };
        let range = self.prefix.family(Family::Run);
        self.read_each(range, None, take).await?;
        Ok(runs)
    }
}
