//! The same decisions without indexes: every step checks everything.

use std::collections::{BTreeMap, BTreeSet};

use super::given::{Seen, done};
use crate::schedule::{
    Availability, Beside, ClusterChange, Job, Machine, MachineId, Reason, Refusal, Task, can_run,
    globals_on,
};
use crate::unit::UnitName;

#[derive(Debug, Clone, Default)]
pub(super) struct Plain {
    pub(super) machines: BTreeMap<MachineId, Machine>,
    pub(super) unclear: BTreeSet<MachineId>,
    pub(super) awaits_machines: bool,
    pub(super) jobs: BTreeMap<UnitName, Job>,
}

/// What is wrong with a unit's placement.
#[derive(PartialEq)]
pub(super) enum Against {
    Nothing,
    Place(Reason),
    Neighbours(Reason),
}

impl Plain {
    pub(super) fn see(&mut self, seen: Seen) {
        let Some(change) = seen.into_change(|unit| self.jobs.get(unit).cloned()) else {
            return;
        };
        if let ClusterChange::Machine(Machine { id, .. }) | ClusterChange::MachineGone(id) = &change
        {
            self.unclear.remove(id);
        }
        match change {
            ClusterChange::Machine(machine) => {
                _ = self.machines.insert(machine.id.clone(), machine);
            }
            ClusterChange::MachineGone(id) => _ = self.machines.remove(&id),
            ClusterChange::MachineUnclear(id) => {
                self.machines.remove(&id);
                self.unclear.insert(id);
            }
            ClusterChange::Unit(job) => _ = self.jobs.insert(job.name.clone(), job),
            ClusterChange::UnitGone(unit) => _ = self.jobs.remove(&unit),
        }
    }

    /// The changes that make a cluster of the same state.
    pub(super) fn changes(&self) -> Vec<Seen> {
        let machines = self.machines.values().cloned().map(ClusterChange::Machine);
        let units = self.jobs.values().cloned().map(ClusterChange::Unit);
        let unclear = self
            .unclear
            .iter()
            .cloned()
            .map(ClusterChange::MachineUnclear);
        machines
            .chain(unclear)
            .chain(units)
            .map(Seen::Change)
            .collect()
    }

    pub(super) fn placed(&self, machine: &MachineId) -> Vec<&Job> {
        let jobs = self.jobs.values().filter(|job| job.is_placeable());
        jobs.filter(|job| job.placed_on.as_ref() == Some(machine))
            .collect()
    }

    pub(super) fn globals(&self, machine: &MachineId) -> Vec<&UnitName> {
        globals_on(
            &self.machines[machine],
            self.placed(machine),
            self.jobs.values(),
        )
    }

    pub(super) fn neighbours(&self, machine: &MachineId) -> Vec<&Job> {
        let globals = self
            .globals(machine)
            .into_iter()
            .map(|name| &self.jobs[name]);
        self.placed(machine).into_iter().chain(globals).collect()
    }

