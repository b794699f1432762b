//! What becomes of a unit of which this version of fleet cannot read a key: a newer version wrote it, or it is damaged.

use std::collections::BTreeMap;

use super::change::Change;
use super::key::Key;
use super::record::{Seen, is_newer};

/// Keys that cannot be read, with the version that each names.
pub type UnreadableKeys = BTreeMap<Key, Option<u64>>;

/// Keeps whether the key of a change can be read. Gives the key; none if it is none of ours.
pub(super) fn note_unreadable(keys: &mut UnreadableKeys, change: &Change) -> Option<Key> {
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

/// The key that makes a unit unreadable: one of `unit/`, `want/`, `place/` and `global/`, or `want/` where the desired
/// state is missing. An unreadable unit is in no list, and nothing of it is changed. A newer version's key comes
/// first: it decides what may be done.
pub fn unreadable_key(
    keys: &UnreadableKeys,
    unit: &str,
    missing_desired_state: bool,
) -> Option<(Key, Option<u64>)> {
    if keys.is_empty() && !missing_desired_state {
        return None;
    }
    let own = [Key::Unit, Key::Want, Key::Place, Key::Global].map(|key| key(unit.to_owned()));
    let version = |key: &Key| {
        let is_missing = missing_desired_state && matches!(key, Key::Want(_));
        keys.get(key).copied().or(is_missing.then_some(None))
    };
    let unreadable = own.into_iter().filter_map(|key| {
        let version = version(&key)?;
        Some((key, version))
    });
    unreadable.min_by_key(|(_, version)| !is_newer(*version))
}

/// Whether the engine must not move a unit that is placed on this machine: the unit is unreadable, or its `run/` is,
/// so that nobody knows what the agent does with it. `run/` hides no unit from users, whose writes put it right.
pub fn is_pinned(
    keys: &UnreadableKeys,
    unit: &str,
    missing_desired_state: bool,
    machine: Option<&str>,
) -> bool {
    let run = |machine: &str| Key::Run {
        machine: machine.to_owned(),
        unit: unit.to_owned(),
    };
    unreadable_key(keys, unit, missing_desired_state).is_some()
        || !keys.is_empty() && machine.is_some_and(|machine| keys.contains_key(&run(machine)))
}
