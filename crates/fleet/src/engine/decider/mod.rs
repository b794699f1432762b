//! The deciding half of the engine: touched keys in, steps to write out. No IO and no clock.
//!
//! ```text
//! mirror ─▶ apply ─▶ changed     units and machines to update in the cluster
//!    │               │
//!    └── records ──▶ Cluster     the input of decisions
//!                    ▼
//!            decide ─▶ steps       a plan as steps, in a valid order
//! ```
//!
//! All records come from the mirror, also those that this engine wrote. `lead` waits until the mirror has all earlier
//! writes. So nothing is decided twice, and there is one order of events: the store's. The mirror may be ahead of
//! the cluster. A step about such a newer record has a guard that always fails.

mod steps;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::mpsc::UnboundedReceiver;

pub(super) use self::steps::Agenda;
use crate::keys::Revision;
use crate::known_units;
use crate::mirror::{KeysTouched, Mirror};
use crate::registry::{Key, LabelKey, RunKey, Snapshot, StateKey, Step, UnreadableKeys};
use hyperfleet_fleet_model::schedule::{self, Cluster, MachineId, Move};
use hyperfleet_fleet_model::unit::UnitName;

/// The deciding state of one term.
#[derive(Debug)]
pub(super) struct Decider {
    /// Our term. Places with this epoch were written by us.
    epoch: Revision,
    mirror: Arc<Mirror>,
    touched_keys: UnboundedReceiver<KeysTouched>,
    /// How many keys were touched.
    touch_count: u64,
    /// Revision up to which the cluster is updated.
    updated_at: Revision,
    cluster: Cluster,
    /// Changes since the cluster was last updated.
    changed_units: BTreeSet<String>,
    changed_machines: BTreeSet<String>,
    /// Units that need a machine and have none.
    unplaced: BTreeSet<String>,
    /// Units with a file and no desired state: damage, as after a partial restore of a backup.
    missing_desired_state: BTreeSet<String>,
    /// Units whose place names an impossible machine.
    misplaced: BTreeSet<String>,
    /// Units that wait until a machine has stopped them.
    stopping: BTreeSet<String>,
    /// Unreadable keys that were logged.
    logged: UnreadableKeys,
    logged_unknown: BTreeSet<String>,
    /// Whether later changes may have invalidated the last decision.
    is_outdated: bool,
    /// Whether missing machines are expected to return.
    awaits_machines: bool,
}

impl Decider {
    /// Follows a mirror. `epoch` is that of the deciding term.
    pub(super) fn new(epoch: Revision, mirror: &Arc<Mirror>) -> Self {
        let mut decider = Self {
            epoch,
            touched_keys: mirror.follow_keys(),
            mirror: Arc::clone(mirror),
            touch_count: 0,
            updated_at: 0,
            cluster: Cluster::new(),
            changed_units: BTreeSet::new(),
            changed_machines: BTreeSet::new(),
            unplaced: BTreeSet::new(),
            missing_desired_state: BTreeSet::new(),
            misplaced: BTreeSet::new(),
            stopping: BTreeSet::new(),
            logged: UnreadableKeys::new(),
            logged_unknown: BTreeSet::new(),
            is_outdated: true,
            awaits_machines: false,
        };
        mirror.read(|picture| decider.start_over(&picture.snapshot));
        decider
    }

    fn read<T>(&mut self, look: impl FnOnce(&mut Self, &Snapshot) -> T) -> T {
        let mirror = Arc::clone(&self.mirror);
        mirror.read(|picture| look(self, &picture.snapshot))
    }

    /// Discards all state and starts from a snapshot.
    fn start_over(&mut self, snapshot: &Snapshot) {
        self.cluster = Cluster::new();
        self.cluster.await_machines(self.awaits_machines);
        self.unplaced.clear();
        self.missing_desired_state.clear();
        self.misplaced.clear();
        self.stopping.clear();
        let unreadable = snapshot.unreadable.keys().filter_map(|key| match key {
            Key::Machine(id) => Some(id),
            _ => None,
        });
        let machines = snapshot.machines.keys().chain(unreadable);
        self.changed_machines = machines.cloned().collect();
        let units = snapshot.bodies.keys().chain(snapshot.placements.keys());
        self.changed_units = units.cloned().collect();
        self.is_outdated = true;
    }

    /// Waits for touched keys and takes them in. Cancel-safe.
    pub(super) async fn next(&mut self) {
        match self.touched_keys.recv().await {
            Some(touched) => self.read(|decider, snapshot| decider.apply(snapshot, touched)),
            // The mirror outlives the decider.
            None => std::future::pending().await,
        }
    }

