//! The half of the engine that decides: changes of the registry in, steps to write out. No IO and no clock.
//!
//! ```text
//! Change ──▶ take_in ─▶ known      what is needed to write: hashes, revisions of wants and places
//!                 │     Cluster    what decisions are made from
//!                 ▼
//!            decide   ─▶ steps     a plan as steps, in the order in which they may be done
//!            explain  ─▶ reasons   why units are on no machine, some at a time
//! ```
//!
//! What it knows comes from the watch alone, its own writes included. Who asks it waits until it has seen what was
//! written before (`lead`), so nothing is decided twice, and there is one order of events: the store's.

mod known;
mod reasons;
mod steps;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};

use self::known::{File, KnownMachine, KnownPlace, KnownUnit};
use self::reasons::Reasons;
pub(super) use self::steps::{Agenda, Decision};
use crate::keys::Revision;
use crate::registry::{
    Change, Key, Label, Noted, Place, Seen, UnreadableKeys, is_pinned, note_unreadable,
};
use hyperfleet_fleet_model::schedule::{self, Cluster, Machine, MachineId};
use hyperfleet_fleet_model::unit::{DesiredState, Requirements, UnitName};

/// What is known, and what follows from it.
#[derive(Debug, Default)]
pub(super) struct Decider {
    /// Our term: what was placed in it was placed by us.
    epoch: Revision,
    cluster: Cluster,
    units: HashMap<String, KnownUnit>,
    machines: HashMap<String, KnownMachine>,
    /// What has changed since the cluster was told.
    changed_units: BTreeSet<String>,
    changed_machines: BTreeSet<String>,
    changed_whys: BTreeSet<String>,
    /// Keys that hold what is not ours to read.
    foreign: UnreadableKeys,
    /// Units with a file and no desired state: damage, as after a backup that was restored in part.
    missing_desired_state: BTreeSet<String>,
    /// Those that nobody was told of.
    foreign_new: Vec<(Key, Option<u64>)>,
    /// Keys below the prefix that are none of ours.
    unknown: BTreeSet<String>,
    /// Those that nobody was told of.
    unknown_new: Vec<String>,
    reasons: Reasons,
    /// Whether what was decided last may be wrong by now.
    is_outdated: bool,
    /// Whether machines that are not there are taken to come back.
    awaits_machines: bool,
    deposed: bool,
    newest_version: u64,
}

impl Decider {
    /// Knows nothing yet. `epoch` is that of the term in which it decides.
    pub(super) fn new(epoch: Revision) -> Self {
        Self {
            epoch,
            is_outdated: true,
            // Until it is seen that it is we who lead.
            deposed: true,
            ..Self::default()
        }
    }

    /// Takes over what a key is found to be or became. Costs little: what follows is left for [`Self::decide`].
    fn take_in(&mut self, change: Change) {
        let is_news = self.note(&change);
        match change {
            Change::Unit(name, seen) => {
                self.unit(&name).file = seen.here().map(|body| File::of(&name, &body.value));
                self.changed(name);
            }
            Change::Want(name, seen) => {
                self.unit(&name).want = seen.here();
                self.changed(name);
            }
            Change::Place(name, seen) => self.take_place(name, seen, is_news),
            Change::Why(name, seen) => {
                self.unit(&name).why = seen.here().map(|why| why.value);
                self.changed_whys.insert(name);
            }
            Change::Machine(id, seen) => {
                self.machine(&id).configured = seen.here().map(|machine| machine.value);
                self.changed_machine(id);
            }
            Change::Label {
                machine,
                key,
                label,
            } => self.take_label(machine, key, label),
            Change::Global(name, _) | Change::Run { unit: name, .. } => {
                if is_news {
                    self.changed(name);
                }
            }
            Change::State { .. } => {}
            Change::Unknown { name, exists: true } => {
                if self.unknown.insert(name.clone()) {
                    self.unknown_new.push(name);
                }
            }
            Change::Unknown {
                name,
                exists: false,
            } => {
                self.unknown.remove(&name);
            }
            Change::Leader(seen) => {
                let leader = seen.here();
                self.deposed = leader.is_none_or(|leader| leader.created != self.epoch);
            }
            Change::EngineVersion(seen) => {
                // Not ours to read is newer than all that is.
                self.newest_version = match seen {
                    Seen::Here(newest) => newest.value.version,
                    Seen::Gone => 0,
                    Seen::Foreign { .. } => u64::MAX,
                };
            }
        }
    }

