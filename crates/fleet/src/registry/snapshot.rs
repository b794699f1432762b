//! Questions to the whole registry at one revision.

use std::collections::BTreeMap;

use super::key::{LabelKey, RunKey, StateKey};
use super::record::{Stored, UnitState, is_newer};
use super::table::{Key, KeyChange, Snapshot};
use crate::keys::Revision;
use hyperfleet_fleet_model::schedule::Availability;

impl Snapshot {
    /// The snapshot of these records at a revision.
    pub fn of(revision: Revision, found: impl IntoIterator<Item = KeyChange>) -> Self {
        let mut snapshot = Self {
            revision,
            ..Self::default()
        };
        snapshot.extend(found);
        snapshot
    }

    /// The key that makes a unit unreadable: one of `unit/`, `want/`, `place/` and `global/`, or `want/` where
    /// the desired state is missing. An unreadable unit is in no list, and none of its records is changed. A
    /// newer version's key comes first, because it decides what may be done.
    pub fn unreadable_key(&self, unit: &str) -> Option<(Key, Option<u64>)> {
        let misses_desired_state = self.misses_desired_state(unit);
        if self.unreadable.is_empty() && !misses_desired_state {
            return None;
        }
        let unreadable = Key::own(unit).into_iter().filter_map(|key| {
            let is_missing = misses_desired_state && matches!(&key, Key::Desired(_));
            let version = self.unreadable.get(&key).copied();
            Some((key, version.or(is_missing.then_some(None))?))
        });
        unreadable.min_by_key(|(_, version)| !is_newer(*version))
    }

    /// Whether a unit has a file and no readable desired state.
    pub fn misses_desired_state(&self, unit: &str) -> bool {
        self.bodies.contains_key(unit) && !self.desired.contains_key(unit)
    }

    pub fn is_unreadable(&self, unit: &str) -> bool {
        self.unreadable_key(unit).is_some()
    }

    /// Whether the engine must not place or move a unit: the unit is unreadable, or a machine's `run/` of it
    /// is, so that its agent's order is unknown. An unreadable `run/` hides no unit from users, and their
    /// writes repair it on the machine where the unit is placed.
    pub fn is_pinned(&self, unit: &str) -> bool {
        self.is_unreadable(unit) || self.unreadable_runs(unit).next().is_some()
    }

    /// Machines whose `run/` of a unit is unreadable.
    pub fn unreadable_runs(&self, unit: &str) -> impl Iterator<Item = &str> {
        let runs = self
            .unreadable
            .range(Key::run("", "")..Key::Global(String::new()));
        runs.filter_map(move |(key, _)| match key {
            Key::Run(run) if run.unit == unit => Some(run.machine.as_str()),
            _ => None,
        })
    }

    /// A machine's configured metadata, overridden by its labels.
    pub fn metadata(&self, machine: &str) -> BTreeMap<String, String> {
        let configured = self.machines.get(machine);
        let metadata = configured.map_or_else(BTreeMap::new, |m| m.value.metadata.clone());
        self.over_metadata(machine, metadata)
    }

    /// Whether a machine takes units. With an unreadable cordon or drain it takes none.
    pub fn availability(&self, machine: &str) -> Availability {
        if self.drains.contains_key(machine) {
            return Availability::Draining;
        }
        let is_unreadable = |key: fn(String) -> Key| {
            !self.unreadable.is_empty() && self.unreadable.contains_key(&key(machine.to_owned()))
        };
        let is_cordoned = self.cordons.contains_key(machine)
            || is_unreadable(Key::Cordon)
            || is_unreadable(Key::Drain);
        if is_cordoned {
            Availability::Cordoned
        } else {
            Availability::Open
        }
    }

    /// What machines report of a unit, by machine.
    pub fn states_of<'a>(
        &'a self,
        unit: &'a str,
    ) -> impl Iterator<Item = (&'a StateKey, &'a Stored<UnitState>)> {
        let first = StateKey {
            unit: unit.to_owned(),
            machine: String::new(),
        };
        let states = self.states.range(first..);
        states.take_while(move |(key, _)| key.unit == unit)
    }

    /// The units that are placed on a machine, by name.
    pub fn units_on<'a>(&'a self, machine: &'a str) -> impl Iterator<Item = &'a str> {
        let first = RunKey {
            machine: machine.to_owned(),
            unit: String::new(),
        };
        let runs = self.runs.range(first..).map(|(key, _)| key);
        let runs = runs.take_while(move |key| key.machine == machine);
        runs.map(|key| key.unit.as_str())
    }

    /// Overrides metadata from another source, as by the machine's own agent, with its labels.
    pub fn over_metadata(
        &self,
        machine: &str,
        mut metadata: BTreeMap<String, String>,
    ) -> BTreeMap<String, String> {
        let first = LabelKey {
            machine: machine.to_owned(),
            key: String::new(),
        };
        let labels = self.labels.range(first..);
        for (LabelKey { key, .. }, label) in labels.take_while(|(key, _)| key.machine == machine) {
            match &label.value.value {
                Some(value) => metadata.insert(key.clone(), value.clone()),
                None => metadata.remove(key),
            };
        }
        metadata
    }
}

impl Extend<KeyChange> for Snapshot {
    fn extend<I: IntoIterator<Item = KeyChange>>(&mut self, changes: I) {
        for change in changes {
            let _ = self.apply(change);
        }
    }
}
