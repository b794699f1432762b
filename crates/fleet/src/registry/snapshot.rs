//! The whole registry at one revision, and its updates.

use std::collections::{BTreeMap, BTreeSet};

use super::change::KeyChange;
use super::key::{Key, LabelKey, RunKey, StateKey};
use super::record::{
    Body, Cordon, DesiredRecord, Drain, EngineVersion, Global, Label, Leader, MachineRecord,
    MoveOrder, Placement, Record, Resume, Run, Stored, UnitState, Why, is_newer,
};
use crate::keys::Revision;
use hyperfleet_fleet_model::schedule::Availability;

/// Unreadable keys, with the version that each names.
pub type UnreadableKeys = BTreeMap<Key, Option<u64>>;

/// Every record at one revision. Unreadable ones are only named.
///
/// A snapshot to which later changes were applied equals the snapshot of the later revision.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    pub revision: Revision,
    /// Unit files by name.
    pub bodies: BTreeMap<String, Stored<Body>>,
    /// Desired states by name.
    pub desired: BTreeMap<String, Stored<DesiredRecord>>,
    /// By unit.
    pub placements: BTreeMap<String, Stored<Placement>>,
    /// Orders to agents, by machine and unit.
    pub runs: BTreeMap<RunKey, Stored<Run>>,
    /// Orders to every matching agent, by unit.
    pub globals: BTreeMap<String, Stored<Global>>,
    /// Registered machines by id.
    pub machines: BTreeMap<String, Stored<MachineRecord>>,
    /// Metadata that users set, by machine and key.
    pub labels: BTreeMap<LabelKey, Stored<Label>>,
    /// Machines that take no further units, by id.
    pub cordons: BTreeMap<String, Stored<Cordon>>,
    /// Machines whose units must leave, by id.
    pub drains: BTreeMap<String, Stored<Drain>>,
    /// Ordered moves, by unit.
    pub moves: BTreeMap<String, Stored<MoveOrder>>,
    /// Reports, by unit and machine.
    pub states: BTreeMap<StateKey, Stored<UnitState>>,
    /// Why units are not placed, by name.
    pub whys: BTreeMap<String, Stored<Why>>,
    pub leader: Option<Stored<Leader>>,
    pub engine_version: Option<Stored<EngineVersion>>,
    /// The last order to resume after the registry went back in time.
    pub resume: Option<Stored<Resume>>,
    pub unreadable: UnreadableKeys,
    /// Unknown keys below the prefix.
    pub unknown: BTreeSet<String>,
}

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

    /// Applies a change. Returns its key; `None` for an unknown one.
    pub fn apply(&mut self, change: KeyChange) -> Option<Key> {
        let unreadable = &mut self.unreadable;
        Some(match change {
            KeyChange::Unit(name, record) => {
                store(&mut self.bodies, name, record, Key::Unit, unreadable)
            }
            KeyChange::Desired(name, record) => {
                store(&mut self.desired, name, record, Key::Desired, unreadable)
            }
            KeyChange::Placement(name, record) => store(
                &mut self.placements,
                name,
                record,
                Key::Placement,
                unreadable,
            ),
            KeyChange::Run(key, record) => store(&mut self.runs, key, record, Key::Run, unreadable),
            KeyChange::Global(name, record) => {
                store(&mut self.globals, name, record, Key::Global, unreadable)
            }
            KeyChange::Machine(id, record) => {
                store(&mut self.machines, id, record, Key::Machine, unreadable)
            }
            KeyChange::Label(key, record) => {
                store(&mut self.labels, key, record, Key::Label, unreadable)
            }
            KeyChange::Cordon(id, record) => {
                store(&mut self.cordons, id, record, Key::Cordon, unreadable)
            }
            KeyChange::Drain(id, record) => {
                store(&mut self.drains, id, record, Key::Drain, unreadable)
            }
            KeyChange::Move(name, record) => {
                store(&mut self.moves, name, record, Key::Move, unreadable)
            }
            KeyChange::State(key, record) => {
                store(&mut self.states, key, record, Key::State, unreadable)
            }
            KeyChange::Why(name, record) => {
                store(&mut self.whys, name, record, Key::Why, unreadable)
            }
            KeyChange::LastReport(id, record) => {
                let key = Key::LastReport(id);
                record_unreadable(unreadable, &key, &record);
                key
            }
            KeyChange::Leader(record) => {
                record_unreadable(unreadable, &Key::Leader, &record);
                self.leader = record.into_stored();
                Key::Leader
            }
            KeyChange::EngineVersion(record) => {
                record_unreadable(unreadable, &Key::EngineVersion, &record);
                self.engine_version = record.into_stored();
                Key::EngineVersion
            }
            KeyChange::ReplacesOrder(record) => {
                record_unreadable(unreadable, &Key::ReplacesOrder, &record);
                Key::ReplacesOrder
            }
            KeyChange::Resume(record) => {
                record_unreadable(unreadable, &Key::Resume, &record);
                self.resume = record.into_stored();
                Key::Resume
            }
            KeyChange::Unknown { name, exists } => {
                if exists {
                    self.unknown.insert(name);
                } else {
                    self.unknown.remove(&name);
                }
                return None;
            }
        })
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

/// Stores the state of a key. Returns the key.
fn store<K: Ord + Clone, T>(
    map: &mut BTreeMap<K, Stored<T>>,
    name: K,
    record: Record<T>,
    key: fn(K) -> Key,
    unreadable: &mut UnreadableKeys,
) -> Key {
    let key = key(name.clone());
    record_unreadable(unreadable, &key, &record);
    match record.into_stored() {
        Some(stored) => _ = map.insert(name, stored),
        None => _ = map.remove(&name),
    }
    key
}

fn record_unreadable<T>(unreadable: &mut UnreadableKeys, key: &Key, record: &Record<T>) {
    match record {
        Record::Unreadable { version } => _ = unreadable.insert(key.clone(), *version),
        Record::Present(_) | Record::Absent => _ = unreadable.remove(key),
    }
}