    pub(super) fn check<'a>(&self, job: &'a Job, machine: &Machine) -> Result<(), Refusal<'a>> {
        let there = Beside::new(self.neighbours(&machine.id));
        can_run(
            &job.name,
            &job.requirements,
            (&machine.id, &machine.metadata),
            &there,
        )
    }

    pub(super) fn against(&self, job: &Job) -> Against {
        let Some(machine) = job
            .placed_on
            .clone()
            .filter(|_| !job.requirements.is_global && !job.is_pinned)
        else {
            return Against::Nothing;
        };
        if !job.desired.is_active() {
            return Against::Place(Reason::Inactive);
        }
        let Some(there) = self.machines.get(&machine) else {
            let may_be_there = self.awaits_machines || self.unclear.contains(&machine);
            if may_be_there || self.follows_pinned(job, &machine, self.jobs.len()) {
                return Against::Nothing;
            }
            return Against::Place(Reason::MachineGone(machine));
        };
        Against::Place(match self.check(job, there) {
            Ok(()) => return Against::Nothing,
            Err(Refusal::MachineId(wanted)) => Reason::OtherMachine {
                machine,
                wanted: wanted.to_owned(),
            },
            Err(Refusal::Metadata(..)) => Reason::Metadata(machine),
            Err(Refusal::MachineOf(peer)) => Reason::NoPeer {
                machine,
                peer: peer.to_owned(),
            },
            Err(Refusal::Cordoned) => unreachable!("a unit that is there stays there"),
            Err(Refusal::Conflict) => {
                let rivals = self.neighbours(&machine).into_iter().filter(|other| {
                    other.name != job.name
                        && (other.requirements.conflicts_with(job.name.as_str())
                            || job.requirements.conflicts_with(other.name.as_str()))
                });
                let with = rivals
                    .map(|other| other.name.clone())
                    .min()
                    .expect("there is one");
                return Against::Neighbours(Reason::Conflict { machine, with });
            }
        })
    }

    /// Whether a unit on a machine follows one there that is pinned, directly or through others.
    fn follows_pinned(&self, job: &Job, machine: &MachineId, steps: usize) -> bool {
        let leaders = job.requirements.machine_of.iter();
        let mut leaders = leaders.filter_map(|leader| self.jobs.get(leader.as_str()));
        leaders.any(|leader| {
            leader.is_placeable()
                && leader.placed_on.as_ref() == Some(machine)
                && steps > 0
                && (leader.is_pinned || self.follows_pinned(leader, machine, steps - 1))
        })
    }

    pub(super) fn follows(&self, follower: &str, leader: &str, steps: usize) -> bool {
        let job = self
            .jobs
            .get(follower)
            .filter(|job| job.is_placeable() && steps > 0);
        job.is_some_and(|job| {
            let mut leaders = job.requirements.machine_of.iter();
            leaders.any(|next| next == leader || self.follows(next, leader, steps - 1))
        })
    }

    /// Whether one must leave for the other.
    fn displaces(&self, other: &Job, job: &Job) -> bool {
        other.name != job.name
            && other.requirements.replaces(job.name.as_str())
            && !job.requirements.replaces(other.name.as_str())
            && !self.follows(other.name.as_str(), job.name.as_str(), self.jobs.len())
    }

    /// The unit for which one must leave its machine. A pinned unit leaves for none, and no unit leaves a
    /// missing machine for another.
    pub(super) fn replacer(&self, job: &Job) -> Option<UnitName> {
        let machine = job.placed_on.as_ref().filter(|_| !job.is_pinned)?;
        self.machines.get(machine)?;
        let there = self.placed(machine).into_iter();
        there
            .filter(|other| self.displaces(other, job))
            .map(|other| other.name.clone())
            .min()
    }

    /// Machines that can run a unit, in order.
    fn able(&self, job: &Job) -> Vec<MachineId> {
        let machines = self
            .machines
            .values()
            .filter(|machine| machine.availability == Availability::Open)
            .filter(|machine| self.check(job, machine).is_ok());
        let mut machines: Vec<_> = machines
            .map(|m| (self.neighbours(&m.id).len(), m.id.clone()))
            .collect();
        machines.sort();
        machines.into_iter().map(|(_, id)| id).collect()
    }

    fn refuge(&self, job: &Job) -> Option<MachineId> {
        let able = self
            .able(job)
            .into_iter()
            .filter(|id| Some(id) != job.placed_on.as_ref());
        let mut able = able.filter(|id| !self.meets(job, id));
        able.next()
    }

    /// Whether a unit would replace one of a machine's units, or one of them the unit.
    fn meets(&self, job: &Job, machine: &MachineId) -> bool {
        let there = self.placed(machine);
        let mut there = there.iter();
        there.any(|other| self.displaces(other, job) || self.displaces(job, other))
    }

    pub(super) fn plan(&self) -> Vec<Task> {
        let mut state = self.clone();
        let mut steps = Vec::new();
        // Units that must leave for those placed here wait for the next plan.
        for step in [Self::settle, Self::place] {
            while let Some(tasks) = step(&state, self) {
                for task in &tasks {
                    state.see(done(task));
                }
                steps.extend(tasks);
                assert!(steps.len() < 1000, "a plan has an end");
            }
        }
        // For each unit the first withdrawal and the last placement, if it ends elsewhere.
        let moved = |unit: &UnitName| self.jobs[unit].placed_on != state.jobs[unit].placed_on;
        let mut tasks = Vec::new();
        for (index, task) in steps.iter().enumerate() {
            let is_same = |other: &Task| other.unit == task.unit;
            let is_kept = match task.to {
                None => !steps[..index].iter().any(is_same),
                Some(_) => !steps[index + 1..].iter().any(is_same),
            };
            if is_kept && moved(&task.unit) {
                tasks.push(task.clone());
            }
        }
        tasks
    }

    fn settle(&self, before: &Self) -> Option<Vec<Task>> {
        let withdraw = |job: &Job, reason| {
            assert!(job.placed_on.is_some(), "it is somewhere");
            Task {
                unit: job.name.clone(),
                from: job.placed_on.clone(),
                to: None,
                reason,
            }
        };
        let jobs = || self.jobs.values();
        let wrong = jobs().find_map(|job| match self.against(job) {
            Against::Place(reason) => Some(vec![withdraw(job, reason)]),
            Against::Nothing | Against::Neighbours(_) => None,
        });
        let crowded = || {
            jobs().find_map(|job| match self.against(job) {
                Against::Neighbours(reason) => Some(vec![withdraw(job, reason)]),
                Against::Nothing | Against::Place(_) => None,
            })
        };
        let displaced = || {
            jobs().filter(|job| job.is_placeable()).find_map(|job| {
                let machine = job.placed_on.clone()?;
                let (together, to, reason) = if let Some(by) = self.replacer(job) {
                    let to = self.refuge(job)?;
                    (vec![job], to, Reason::Replaced { machine, by })
                } else {
                    let together = self.drained(job)?;
                    let to = self.refuge_for_all(&together)?;
                    (together, to, Reason::Drained(machine))
                };
                let leaves = together.iter().map(|job| withdraw(job, reason.clone()));
                let mut tasks: Vec<_> = leaves.collect();
                for job in Self::leaders_first(together) {
                    if !before.has_to_stop(job) {
                        tasks.push(Task {
                            unit: job.name.clone(),
                            from: None,
                            to: Some(to.clone()),
                            reason: reason.clone(),
                        });
                    }
                }
                Some(tasks)
            })
        };
        wrong.or_else(crowded).or_else(displaced)
    }

    /// Whether a singleton is on a machine.
    fn has_to_stop(&self, job: &Job) -> bool {
        let from = self.jobs[&job.name].placed_on.as_ref();
        job.requirements.is_singleton && from.is_some_and(|from| self.machines.contains_key(from))
    }

    /// All units that must leave a drained machine with a unit.
    pub(super) fn drained<'a>(&'a self, job: &'a Job) -> Option<Vec<&'a Job>> {
        let machine = job.placed_on.as_ref()?;
        let is_draining = self.machines.get(machine)?.availability == Availability::Draining;
        if !is_draining || job.is_pinned {
            return None;
        }
        let there = self.placed(machine);
        let mut together = vec![job];
        loop {
            let is_tied = |other: &&&Job| {
                let follows =
                    |one: &Job, two: &Job| one.requirements.machine_of.contains(two.name.as_str());
                !together.contains(*other)
                    && (together.iter()).any(|one| follows(one, other) || follows(other, one))
            };
            match there.iter().find(is_tied) {
                Some(next) => together.push(next),
                None => break,
            }
        }
        together.sort_by_key(|job| &job.name);
        Some(together)
    }

    fn leaders_first(mut rest: Vec<&Job>) -> Vec<&Job> {
        let mut ordered = Vec::new();
        while !rest.is_empty() {
            let follows_none = |job: &&Job| {
                let mut others = rest.iter();
                !others.any(|other| job.requirements.machine_of.contains(other.name.as_str()))
            };
            let next = rest.iter().position(follows_none).unwrap_or(0);
            ordered.push(rest.remove(next));
        }
        ordered
    }

    /// The first machine that takes all of them together.
    fn refuge_for_all(&self, together: &[&Job]) -> Option<MachineId> {
        let [first, ..] = together else { return None };
        let follows_itself = first.requirements.machine_of.contains(first.name.as_str());
        let is_tied = together.len() > 1 || follows_itself;
        let stays = |job: &&Job| job.is_pinned || (is_tied && job.requirements.is_singleton);
        if together.iter().any(stays) {
            return None;
        }
        let takes = |machine: &Machine| {
            let mut there = self.neighbours(&machine.id);
            there.extend(together);
            let beside = Beside::new(there);
            let target = (&machine.id, &machine.metadata);
            together.iter().all(|job| {
                can_run(&job.name, &job.requirements, target, &beside).is_ok()
                    && !self.meets(job, &machine.id)
            })
        };
        let from = together.first()?.placed_on.as_ref();
        let open = self.machines.values().filter(|machine| {
            machine.availability == Availability::Open && Some(&machine.id) != from
        });
        let able = open.filter(|machine| takes(machine));
        let able = able.map(|machine| (self.neighbours(&machine.id).len(), machine.id.clone()));
        able.min().map(|(_, id)| id)
    }

    fn place(&self, before: &Self) -> Option<Vec<Task>> {
        let unplaced = self.jobs.values().filter(|job| job.is_unplaced());
        unplaced.into_iter().find_map(|job| {
            let able = self.able(job);
            let lasting = |id: &&MachineId| job.requirements.is_singleton && !self.meets(job, id);
            let machine = able.iter().find(lasting).or(able.first())?.clone();
            if before.has_to_stop(job) {
                return None;
            }
            let reason = Reason::NotPlaced(job.desired);
            Some(vec![Task {
                unit: job.name.clone(),
                from: None,
                to: Some(machine),
                reason,
            }])
        })
    }
}