    /// Takes in touched keys without waiting. Returns whether there were any.
    pub(super) fn apply_touched(&mut self) -> bool {
        self.read(Self::drain)
    }

    fn drain(&mut self, snapshot: &Snapshot) -> bool {
        let before = self.touch_count;
        while let Ok(touched) = self.touched_keys.try_recv() {
            self.apply(snapshot, touched);
        }
        self.touch_count > before
    }

    fn apply(&mut self, snapshot: &Snapshot, touched: KeysTouched) {
        self.touch_count += 1;
        match touched {
            KeysTouched::All => self.start_over(snapshot),
            KeysTouched::These(keys) => keys.into_iter().for_each(|key| self.touch(snapshot, key)),
        }
    }

    /// Only records the change; [`Self::decide`] does the work.
    fn touch(&mut self, snapshot: &Snapshot, key: Key) {
        // A key that became readable or unreadable is always news.
        let has_changed_readability =
            snapshot.unreadable.contains_key(&key) != self.logged.contains_key(&key);
        match key {
            Key::Unit(name) | Key::Desired(name) => self.changed(name),
            // Places written or removed in our term are our own writes, or follow from another change of the
            // unit: they invalidate no decision.
            Key::Placement(name) => {
                let placement = snapshot.placements.get(&name);
                let is_ours = placement.is_none_or(|placement| placement.value.epoch == self.epoch);
                self.is_outdated |= has_changed_readability || !is_ours;
                self.changed_units.insert(name);
            }
            Key::Move(_) => self.is_outdated = true,
            Key::Machine(id)
            | Key::Label(LabelKey { machine: id, .. })
            | Key::Cordon(id)
            | Key::Drain(id) => {
                self.is_outdated = true;
                self.changed_machines.insert(id);
            }
            Key::Global(name) | Key::Run(RunKey { unit: name, .. }) if has_changed_readability => {
                self.changed(name);
            }
            // A unit that must never run twice may have stopped on its earlier machine.
            Key::State(StateKey { unit, .. }) if self.stopping.contains(&unit) => {
                self.changed(unit);
            }
            Key::Global(_)
            | Key::Run(_)
            | Key::State(_)
            | Key::LastReport(_)
            | Key::Leader
            | Key::EngineVersion
            | Key::ReplacesOrder
            | Key::Resume => {}
        }
    }

    fn changed(&mut self, unit: String) {
        self.is_outdated = true;
        self.changed_units.insert(unit);
    }

    pub(super) fn touch_count(&self) -> u64 {
        self.touch_count
    }

    /// Revision up to which everything was taken in.
    pub(super) fn revision(&self) -> Revision {
        self.mirror.read(|picture| picture.snapshot.revision)
    }

    /// Whether keys were taken in since [`Self::decide`] that may invalidate its decision.
    pub(super) fn is_outdated(&self) -> bool {
        self.is_outdated
    }

    /// Whether the leader's key is no longer ours.
    pub(super) fn is_deposed(&self) -> bool {
        self.mirror.read(|picture| {
            let leader = picture.snapshot.leader.as_ref();
            leader.is_none_or(|leader| leader.created != self.epoch)
        })
    }

    /// The version of the newest engine that ever led. An unreadable one counts as newer than all others.
    pub(super) fn newest_version(&self) -> u64 {
        self.mirror.read(|picture| {
            let newest = picture.snapshot.engine_version.as_ref();
            if picture
                .snapshot
                .unreadable
                .contains_key(&Key::EngineVersion)
            {
                return u64::MAX;
            }
            newest.map_or(0, |newest| newest.value.version)
        })
    }

    /// Sets whether missing machines are expected to return. If so, units stay placed on them (`contact`).
    pub(super) fn await_machines(&mut self, awaits: bool) {
        if std::mem::replace(&mut self.awaits_machines, awaits) != awaits {
            self.cluster.await_machines(awaits);
            self.is_outdated = true;
        }
    }

    /// Unreadable keys, except those of the engine, which end the term.
    fn unreadable(&self, snapshot: &Snapshot) -> UnreadableKeys {
        let keys = snapshot.unreadable.iter();
        let keys = keys.filter(|(key, _)| !matches!(key, Key::Leader | Key::EngineVersion));
        let missing = self.missing_desired_state.iter().cloned().map(Key::Desired);
        let misplaced = self.misplaced.iter().cloned().map(Key::Placement);
        let damaged = missing.chain(misplaced).map(|key| (key, None));
        let keys = keys.map(|(key, version)| (key.clone(), *version));
        damaged.chain(keys).collect()
    }

