//! Makes a plan step by step:
//!
//! 1. Withdraw units that may not run where they are, in the order of their names. Units that only exclude each
//!    other come last, so that no unit leaves because of one that must leave anyway.
//! 2. Move the first unit, by name, that must leave for another one and has a machine to go to. Then start again
//!    with 1.
//! 3. Place units that are on no machine and can run on one, in the order of their names. A follower can run
//!    nowhere before its leaders are placed, so these come first.
//!
//! Every step sees the changes of the steps before it. Afterwards the state is reset: the results are observed
//! and applied like every other change.

use std::collections::{BTreeSet, HashMap};

use super::cluster::Cluster;
use super::machine_id::MachineId;
use super::model::Task;
use super::reason::Reason;
use super::rules::Refusal;
use crate::unit::UnitName;

/// The verdict on a unit's placement.
enum PlacementVerdict {
    Right,
    /// It needs a machine and is on none.
    Unplaced,
    /// It must leave its machine.
    Wrong(MachineId, Reason),
    /// It must leave its machine, or another unit must.
    Crowded(MachineId, Reason),
    /// It leaves its machine if it has another: for another unit, or because the machine is drained.
    Displaced(MachineId, Reason),
}

/// A plan in progress.
#[derive(Default)]
struct Draft {
    tasks: Vec<Task>,
    /// Where units were before each step.
    before: Vec<(UnitName, Option<MachineId>)>,
    crowded: BTreeSet<UnitName>,
    displaced: BTreeSet<UnitName>,
    unplaced: BTreeSet<UnitName>,
}

impl Cluster {
    /// The changes to make, in this order, with reasons. A unit is taken from a machine at most once, placed at
    /// most once, and never placed where it was taken from. The state does not change: another call returns the
    /// same plan.
    ///
    /// It costs what has changed since the last plan and the size of the plan. After an empty plan the next
    /// calls cost nothing until something changes.
    ///
    /// # Guarantees
    /// Carried out, the plan breaks no requirement, and leaves nothing to plan except what `Replaces` requires
    /// of units that it has brought together. A unit that may stay where it is stays. A pinned unit stays even
    /// where it may not, and others make way for it.
    pub fn plan(&mut self) -> Vec<Task> {
        let mut draft = Draft::default();
        self.settle(&mut draft);
        let later = self.place(&mut draft);
        for (unit, machine) in draft.before.into_iter().rev() {
            self.set_placement(&unit, machine);
        }
        self.suspects.extend(later);
        condensed(draft.tasks)
    }

    /// Steps 1 and 2. Collects unplaced units on the way.
    fn settle(&mut self, draft: &mut Draft) {
        loop {
            while let Some(name) = self.suspects.pop_first() {
                match self.placement_verdict(&name) {
                    PlacementVerdict::Right => {}
                    PlacementVerdict::Unplaced => _ = draft.unplaced.insert(name),
                    PlacementVerdict::Wrong(machine, reason) => {
                        self.withdraw(draft, name, machine, reason);
                    }
                    PlacementVerdict::Crowded(..) => _ = draft.crowded.insert(name),
                    PlacementVerdict::Displaced(..) => _ = draft.displaced.insert(name),
                }
            }
            if let Some(name) = draft.crowded.pop_first() {
                match self.placement_verdict(&name) {
                    PlacementVerdict::Crowded(machine, reason) => {
                        self.withdraw(draft, name, machine, reason);
                    }
                    _ => self.suspect(&name),
                }
            } else if let Some(name) = draft.displaced.pop_first() {
                match self.placement_verdict(&name) {
                    PlacementVerdict::Displaced(machine, reason) => {
                        self.displace(draft, &name, &machine, &reason);
                    }
                    _ => self.suspect(&name),
                }
            } else {
                return;
            }
        }
    }

    /// Step 3. Returns the units that must be checked next time.
    fn place(&mut self, draft: &mut Draft) -> BTreeSet<UnitName> {
        let mut later = BTreeSet::new();
        while let Some(name) = draft.unplaced.pop_first() {
            if !self.is_unplaced(&name) {
                continue;
            }
            let reason = Reason::NotPlaced(self.units[&name].job.desired);
            let chosen = self.choose(&name, None);
            let chosen = chosen.filter(|_| !self.has_to_stop(draft, &name));
            if let Some(machine) = chosen {
                self.assign(draft, name, machine, reason);
            } else {
                self.wait(&name);
            }
            while let Some(name) = self.suspects.pop_first() {
                if self.is_unplaced(&name) {
                    draft.unplaced.insert(name);
                } else {
                    later.insert(name);
                }
            }
        }
        later
    }

    fn is_unplaced(&self, name: &UnitName) -> bool {
        let unit = self.units.get(name);
        unit.is_some_and(|unit| unit.job.is_unplaced())
    }

    fn withdraw(&mut self, draft: &mut Draft, unit: UnitName, machine: MachineId, reason: Reason) {
        self.change(draft, &unit, None);
        draft.tasks.push(Task {
            unit,
            from: Some(machine),
            to: None,
            reason,
        });
    }

    fn assign(&mut self, draft: &mut Draft, unit: UnitName, machine: MachineId, reason: Reason) {
        self.change(draft, &unit, Some(machine.clone()));
        draft.tasks.push(Task {
            unit,
            from: None,
            to: Some(machine),
            reason,
        });
    }