    /// What is placed in our term, or no longer placed, is our own doing, or follows from a change of the unit that
    /// is told beside it: it makes nothing wrong that was decided.
    fn take_place(&mut self, name: String, seen: Seen<Place>, is_news: bool) {
        let place = seen.here();
        let is_ours = place.as_ref().is_none_or(|p| p.value.epoch == self.epoch);
        let known = place.as_ref().and_then(KnownPlace::of);
        if let (Some(_), None) = (&place, &known) {
            let key = Key::Place(name.clone());
            self.foreign.insert(key.clone(), None);
            self.foreign_new.push((key, None));
        }
        self.unit(&name).place = known;
        self.is_outdated |= is_news || !is_ours;
        self.changed_units.insert(name);
    }

    fn take_label(&mut self, machine: String, key: String, label: Seen<Label>) {
        let labels = &mut self.machine(&machine).labels;
        match label.here() {
            Some(label) => labels.insert(key, label.value),
            None => labels.remove(&key),
        };
        self.changed_machine(machine);
    }

    /// Keeps which keys cannot be read. Whether that has changed.
    fn note(&mut self, change: &Change) -> bool {
        // If one of these cannot be read, the term ends.
        if matches!(change, Change::Leader(_) | Change::EngineVersion(_)) {
            return false;
        }
        match note_unreadable(&mut self.foreign, change) {
            Noted::Same => false,
            Noted::Readable => true,
            Noted::Unreadable(key, version) => {
                self.foreign_new.push((key, version));
                true
            }
        }
    }

    fn unit(&mut self, name: &str) -> &mut KnownUnit {
        if !self.units.contains_key(name) {
            self.units.insert(name.to_owned(), KnownUnit::default());
        }
        self.units.get_mut(name).expect("it was just put there")
    }

    fn machine(&mut self, id: &str) -> &mut KnownMachine {
        self.machines.entry(id.to_owned()).or_default()
    }

    fn changed(&mut self, unit: String) {
        self.is_outdated = true;
        self.changed_units.insert(unit);
    }

    fn changed_machine(&mut self, id: String) {
        self.is_outdated = true;
        self.changed_machines.insert(id);
    }

    /// Whether something was taken in since [`Self::decide`] that may make wrong what it has said.
    pub(super) fn is_outdated(&self) -> bool {
        self.is_outdated
    }

    /// Whether another leads by now, or nobody.
    pub(super) fn is_deposed(&self) -> bool {
        self.deposed
    }

    /// The version of the newest engine that ever decided.
    pub(super) fn newest_version(&self) -> u64 {
        self.newest_version
    }

    /// Says whether machines that are not there are taken to come back: units stay placed on them then (`contact`).
    pub(super) fn await_machines(&mut self, awaits: bool) {
        if std::mem::replace(&mut self.awaits_machines, awaits) != awaits {
            self.is_outdated = true;
        }
    }

    /// Keys that hold what is not ours to read, each told once.
    pub(super) fn foreign_new(&mut self) -> Vec<(Key, Option<u64>)> {
        std::mem::take(&mut self.foreign_new)
    }

    /// Keys below the prefix that are none of ours, each told once.
    pub(super) fn unknown_new(&mut self) -> Vec<String> {
        std::mem::take(&mut self.unknown_new)
    }

    /// Takes for told what another that knew the same registry has told.
    pub(super) fn was_told(&mut self, before: &Self) {
        let was_missing = |key: &Key| matches!(key, Key::Want(unit) if before.missing_desired_state.contains(unit));
        let is_new = |(key, version): &(Key, Option<u64>)| {
            before.foreign.get(key) != Some(version) && !was_missing(key)
        };
        self.foreign_new.retain(is_new);
        self.unknown_new
            .retain(|name| !before.unknown.contains(name));
    }

    /// How many keys there are of both kinds; a missing one counts as well.
    pub(super) fn foreign_count(&self) -> usize {
        self.foreign.len() + self.unknown.len() + self.missing_desired_state.len()
    }

    /// How many units are to be on a machine and are on none.
    pub(super) fn unplaced_count(&self) -> usize {
        self.reasons.unplaced_count()
    }

    /// What is to be done now, by all that was taken in.
    pub(super) fn decide(&mut self) -> Agenda {
        self.tell_cluster();
        self.is_outdated = false;
        let plan = self.cluster.plan();
        self.agenda(plan.tasks)
    }

    /// Some of what is to be said about units that are on no machine, or to be taken back; none once all is looked
    /// at, for now. To be asked when there is nothing to do.
    pub(super) fn explain(&mut self) -> Option<Vec<Decision>> {
        self.tell_cluster();
        let mut reasons = std::mem::take(&mut self.reasons);
        let is_foreign = |name: &str| {
            self.is_pinned(name) || self.foreign.contains_key(&Key::Why(name.to_owned()))
        };
        let slice = reasons.slice(&self.units, &self.cluster, is_foreign);
        self.reasons = reasons;
        slice
    }