    /// Keys that cannot be read, and unknown keys below the prefix. Each is returned once.
    pub(super) fn left_alone(&mut self) -> (Vec<(Key, Option<u64>)>, Vec<String>) {
        self.read(|decider, snapshot| {
            let keys = decider.unreadable(snapshot);
            let logged = &decider.logged;
            let new = keys.iter().filter(|(key, at)| logged.get(key) != Some(at));
            let new = new.map(|(key, version)| (key.clone(), *version)).collect();
            let unknown = snapshot.unknown.difference(&decider.logged_unknown);
            let unknown = unknown.cloned().collect();
            decider.logged = keys;
            decider.logged_unknown.clone_from(&snapshot.unknown);
            (new, unknown)
        })
    }

    /// How many keys there are of both kinds. A missing desired state counts as one.
    pub(super) fn left_alone_count(&self) -> usize {
        self.mirror.read(|picture| {
            self.unreadable(&picture.snapshot).len() + picture.snapshot.unknown.len()
        })
    }

    pub(super) fn machine_count(&self) -> usize {
        self.mirror.read(|picture| picture.snapshot.machines.len())
    }

    /// How many units need a machine and have none.
    pub(super) fn unplaced_count(&self) -> usize {
        self.unplaced.len()
    }

    /// What must be done now.
    pub(super) fn decide(&mut self) -> Agenda {
        self.read(Self::update_cluster);
        self.is_outdated = false;
        let tasks = self.cluster.plan();
        self.read(|decider, snapshot| {
            if tasks.is_empty() {
                decider.ordered_moves(snapshot)
            } else {
                decider.agenda(snapshot, &tasks)
            }
        })
    }

    /// The moves that users ordered, once nothing else has to be done. Outdated orders are removed.
    fn ordered_moves(&mut self, snapshot: &Snapshot) -> Agenda {
        let asked: Vec<Move> = snapshot
            .moves
            .iter()
            .map(|(unit, order)| Move {
                unit: UnitName::stored(unit.as_str()),
                from: MachineId::new(order.value.from.as_str()),
                to: MachineId::new(order.value.to.as_str()),
            })
            .collect();
        if asked.is_empty() {
            return Agenda::default();
        }
        let tasks = self.cluster.carry_moves(&asked);
        let moved: BTreeSet<&str> = tasks.iter().map(|task| task.unit.as_str()).collect();
        let void = snapshot.moves.iter();
        let void = void.filter(|(unit, _)| !moved.contains(unit.as_str()));
        let void = void.map(|(unit, order)| Step::Unmove {
            unit: unit.clone(),
            order: order.revision,
        });
        self.agenda(snapshot, &tasks).with(void)
    }

    /// Updates the cluster with every unit and machine that has changed.
    fn update_cluster(&mut self, snapshot: &Snapshot) {
        self.drain(snapshot);
        self.updated_at = snapshot.revision;
        for id in std::mem::take(&mut self.changed_machines) {
            let is_there = snapshot.machines.contains_key(&id);
            let machine = is_there.then(|| known_units::machine(snapshot, &id));
            let is_unclear = snapshot.unreadable.contains_key(&Key::Machine(id.clone()));
            // Units that wait for a machine to stop them stop waiting when it is gone.
            self.changed_units.append(&mut self.stopping);
            let id = MachineId::new(id);
            self.cluster.apply(match machine {
                Some(machine) => schedule::ClusterChange::Machine(machine),
                None if is_unclear => schedule::ClusterChange::MachineUnclear(id),
                None => schedule::ClusterChange::MachineGone(id),
            });
        }
        for name in std::mem::take(&mut self.changed_units) {
            self.update_unit(snapshot, &name);
        }
    }

    fn update_unit(&mut self, snapshot: &Snapshot, name: &str) {
        // A unit is written in one transaction, so its desired state is not still to come.
        let is_missing = snapshot.misses_desired_state(name);
        mark(&mut self.missing_desired_state, name, is_missing);
        let is_misplaced = known_units::is_misplaced(snapshot, name);
        mark(&mut self.misplaced, name, is_misplaced);
        let job = known_units::job(snapshot, name);
        let is_stopping = job.as_ref().is_some_and(|job| job.stopping_on.is_some());
        mark(&mut self.stopping, name, is_stopping);
        self.cluster.apply(match job {
            Some(job) => schedule::ClusterChange::Unit(job),
            None => schedule::ClusterChange::UnitGone(UnitName::stored(name)),
        });
        let job = self.cluster.job(name);
        let is_unplaced =
            job.is_some_and(|job| job.placed_on.is_none()) && self.cluster.needs_machine(name);
        mark(&mut self.unplaced, name, is_unplaced);
    }
}

fn mark(set: &mut BTreeSet<String>, name: &str, is_in: bool) {
    if is_in {
        set.insert(name.to_owned());
    } else {
        set.remove(name);
    }
}
