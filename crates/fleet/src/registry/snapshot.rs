//! The whole registry at one revision, and how it goes on.

use std::collections::{BTreeMap, BTreeSet};

use super::change::Change;
use super::key::Key;
use super::record::{
    Body, EngineVersion, Global, Label, Leader, Machine, Place, Run, Seen, Stored, UnitState, Want,
    Why,
};
use super::unreadable::{UnreadableKeys, note_unreadable, unreadable_key};
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
    /// Takes over what a key is found to be or became. Gives the key; none if it is none of ours.
    pub fn apply(&mut self, change: Change) -> Option<Key> {
        let key = note_unreadable(&mut self.foreign, &change);
        match change {
            Change::Unit(name, seen) => put(&mut self.bodies, name, seen),
            Change::Want(name, seen) => put(&mut self.wants, name, seen),
            Change::Place(name, seen) => put(&mut self.places, name, seen),
            Change::Global(name, seen) => put(&mut self.globals, name, seen),
            Change::Machine(id, seen) => put(&mut self.machines, id, seen),
            Change::Why(name, seen) => put(&mut self.whys, name, seen),
            Change::Run { machine, unit, run } => put(&mut self.runs, (machine, unit), run),
            Change::Label {
                machine,
                key,
                label,
            } => put(&mut self.labels, (machine, key), label),
            Change::State {
                unit,
                machine,
                state,
            } => put(&mut self.states, (unit, machine), state),
            Change::Leader(seen) => self.leader = seen.here(),
            Change::EngineVersion(seen) => self.engine_version = seen.here(),
            Change::Unknown { name, exists: true } => _ = self.unknown.insert(name),
            Change::Unknown {
                name,
                exists: false,
            } => _ = self.unknown.remove(&name),
        }
        key
    }

    /// The key that makes a unit [unreadable](unreadable_key).
    pub fn unreadable_key(&self, unit: &str) -> Option<(Key, Option<u64>)> {
        unreadable_key(&self.foreign, unit, self.misses_desired_state(unit))
    }

    /// Whether a unit has a file and no desired state that can be read.
    pub fn misses_desired_state(&self, unit: &str) -> bool {
        self.bodies.contains_key(unit) && !self.wants.contains_key(unit)
    }

    /// Whether a unit is [unreadable](unreadable_key).
    pub fn is_unreadable(&self, unit: &str) -> bool {
        self.unreadable_key(unit).is_some()
    }

    /// What a machine's metadata is: that of its configuration, and over it what was set while it runs.
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
            let _ = self.apply(change);
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

fn put<K: Ord, T>(map: &mut BTreeMap<K, Stored<T>>, key: K, seen: Seen<T>) {
    match seen.here() {
        Some(stored) => _ = map.insert(key, stored),
        None => _ = map.remove(&key),
    }
}
