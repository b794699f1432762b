//! The half of the engine that decides: keys that were touched in, steps to write out. No IO and no clock.
//!
//! ```text
//! mirror ─▶ take ─▶ changed      units and machines that the cluster is to be told of
//!    │               │
//!    └── records ──▶ Cluster     what decisions are made from
//!                    ▼
//!            decide   ─▶ steps     a plan as steps, in the order in which they may be done
//!            explain  ─▶ reasons   why units are on no machine, some at a time
//! ```
//!
//! Records are the mirror's, own writes included. `lead` waits until the mirror has seen what was written before, so
//! nothing is decided twice, and there is one order of events: the store's. The mirror may be ahead of what the
//! cluster was told: a step about a record that is newer than that is guarded by a revision that fails.

mod reasons;
mod steps;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::mpsc::UnboundedReceiver;

use self::reasons::Reasons;
pub(super) use self::steps::Agenda;
use crate::keys::Revision;
use crate::known_units;
use crate::mirror::{KeysTouched, Mirror};
use crate::registry::{Key, LabelKey, RunKey, Snapshot, StateKey, Step, UnreadableKeys};
use hyperfleet_fleet_model::schedule::{self, Cluster, MachineId, Move};
use hyperfleet_fleet_model::unit::UnitName;

/// What follows from the mirror.
#[derive(Debug)]
pub(super) struct Decider {
    /// Our term: what was placed in it was placed by us.
    epoch: Revision,
    mirror: Arc<Mirror>,
    news: UnboundedReceiver<KeysTouched>,
    /// How often something was touched.
    news_count: u64,
    /// The cluster was told what there was at this revision.
    told_at: Revision,
    cluster: Cluster,
    /// What has changed since the cluster was told.
    changed_units: BTreeSet<String>,
    changed_machines: BTreeSet<String>,
    changed_whys: BTreeSet<String>,
    /// Units with a file and no desired state: damage, as after a backup that was restored in part.
    missing_desired_state: BTreeSet<String>,
    /// Units that are placed on what can be no machine.
    misplaced: BTreeSet<String>,
    /// Units that wait until a machine has stopped them.
    stopping: BTreeSet<String>,
    /// Keys that the log has named.
    logged: UnreadableKeys,
    logged_unknown: BTreeSet<String>,
    reasons: Reasons,
    /// Whether what was decided last may be wrong by now.
    is_outdated: bool,
    /// Whether machines that are not there are taken to come back.
    awaits_machines: bool,
}

impl Decider {
    /// Follows a mirror. `epoch` is that of the term in which it decides.
    pub(super) fn new(epoch: Revision, mirror: &Arc<Mirror>) -> Self {
        let mut decider = Self {
            epoch,
            news: mirror.follow_keys(),
            mirror: Arc::clone(mirror),
            news_count: 0,
            told_at: 0,
            cluster: Cluster::new(),
            changed_units: BTreeSet::new(),
            changed_machines: BTreeSet::new(),
            changed_whys: BTreeSet::new(),
            missing_desired_state: BTreeSet::new(),
            misplaced: BTreeSet::new(),
            stopping: BTreeSet::new(),
            logged: UnreadableKeys::new(),
            logged_unknown: BTreeSet::new(),
            reasons: Reasons::default(),
            is_outdated: true,
            awaits_machines: false,
        };
        mirror.read(|picture| decider.start_over(&picture.known));
        decider
    }

    fn read<T>(&mut self, look: impl FnOnce(&mut Self, &Snapshot) -> T) -> T {
        let mirror = Arc::clone(&self.mirror);
        mirror.read(|picture| look(self, &picture.known))
    }

    /// Knows nothing but what there is now.
    fn start_over(&mut self, known: &Snapshot) {
        self.cluster = Cluster::new();
        self.cluster.await_machines(self.awaits_machines);
        self.reasons = Reasons::default();
        self.missing_desired_state.clear();
        self.misplaced.clear();
        self.stopping.clear();
        let unreadable = known.foreign.keys().filter_map(|key| match key {
            Key::Machine(id) => Some(id),
            _ => None,
        });
        let machines = known.machines.keys().chain(unreadable);
        self.changed_machines = machines.cloned().collect();
        let units = known.bodies.keys().chain(known.places.keys());
        self.changed_units = units.chain(known.whys.keys()).cloned().collect();
        self.is_outdated = true;
    }

    /// Waits until something is touched, and takes it in. May be given up half-way.
    pub(super) async fn next(&mut self) {
        match self.news.recv().await {
            Some(touched) => self.read(|decider, known| decider.take(known, touched)),
            // The mirror lives as long as this.
            None => std::future::pending().await,
        }
    }

