//! The mirror's data: the registry at one revision, with indexes for lists and followers.

use std::collections::BTreeSet;
use std::ops::Bound;

use super::touched::{Since, Touch, Touched};
use crate::keys::Revision;
use crate::registry::{
    Error, Key, KeyChange, Page, PageToken, Record, ReportedState, Snapshot, StateFilter, StateKey,
    UnitState,
};
use crate::view::current;
use hyperfleet_fleet_model::unit::Replacing;

#[derive(Debug, Default)]
pub struct Picture {
    pub(crate) snapshot: Snapshot,
    /// Machines and the units that they report: the reverse index of `snapshot.states`.
    by_machine: BTreeSet<(String, String)>,
    pub(crate) replacing: Replacing,
    /// Changes with every record that decisions depend on.
    pub(super) inputs: u64,
    touched: Touched,
}

impl Picture {
    /// Applies changes up to a revision. Returns their keys.
    pub(super) fn apply(&mut self, revision: Revision, changes: Vec<KeyChange>) -> Vec<Key> {
        let (mut touches, mut keys) = (BTreeSet::new(), Vec::new());
        for change in changes {
            self.touch(&change, &mut touches);
            self.inputs += u64::from(self.is_input(&change));
            self.index(&change);
            keys.extend(self.snapshot.apply(change));
        }
        self.snapshot.revision = revision;
        self.touched.add(revision, touches);
        keys
    }

    /// The picture of a later revision whose history is unknown. Whatever differs was touched.
    pub(super) fn next(&self, snapshot: Snapshot) -> Self {
        let revision = snapshot.revision;
        let mut next = Self::of(snapshot);
        next.inputs = self.inputs + 1;
        if self.snapshot.revision > 0 && revision >= self.snapshot.revision {
            next.touched = self.touched.clone();
            next.touched
                .add(revision, differences(&self.snapshot, &next.snapshot));
        }
        next
    }

    pub(crate) fn of(snapshot: Snapshot) -> Self {
        let by_machine = snapshot.states.keys();
        let by_machine = by_machine.map(|key| (key.machine.clone(), key.unit.clone()));
        let mut replacing = Replacing::default();
        for (name, body) in &snapshot.bodies {
            replacing.set(name, &body.value.options);
        }
        Self {
            by_machine: by_machine.collect(),
            replacing,
            inputs: 0,
            touched: Touched::since_now(snapshot.revision),
            snapshot,
        }
    }

    /// Whether decisions depend on a change. Of reports, they depend on those of units without a machine: a singleton may
    /// still have to stop.
    fn is_input(&self, change: &KeyChange) -> bool {
        match change {
            KeyChange::State(key, _) => {
                let body = self.snapshot.bodies.get(&key.unit);
                let is_global = body.is_some_and(|body| body.value.global.is_some());
                !is_global && !self.snapshot.placements.contains_key(&key.unit)
            }
            KeyChange::Unit(..)
            | KeyChange::Desired(..)
            | KeyChange::Placement(..)
            | KeyChange::Run(..)
            | KeyChange::Global(..)
            | KeyChange::Machine(..)
            | KeyChange::Label(..)
            | KeyChange::Cordon(..)
            | KeyChange::Drain(..) => true,
            KeyChange::Move(..)
            | KeyChange::LastReport(..)
            | KeyChange::Leader(_)
            | KeyChange::EngineVersion(_)
            | KeyChange::ReplacesOrder(_)
            | KeyChange::Resume(_)
            | KeyChange::Unknown { .. } => false,
        }
    }

    /// Adds what a change touches, given the previous state.
    fn touch(&self, change: &KeyChange, touches: &mut BTreeSet<Touch>) {
        let is_noticed = |touch: &Touch| match (touch, change) {
            (Touch::Unit(_), KeyChange::State(key, state)) => self.changes_unit(key, state),
            _ => true,
        };
        touches.extend(touches_of(change).filter(is_noticed));
    }

    /// Whether a reported state changes the unit itself: it does on the machine where the unit is placed, if it
    /// changes the unit's current state.
    fn changes_unit(&self, key: &StateKey, state: &Record<UnitState>) -> bool {
        let placement = self.snapshot.placements.get(&key.unit);
        if placement.is_none_or(|placement| placement.value.machine != key.machine) {
            return false;
        }
        let before = self.snapshot.states.get(key).map(|state| &state.value);
        let after = match state {
            Record::Present(state) => Some(&state.value),
            Record::Absent | Record::Unreadable { .. } => None,
        };
        let desired = self.snapshot.desired.get(&key.unit);
        let restarts = desired.map_or(0, |desired| desired.value.restarts);
        current(before, restarts) != current(after, restarts)
    }

