//! The whole registry at one revision, and how it goes on.

use std::collections::{BTreeMap, BTreeSet};

use super::change::Change;
use super::key::Key;
use super::record::{
    Body, EngineVersion, Global, Label, Leader, Machine, Place, Run, Seen, Stored, UnitState, Want,
    Why, is_newer,
};
use crate::keys::Revision;

/// Keys that cannot be read, with the version that each names.
pub type UnreadableKeys = BTreeMap<Key, Option<u64>>;

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

    /// The key that makes a unit unreadable: one of `unit/`, `want/`, `place/` and `global/`, or `want/` where the
    /// desired state is missing. An unreadable unit is in no list, and nothing of it is changed. A newer version's key
    /// comes first: it decides what may be done.
    pub fn unreadable_key(&self, unit: &str) -> Option<(Key, Option<u64>)> {
        let misses_desired_state = self.misses_desired_state(unit);
        if self.foreign.is_empty() && !misses_desired_state {
            return None;
        }
        let own = [Key::Unit, Key::Want, Key::Place, Key::Global].map(|key| key(unit.to_owned()));
        let unreadable = own.into_iter().filter_map(|key| {
            let is_missing = misses_desired_state && matches!(&key, Key::Want(_));
            let version = self.foreign.get(&key).copied();
            Some((key, version.or(is_missing.then_some(None))?))
        });
        unreadable.min_by_key(|(_, version)| !is_newer(*version))
    }

    /// Whether a unit has a file and no desired state that can be read.
    pub fn misses_desired_state(&self, unit: &str) -> bool {
        self.bodies.contains_key(unit) && !self.wants.contains_key(unit)
    }

    /// Whether a unit is [unreadable](Self::unreadable_key).
    pub fn is_unreadable(&self, unit: &str) -> bool {
        self.unreadable_key(unit).is_some()
    }

    /// Whether the engine must not move a unit from where it is placed: the unit is unreadable, or its `run/` is, so
    /// that nobody knows what the agent does with it. `run/` hides no unit from users, whose writes put it right.
    pub fn is_pinned(&self, unit: &str) -> bool {
        let is_unreadable = |place: &Stored<Place>| {
            let (machine, unit) = (place.value.machine.clone(), unit.to_owned());
            self.foreign.contains_key(&Key::Run { machine, unit })
        };
        let place = self.places.get(unit).filter(|_| !self.foreign.is_empty());
        self.is_unreadable(unit) || place.is_some_and(is_unreadable)
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

/// Keeps whether the key of a change can be read. Gives the key; none if it is none of ours.
fn note_unreadable(keys: &mut UnreadableKeys, change: &Change) -> Option<Key> {
    Some(match change {
        Change::Unit(name, seen) => note(keys, Key::Unit(name.clone()), seen),
        Change::Want(name, seen) => note(keys, Key::Want(name.clone()), seen),
        Change::Place(name, seen) => note(keys, Key::Place(name.clone()), seen),
        Change::Global(name, seen) => note(keys, Key::Global(name.clone()), seen),
        Change::Machine(id, seen) => note(keys, Key::Machine(id.clone()), seen),
        Change::Why(name, seen) => note(keys, Key::Why(name.clone()), seen),
        Change::Run { machine, unit, run } => {
            let (machine, unit) = (machine.clone(), unit.clone());
            note(keys, Key::Run { machine, unit }, run)
        }
        Change::Label {
            machine,
            key,
            label,
        } => {
            let (machine, key) = (machine.clone(), key.clone());
            note(keys, Key::Label { machine, key }, label)
        }
        Change::State {
            unit,
            machine,
            state,
        } => {
            let (unit, machine) = (unit.clone(), machine.clone());
            note(keys, Key::State { unit, machine }, state)
        }
        Change::Leader(seen) => note(keys, Key::Leader, seen),
        Change::EngineVersion(seen) => note(keys, Key::EngineVersion, seen),
        Change::Unknown { .. } => return None,
    })
}

fn note<T>(keys: &mut UnreadableKeys, key: Key, seen: &Seen<T>) -> Key {
    match seen {
        Seen::Foreign { version } => _ = keys.insert(key.clone(), *version),
        Seen::Here(_) | Seen::Gone => _ = keys.remove(&key),
    }
    key
}