    /// Takes in what was touched, without waiting for more. Whether anything was.
    pub(super) fn take_in(&mut self) -> bool {
        self.read(Self::drain)
    }

    fn drain(&mut self, known: &Snapshot) -> bool {
        let before = self.news_count;
        while let Ok(touched) = self.news.try_recv() {
            self.take(known, touched);
        }
        self.news_count > before
    }

    fn take(&mut self, known: &Snapshot, touched: KeysTouched) {
        self.news_count += 1;
        match touched {
            KeysTouched::All => self.start_over(known),
            KeysTouched::These(keys) => keys.into_iter().for_each(|key| self.touch(known, key)),
        }
    }

    /// Costs little: what follows is left for [`Self::decide`].
    fn touch(&mut self, known: &Snapshot, key: Key) {
        // That a key can be read, or cannot any more, is news whatever key it is.
        let is_news = known.foreign.contains_key(&key) != self.logged.contains_key(&key);
        match key {
            Key::Unit(name) | Key::Want(name) => self.changed(name),
            // What is placed in our term, or no longer placed, is our own doing, or follows from a change of the unit
            // that is told beside it: it makes nothing wrong that was decided.
            Key::Place(name) => {
                let place = known.places.get(&name);
                let is_ours = place.is_none_or(|place| place.value.epoch == self.epoch);
                self.is_outdated |= is_news || !is_ours;
                self.changed_units.insert(name);
            }
            Key::Move(_) => self.is_outdated = true,
            Key::Why(name) => _ = self.changed_whys.insert(name),
            Key::Machine(id)
            | Key::Label(LabelKey { machine: id, .. })
            | Key::Cordon(id)
            | Key::Drain(id) => {
                self.is_outdated = true;
                self.changed_machines.insert(id);
            }
            Key::Global(name) | Key::Run(RunKey { unit: name, .. }) if is_news => {
                self.changed(name);
            }
            // A unit that must never run twice may have stopped where it was.
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

    /// How often something was touched.
    pub(super) fn news_count(&self) -> u64 {
        self.news_count
    }

    /// Up to which revision all is known.
    pub(super) fn seen(&self) -> Revision {
        self.mirror.read(|picture| picture.known.revision)
    }

    /// Whether something was taken in since [`Self::decide`] that may make wrong what it has said.
    pub(super) fn is_outdated(&self) -> bool {
        self.is_outdated
    }

    /// Whether another leads by now, or nobody.
    pub(super) fn is_deposed(&self) -> bool {
        self.mirror.read(|picture| {
            let leader = picture.known.leader.as_ref();
            leader.is_none_or(|leader| leader.created != self.epoch)
        })
    }

    /// The version of the newest engine that ever decided; one that cannot be read is newer than all others.
    pub(super) fn newest_version(&self) -> u64 {
        self.mirror.read(|picture| {
            let newest = picture.known.engine_version.as_ref();
            if picture.known.foreign.contains_key(&Key::EngineVersion) {
                return u64::MAX;
            }
            newest.map_or(0, |newest| newest.value.version)
        })
    }

    /// Says whether machines that are not there are taken to come back: units stay placed on them then (`contact`).
    pub(super) fn await_machines(&mut self, awaits: bool) {
        if std::mem::replace(&mut self.awaits_machines, awaits) != awaits {
            self.cluster.await_machines(awaits);
            self.is_outdated = true;
        }
    }

    /// Keys that cannot be read, those of the engine apart, which end the term.
    fn unreadable(&self, known: &Snapshot) -> UnreadableKeys {
        let keys = known.foreign.iter();
        let keys = keys.filter(|(key, _)| !matches!(key, Key::Leader | Key::EngineVersion));
        let missing = self.missing_desired_state.iter().cloned().map(Key::Want);
        let misplaced = self.misplaced.iter().cloned().map(Key::Place);
        let damaged = missing.chain(misplaced).map(|key| (key, None));
        let keys = keys.map(|(key, version)| (key.clone(), *version));
        damaged.chain(keys).collect()
    }

    /// Keys that cannot be read, and keys below the prefix that are none of ours, each told once.
    pub(super) fn left_alone(&mut self) -> (Vec<(Key, Option<u64>)>, Vec<String>) {
        self.read(|decider, known| {
            let keys = decider.unreadable(known);
            let logged = &decider.logged;
            let new = keys.iter().filter(|(key, at)| logged.get(key) != Some(at));
            let new = new.map(|(key, version)| (key.clone(), *version)).collect();
            let unknown = known.unknown.difference(&decider.logged_unknown);
            let unknown = unknown.cloned().collect();
            decider.logged = keys;
            decider.logged_unknown.clone_from(&known.unknown);
            (new, unknown)
        })
    }

    /// How many keys there are of both kinds; a missing one counts as well.
    pub(super) fn left_alone_count(&self) -> usize {
        self.mirror
            .read(|picture| self.unreadable(&picture.known).len() + picture.known.unknown.len())
    }

    /// How many machines are members.
    pub(super) fn machine_count(&self) -> usize {
        self.mirror.read(|picture| picture.known.machines.len())
    }

    /// How many units are to be on a machine and are on none.
    pub(super) fn unplaced_count(&self) -> usize {
        self.reasons.unplaced_count()
    }

    /// What is to be done now, by all that was touched.
    pub(super) fn decide(&mut self) -> Agenda {
        self.read(Self::tell_cluster);
        self.is_outdated = false;
        let tasks = self.cluster.plan();
        self.read(|decider, known| {
            if tasks.is_empty() {
                decider.asked_moves(known)
            } else {
                decider.agenda(known, &tasks)
            }
        })
    }

    /// Moves that users have asked for, once nothing else is to be done; orders that are no longer right are taken back.
    fn asked_moves(&mut self, known: &Snapshot) -> Agenda {
        let asked: Vec<Move> = known
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
        let void = known.moves.iter();
        let void = void.filter(|(unit, _)| !moved.contains(unit.as_str()));
        let void = void.map(|(unit, order)| Step::Unmove {
            unit: unit.clone(),
            order: order.revision,
        });
        self.agenda(known, &tasks).with(void)
    }

    /// Some of what is to be said about units that are on no machine, or to be taken back; none once all is looked
    /// at, for now. To be asked when there is nothing to do.
    pub(super) fn explain(&mut self) -> Option<Vec<Step>> {
        self.read(|decider, known| {
            decider.tell_cluster(known);
            let mut reasons = std::mem::take(&mut decider.reasons);
            let is_unreadable = |name: &str| {
                let why = Key::Why(name.to_owned());
                known_units::is_pinned(known, name) || known.foreign.contains_key(&why)
            };
            let slice = reasons.slice(known, &decider.cluster, is_unreadable);
            decider.reasons = reasons;
            slice
        })
    }

    /// Reasons that were stored may have changed since: some are looked at again at each tick.
    pub(super) fn tick(&mut self) {
        self.reasons.tick();
    }

    /// Tells the cluster what has changed, each unit and machine once.
    fn tell_cluster(&mut self, known: &Snapshot) {
        self.drain(known);
        self.told_at = known.revision;
        for id in std::mem::take(&mut self.changed_machines) {
            let is_there = known.machines.contains_key(&id);
            let machine = is_there.then(|| known_units::machine(known, &id));
            let is_unclear = known.foreign.contains_key(&Key::Machine(id.clone()));
            // Why a unit has not left a machine is no longer true, or not yet stored, once draining ends or begins.
            let units = self.cluster.units_on(&id);
            self.changed_whys.extend(units.map(ToString::to_string));
            // Units that wait for the machine to stop them need not do so once it is gone.
            self.changed_units.append(&mut self.stopping);
            let id = MachineId::new(id);
            self.cluster.apply(match machine {
                Some(machine) => schedule::Change::Machine(machine),
                None if is_unclear => schedule::Change::MachineUnclear(id),
                None => schedule::Change::MachineGone(id),
            });
            self.reasons.everything_changed();
        }
        for name in std::mem::take(&mut self.changed_units) {
            self.tell_unit(known, &name);
            self.reasons.everything_changed();
            self.changed_whys.insert(name);
        }
        for name in std::mem::take(&mut self.changed_whys) {
            self.reasons.look(&name, known, &self.cluster);
        }
    }

    fn tell_unit(&mut self, known: &Snapshot, name: &str) {
        // A unit is written whole, so what is seen by now is all that there is of it.
        let is_missing = known.misses_desired_state(name);
        mark(&mut self.missing_desired_state, name, is_missing);
        let is_misplaced = known_units::is_misplaced(known, name);
        mark(&mut self.misplaced, name, is_misplaced);
        let job = known_units::job(known, name);
        let is_stopping = job.as_ref().is_some_and(|job| job.stopping_on.is_some());
        mark(&mut self.stopping, name, is_stopping);
        self.cluster.apply(match job {
            Some(job) => schedule::Change::Unit(job),
            None => schedule::Change::UnitGone(UnitName::stored(name)),
        });
    }
}

fn mark(set: &mut BTreeSet<String>, name: &str, is_in: bool) {
    if is_in {
        set.insert(name.to_owned());
    } else {
        set.remove(name);
    }
}
