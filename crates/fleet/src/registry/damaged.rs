//! Units of which something cannot be read, and what is left of units that are not there.

use super::key::{Family, Key, check_part};
use super::record::{Body, Global, Place, Seen, Want, is_newer};
use super::units::{UnitKeys, Written};
use super::{Error, Registry};
use crate::keys::{Guard, KeyStore, Operation, Outcome, TRANSACTION_OPERATIONS_MAX};

/// What stands in the keys of a unit.
pub(super) struct FoundUnit {
    pub(super) body: Seen<Body>,
    pub(super) want: Seen<Want>,
    pub(super) place: Seen<Place>,
    pub(super) global: Seen<Global>,
}

impl FoundUnit {
    /// Out of what a transaction found there.
    pub(super) fn of<S: KeyStore>(
        registry: &Registry<S>,
        keys: &UnitKeys,
        found: &Outcome,
    ) -> Self {
        Self {
            body: registry.seen(found, &keys.unit),
            want: registry.seen(found, &keys.want),
            place: registry.seen(found, &keys.place),
            global: registry.seen(found, &keys.global),
        }
    }

    /// What of it is not ours to read, or is missing, with the version that it names. What is newer comes first:
    /// it decides what may be done.
    pub(super) fn foreign<'a>(&self, keys: &'a UnitKeys) -> Option<(&'a Key, Option<u64>)> {
        let want = match (&self.body, &self.want) {
            (Seen::Here(_), Seen::Gone) => Some((&keys.want, None)),
            (_, want) => foreign(&keys.want, want),
        };
        let found = [
            foreign(&keys.unit, &self.body),
            want,
            foreign(&keys.place, &self.place),
            foreign(&keys.global, &self.global),
        ];
        let foreign = found.into_iter().flatten();
        foreign.min_by_key(|(_, version)| !is_newer(*version))
    }
}

fn foreign<'a, T>(key: &'a Key, seen: &Seen<T>) -> Option<(&'a Key, Option<u64>)> {
    match seen {
        Seen::Foreign { version } => Some((key, *version)),
        Seen::Here(_) | Seen::Gone => None,
    }
}

/// What is left of a unit that is not there.
pub(super) struct Leftovers {
    /// That it is still as it was found.
    pub(super) guards: Vec<Guard>,
    /// What removes that of it which a new unit does not write over.
    pub(super) gone: Vec<Operation>,
}

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
        match FoundUnit::of(self, &keys, &found).foreign(&keys) {
            Some((key, version)) if is_newer(version) => {
                return Err(self.foreign(key.clone(), version));
            }
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
        let outcome = self.commit(guards, gone).await?;
        Ok(if outcome.succeeded {
            Written::At(outcome.revision)
        } else {
            Written::Stale
        })
    }

    /// What is in the way where only parts of a unit are left, as by hand or by a restored backup. None if there is a
    /// unit.
    pub(super) fn leftovers(
        &self,
        keys: &UnitKeys,
        found: &Outcome,
        is_global: bool,
    ) -> Result<Option<Leftovers>, Error> {
        let read = FoundUnit::of(self, keys, found);
        if read.body != Seen::Gone {
            return Ok(None);
        }
        if let Some((key, version)) = read.foreign(keys) {
            return Err(self.foreign(key.clone(), version));
        }
        let mut gone = vec![self.delete(&keys.place), self.delete(&keys.why)];
        if !is_global {
            gone.push(self.delete(&keys.global));
        }
        if let (Some(place), Key::Unit(unit)) = (read.place.here(), &keys.unit) {
            gone.push(self.delete(&Key::Run {
                machine: place.value.machine,
                unit: unit.clone(),
            }));
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