    /// Reasons that were stored may have changed since: some are looked at again at each tick.
    pub(super) fn tick(&mut self) {
        self.reasons.tick();
    }

    /// Tells the cluster what has changed, each unit and machine once.
    fn tell_cluster(&mut self) {
        for id in std::mem::take(&mut self.changed_machines) {
            let known = self.machines.get(&id);
            let metadata = known.and_then(KnownMachine::metadata);
            if known.is_some_and(KnownMachine::is_nothing) {
                self.machines.remove(&id);
            }
            let id = MachineId::new(id);
            self.cluster.apply(match metadata {
                Some(metadata) => schedule::Change::Machine(Machine { id, metadata }),
                None => schedule::Change::MachineGone(id),
            });
            self.reasons.everything_changed();
        }
        for name in std::mem::take(&mut self.changed_units) {
            self.tell_unit(&name);
            self.reasons.everything_changed();
            self.changed_whys.insert(name);
        }
        for name in std::mem::take(&mut self.changed_whys) {
            let known = self.units.get(&name);
            self.reasons.look(&name, known, &self.cluster);
            if known.is_some_and(KnownUnit::is_nothing) {
                self.units.remove(&name);
            }
        }
    }

    fn tell_unit(&mut self, name: &str) {
        self.note_missing_desired_state(name);
        let unit = UnitName::stored(name);
        let known = self.units.get(name);
        match known.and_then(|known| self.standing(name, known)) {
            Some((requirements, desired)) => {
                let machine = known
                    .and_then(|k| k.place.as_ref())
                    .map(|p| p.machine.clone());
                self.cluster.apply(schedule::Change::Unit {
                    unit: unit.clone(),
                    requirements,
                    desired,
                });
                self.cluster
                    .apply(schedule::Change::Placed { unit, machine });
            }
            None => self.cluster.apply(schedule::Change::UnitGone(unit)),
        }
    }

    /// A unit is written whole, so what is seen by now is all that there is of it.
    fn note_missing_desired_state(&mut self, name: &str) {
        let want = Key::Want(name.to_owned());
        let known = self.units.get(name);
        let is_missing = known.is_some_and(|known| known.file.is_some() && known.want.is_none())
            && !self.foreign.contains_key(&want);
        if !is_missing {
            self.missing_desired_state.remove(name);
        } else if self.missing_desired_state.insert(name.to_owned()) {
            self.foreign_new.push((want, None));
        }
    }

    /// As what a unit takes part in decisions; none if in none.
    ///
    /// Where something of it is not ours to read but its place is, it is a unit that asks for nothing of its
    /// machine, so that nothing takes it from there, and that keeps away whom it is known to exclude.
    fn standing(&self, name: &str, known: &KnownUnit) -> Option<(Requirements, DesiredState)> {
        if !self.is_pinned(name) {
            let requirements = known.file.as_ref()?.requirements.clone();
            return Some((requirements, known.desired(name)?));
        }
        known.place.as_ref()?;
        let file = known.file.as_ref();
        let conflicts = file.map_or_else(Vec::new, |file| file.requirements.conflicts.clone());
        let requirements = Requirements {
            conflicts,
            ..Requirements::default()
        };
        Some((requirements, DesiredState::Loaded))
    }

    /// Whether something of a unit is unreadable: then nothing of it is ours to change.
    fn is_pinned(&self, name: &str) -> bool {
        let place = self.units.get(name).and_then(|known| known.place.as_ref());
        let machine = place.map(|place| place.machine.as_str());
        let is_missing = self.missing_desired_state.contains(name);
        is_pinned(&self.foreign, name, is_missing, machine)
    }

    /// Whether a unit must stay where it is, whatever the plan says.
    fn is_fixed(&self, name: &str) -> bool {
        let place = self.units.get(name).and_then(|known| known.place.as_ref());
        let machine_is_unclear = |machine: &MachineId| {
            let id = machine.as_str();
            let is_there = self
                .machines
                .get(id)
                .is_some_and(|m| m.configured.is_some());
            let is_foreign = || self.foreign.contains_key(&Key::Machine(id.to_owned()));
            !is_there && (self.awaits_machines || is_foreign())
        };
        self.is_pinned(name) || place.is_some_and(|place| machine_is_unclear(&place.machine))
    }
}

impl Extend<Change> for Decider {
    fn extend<I: IntoIterator<Item = Change>>(&mut self, changes: I) {
        for change in changes {
            self.take_in(change);
        }
    }
}