    fn index(&mut self, change: &KeyChange) {
        match change {
            KeyChange::State(key, state) => {
                let pair = (key.machine.clone(), key.unit.clone());
                if matches!(state, Record::Present(_)) {
                    self.by_machine.insert(pair);
                } else {
                    self.by_machine.remove(&pair);
                }
            }
            KeyChange::Unit(name, Record::Present(body)) => {
                self.replacing.set(name, &body.value.options);
            }
            KeyChange::Unit(name, Record::Absent | Record::Unreadable { .. }) => {
                self.replacing.remove(name);
            }
            _ => {}
        }
    }

    /// A page of reported states.
    pub(crate) fn list_states(
        &self,
        filter: &StateFilter,
        after: Option<&PageToken>,
        limit: usize,
    ) -> Result<Page<ReportedState>, Error> {
        let of_machine = |machine: &str, behind: Option<&str>| self.units_on(machine, behind);
        self.snapshot.list_states(filter, after, limit, of_machine)
    }

    /// Units that a machine reports, by name, after one of them.
    pub(crate) fn units_on<'a>(
        &'a self,
        machine: &str,
        behind: Option<&str>,
    ) -> impl Iterator<Item = &'a str> + use<'a> {
        let machine = machine.to_owned();
        // No unit has an empty name.
        let from = (machine.clone(), behind.unwrap_or_default().to_owned());
        let pairs = self
            .by_machine
            .range((Bound::Excluded(from), Bound::Unbounded));
        let pairs = pairs.take_while(move |(id, _)| *id == machine);
        pairs.map(|(_, unit)| unit.as_str())
    }

    /// Whether it knows everything that was touched after a revision.
    pub(crate) fn remembers(&self, after: Revision) -> bool {
        self.touched.reaches(after)
    }

    /// The next items that were touched after a revision.
    pub(crate) fn since(&self, after: Revision) -> Since<'_> {
        self.touched.since(after)
    }
}

/// What a change may touch, whatever the previous state.
pub(crate) fn touches_of(change: &KeyChange) -> impl Iterator<Item = Touch> + use<> {
    let (unit, state) = match change {
        // `global/` says the same as the file, unless it is unreadable: the unit is hidden then.
        KeyChange::Unit(name, _)
        | KeyChange::Desired(name, _)
        | KeyChange::Placement(name, _)
        | KeyChange::Global(name, _) => (Some(name), None),
        KeyChange::State(key, _) => (Some(&key.unit), Some(key)),
        KeyChange::Run(..)
        | KeyChange::Machine(..)
        | KeyChange::Label(..)
        | KeyChange::Cordon(..)
        | KeyChange::Drain(..)
        | KeyChange::Move(..)
        | KeyChange::LastReport(..)
        | KeyChange::Leader(_)
        | KeyChange::EngineVersion(_)
        | KeyChange::ReplacesOrder(_)
        | KeyChange::Resume(_)
        | KeyChange::Unknown { .. } => (None, None),
    };
    let (unit, state) = (unit.cloned(), state.cloned());
    let state = state.map(Touch::State);
    unit.map(Touch::Unit).into_iter().chain(state)
}

/// What differs between two snapshots.
fn differences(before: &Snapshot, after: &Snapshot) -> BTreeSet<Touch> {
    let mut touches = BTreeSet::new();
    for name in before.bodies.keys().chain(after.bodies.keys()) {
        if marks(before, name) != marks(after, name) {
            touches.insert(Touch::Unit(name.clone()));
        }
    }
    for key in before.states.keys().chain(after.states.keys()) {
        let at = |snapshot: &Snapshot| snapshot.states.get(key).map(|state| state.revision);
        if at(before) != at(after) {
            touches.insert(Touch::State(key.clone()));
        }
    }
    touches
}

/// Revisions of the records that users see of a unit; none if it is hidden.
fn marks(snapshot: &Snapshot, name: &str) -> [Option<Revision>; 4] {
    if snapshot.is_unreadable(name) {
        return [None; 4];
    }
    let placement = snapshot.placements.get(name);
    let state = placement.and_then(|placement| {
        let (unit, machine) = (name.to_owned(), placement.value.machine.clone());
        snapshot.states.get(&StateKey { unit, machine })
    });
    [
        snapshot.bodies.get(name).map(|stored| stored.revision),
        snapshot.desired.get(name).map(|stored| stored.revision),
        placement.map(|stored| stored.revision),
        state.map(|stored| stored.revision),
    ]
}