    fn displace(
        &mut self,
        draft: &mut Draft,
        unit: &UnitName,
        machine: &MachineId,
        reason: &Reason,
    ) {
        let (moved, to) = if matches!(reason, Reason::Drained(_)) {
            let together = self.companions(unit, machine);
            let to = self.choose_for_all(&together, machine);
            (together, to)
        } else {
            let to = self.choose(unit, Some(machine));
            (BTreeSet::from([unit.clone()]), to)
        };
        let Some(to) = to else {
            self.wait(unit);
            return;
        };
        for unit in &moved {
            self.withdraw(draft, unit.clone(), machine.clone(), reason.clone());
        }
        for unit in self.leaders_first(moved) {
            if !self.has_to_stop(draft, &unit) {
                self.assign(draft, unit, to.clone(), reason.clone());
            }
        }
    }

    /// Whether a singleton is withdrawn from a machine by this very plan: the machine must stop it before it is
    /// placed.
    fn has_to_stop(&self, draft: &Draft, unit: &UnitName) -> bool {
        let is_singleton = self.units[unit].job.requirements.is_singleton;
        let first = draft.before.iter().find(|(name, _)| name == unit);
        let was_on = first.and_then(|(_, machine)| machine.as_ref());
        is_singleton && was_on.is_some_and(|machine| self.machines.contains_key(machine))
    }

    fn change(&mut self, draft: &mut Draft, unit: &UnitName, to: Option<MachineId>) {
        let before = self.set_placement(unit, to);
        draft.before.push((unit.clone(), before));
    }

    fn placement_verdict(&self, name: &UnitName) -> PlacementVerdict {
        let Some(unit) = self
            .units
            .get(name)
            .filter(|unit| !unit.job.requirements.is_global && !unit.job.is_pinned)
        else {
            return PlacementVerdict::Right;
        };
        let is_active = unit.job.desired.is_active();
        let Some(machine) = unit.job.placed_on.clone() else {
            return if unit.job.is_unplaced() {
                PlacementVerdict::Unplaced
            } else {
                PlacementVerdict::Right
            };
        };
        if !is_active {
            return PlacementVerdict::Wrong(machine, Reason::Inactive);
        }
        let Some(node) = self.machines.get(&machine) else {
            return if self.stays(name, &machine) {
                PlacementVerdict::Right
            } else {
                PlacementVerdict::Wrong(machine.clone(), Reason::MachineGone(machine))
            };
        };
        match self.judge(unit, &machine, node) {
            Ok(()) => self.meeting(name, machine),
            Err(refusal) => self.refused(name, machine, refusal),
        }
    }

    /// Whether an active unit stays on a missing machine, because the machine may return or the unit follows a
    /// pinned one.
    fn stays(&self, name: &UnitName, machine: &MachineId) -> bool {
        if self.awaits_machines || self.unclear.contains(machine) {
            return true;
        }
        let (mut seen, mut ahead) = (BTreeSet::new(), vec![name.as_str()]);
        while let Some(name) = ahead.pop() {
            let job = self.job(name).filter(|job| job.is_placeable());
            let Some(job) = job.filter(|job| job.placed_on.as_ref() == Some(machine)) else {
                continue;
            };
            if job.is_pinned {
                return true;
            }
            let leaders = job.requirements.machine_of.iter().map(String::as_str);
            ahead.extend(leaders.filter(|leader| seen.insert(*leader)));
        }
        false
    }

    fn meeting(&self, name: &UnitName, machine: MachineId) -> PlacementVerdict {
        match self.replacer(name, &machine).cloned() {
            Some(by) => {
                PlacementVerdict::Displaced(machine.clone(), Reason::Replaced { machine, by })
            }
            None if self.is_draining(&machine) => {
                PlacementVerdict::Displaced(machine.clone(), Reason::Drained(machine))
            }
            None => PlacementVerdict::Right,
        }
    }

    fn refused(
        &self,
        name: &UnitName,
        machine: MachineId,
        refusal: Refusal<'_>,
    ) -> PlacementVerdict {
        let on = machine.clone();
        let reason = match refusal {
            Refusal::MachineId(wanted) => Reason::OtherMachine {
                machine,
                wanted: wanted.to_owned(),
            },
            Refusal::Metadata(..) => Reason::Metadata(machine),
            Refusal::MachineOf(peer) => Reason::NoPeer {
                machine,
                peer: peer.to_owned(),
            },
            // Units that are placed on a machine stay when it is cordoned.
            Refusal::Cordoned => return PlacementVerdict::Right,
            Refusal::Conflict => {
                let first = self.rivals(name, &machine).min();
                let with = first.unwrap_or(name).clone();
                return PlacementVerdict::Crowded(on, Reason::Conflict { machine, with });
            }
        };
        PlacementVerdict::Wrong(on, reason)
    }
}

/// One task pair per unit: from its first machine to its last. A unit that would return stays.
fn condensed(tasks: Vec<Task>) -> Vec<Task> {
    if tasks.iter().all(|task| task.to.is_some()) {
        return tasks;
    }
    let mut ends: HashMap<UnitName, (usize, usize)> = HashMap::new();
    for (index, task) in tasks.iter().enumerate() {
        let (_, last) = ends.entry(task.unit.clone()).or_insert((index, index));
        *last = index;
    }
    let is_kept = |index: usize, task: &Task| {
        let (first, last) = ends[&task.unit];
        let comes_back = tasks[last].to.is_some() && tasks[first].from == tasks[last].to;
        let end = if task.to.is_some() { last } else { first };
        index == end && !comes_back
    };
    let kept: Vec<_> = (tasks.iter().enumerate())
        .map(|(index, task)| is_kept(index, task))
        .collect();
    tasks
        .into_iter()
        .zip(kept)
        .filter_map(|(task, kept)| kept.then_some(task))
        .collect()
}
