//! The whole registry at one revision, and how it goes on.

use std::collections::{BTreeMap, BTreeSet};

use super::change::Change;
use super::key::Key;
use super::record::{
    Body, EngineVersion, Global, Label, Leader, Machine, Place, Run, Seen, Stored, UnitState, Want,
    Why,
};
use super::unreadable::{UnreadableKeys, unreadable_key};
use crate::keys::Revision;

/// Everything that is stored, as it was at one revision; what is not ours to read is only named.
///
/// A snapshot to which the changes since have been applied is the snapshot of the later revision.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// When it was so.
    pub revision: Revision,
    /// What units are, by name.
    pub bodies: BTreeMap<String, Stored<Body>>,
    /// What users want of them, by name.
    pub wants: BTreeMap<String, Stored<Want>>,
    /// Where they are placed, by name.
    pub places: BTreeMap<String, Stored<Place>>,
    /// What agents have to do, by machine and unit.
    pub runs: BTreeMap<(String, String), Stored<Run>>,
    /// What every agent that fits has to do, by unit.
    pub globals: BTreeMap<String, Stored<Global>>,
    /// Machines that are there, by id.
    pub machines: BTreeMap<String, Stored<Machine>>,
    /// Metadata that was set while they run, by machine and key.
    pub labels: BTreeMap<(String, String), Stored<Label>>,
    /// What became of units, by unit and machine.
    pub states: BTreeMap<(String, String), Stored<UnitState>>,
    /// Why units are not placed, by name.
    pub whys: BTreeMap<String, Stored<Why>>,
    /// Who decides.
    pub leader: Option<Stored<Leader>>,
    /// The newest engine that ever decided.
    pub engine_version: Option<Stored<EngineVersion>>,
    /// Keys of ours that hold what is not ours to read, with the version that they name.
    pub foreign: UnreadableKeys,
    /// Other keys below the prefix.
    pub unknown: BTreeSet<String>,
}

impl Snapshot {
    /// Takes over what a key is found to be or became.
    pub fn apply(&mut self, change: Change) {
        let foreign = &mut self.foreign;
        match change {
            Change::Unit(name, seen) => named(foreign, Key::Unit, &mut self.bodies, name, seen),
            Change::Want(name, seen) => named(foreign, Key::Want, &mut self.wants, name, seen),
            Change::Place(name, seen) => named(foreign, Key::Place, &mut self.places, name, seen),
            Change::Global(name, seen) => {
                named(foreign, Key::Global, &mut self.globals, name, seen);
            }
            Change::Machine(id, seen) => {
                named(foreign, Key::Machine, &mut self.machines, id, seen);
            }
            Change::Why(name, seen) => named(foreign, Key::Why, &mut self.whys, name, seen),
            Change::Run { machine, unit, run } => {
                let pair = (machine.clone(), unit.clone());
                let key = Key::Run { machine, unit };
                take(foreign, key, &mut self.runs, pair, run);
            }
            Change::Label {
                machine,
                key,
                label,
            } => {
                let pair = (machine.clone(), key.clone());
                let key = Key::Label { machine, key };
                take(foreign, key, &mut self.labels, pair, label);
            }
            Change::State {
                unit,
                machine,
                state,
            } => {
                let pair = (unit.clone(), machine.clone());
                let key = Key::State { unit, machine };
                take(foreign, key, &mut self.states, pair, state);
            }
            Change::Leader(seen) => {
                note(foreign, Key::Leader, &seen);
                self.leader = seen.here();
            }
            Change::EngineVersion(seen) => {
                note(foreign, Key::EngineVersion, &seen);
                self.engine_version = seen.here();
            }
            Change::Unknown { name, exists } => {
                if exists {
                    self.unknown.insert(name);
                } else {
                    self.unknown.remove(&name);
                }
            }
        }
    }

    /// The key that makes a unit [unreadable](unreadable_key).
    #[must_use]
    pub fn unreadable_key(&self, unit: &str) -> Option<(Key, Option<u64>)> {
        let missing_desired_state =
            self.bodies.contains_key(unit) && !self.wants.contains_key(unit);
        unreadable_key(&self.foreign, unit, missing_desired_state)
    }

    /// Whether a unit is [unreadable](unreadable_key).
    #[must_use]
    pub fn is_unreadable(&self, unit: &str) -> bool {
        self.unreadable_key(unit).is_some()
    }

    /// What a machine's metadata is: that of its configuration, and over it what was set while it runs.
    #[must_use]
    pub fn metadata(&self, machine: &str) -> BTreeMap<String, String> {
        let configured = self.machines.get(machine);
        let mut metadata = configured.map_or_else(BTreeMap::new, |m| m.value.metadata.clone());
        let first = (machine.to_owned(), String::new());
        for ((id, key), label) in self.labels.range(first..) {
            if id != machine {
                break;
            }
            overlay(&mut metadata, key, &label.value);
        }
        metadata
    }
}

impl Extend<Change> for Snapshot {
    fn extend<I: IntoIterator<Item = Change>>(&mut self, changes: I) {
        for change in changes {
            self.apply(change);
        }
    }
}

/// Lays what was set at run time over what a configuration says.
fn overlay(metadata: &mut BTreeMap<String, String>, key: &str, label: &Label) {
    match &label.value {
        Some(value) => metadata.insert(key.to_owned(), value.clone()),
        None => metadata.remove(key),
    };
}

fn note<T>(foreign: &mut UnreadableKeys, key: Key, seen: &Seen<T>) {
    match seen {
        Seen::Foreign { version } => {
            foreign.insert(key, *version);
        }
        Seen::Here(_) | Seen::Gone => {
            foreign.remove(&key);
        }
    }
}

fn named<T>(
    foreign: &mut UnreadableKeys,
    key: fn(String) -> Key,
    map: &mut BTreeMap<String, Stored<T>>,
    name: String,
    seen: Seen<T>,
) {
    take(foreign, key(name.clone()), map, name, seen);
}

fn take<K: Ord, T>(
    foreign: &mut UnreadableKeys,
    key: Key,
    map: &mut BTreeMap<K, Stored<T>>,
    name: K,
    seen: Seen<T>,
) {
    note(foreign, key, &seen);
    match seen.here() {
        Some(stored) => {
            map.insert(name, stored);
        }
        None => {
            map.remove(&name);
        }
    }
}
