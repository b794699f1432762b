//! A plan as steps that can be written, in an order in which each may be done when it comes, whatever becomes of the
//! others.
//!
//! 1. Units leave their machines, in portions of their own: what comes after may need their room, and does not come
//!    if one of them has stayed because its user has changed it meanwhile.
//! 2. Units are moved and placed, leaders before those that follow them. Of equals, moved ones come first: they ran.
//!
//! All that the second part adds stands together well at the end of the plan, so it does in any order on the way:
//! units exclude each other in pairs. What a follower stands on is that its leader has come, so both never go in one
//! portion: were the leader's step stale, the follower's would be done all the same.
//!
//! A unit that leaves one machine for another is moved, in one transaction, if after its leave nobody comes to the
//! machine that it leaves: nobody has waited for its room then, so it does not matter that it stays until its turn
//! comes, or stays altogether if its step is stale. Of a machine that is gone this is always so. Otherwise it leaves
//! first and is placed later: for a moment it is nowhere.

use std::collections::{HashMap, HashSet, VecDeque};

use super::Decider;
use crate::keys::Revision;
use crate::registry::{Run, Snapshot, Step, Stored};
use hyperfleet_fleet_model::schedule::{MachineId, Reason, Task};
use hyperfleet_fleet_model::unit::{DesiredState, UnitName};

/// Fewest steps that are carried out before changes are looked at: some transactions.
const PORTION_STEPS_MIN: usize = 400;
/// Of a long plan this part is carried out before changes are looked at. They may mean to plan anew: so a plan of
/// any length is made about as many times, and no more.
const PORTION_PART: usize = 8;

/// A step, and why it is to be done.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::engine) struct Decision {
    /// What to write.
    pub(in crate::engine) step: Step,
    /// Why, of those that place and withdraw.
    pub(in crate::engine) reason: Option<Reason>,
    /// When its turn is: 0 for who leaves, 1 for who comes, and one more for each leader in a row that has to come first.
    rank: usize,
}

impl Decision {
    pub(super) fn about_reasons(step: Step) -> Self {
        Self {
            step,
            reason: None,
            rank: 0,
        }
    }
}

/// What is to be done, in this order.
#[derive(Debug, Default)]
pub(in crate::engine) struct Agenda(VecDeque<Decision>);

impl Agenda {
    /// Whether nothing is left.
    pub(in crate::engine) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How much is left.
    pub(in crate::engine) fn len(&self) -> usize {
        self.0.len()
    }

    /// What can be carried out at once, before changes are looked at; none if nothing is left. If one of it turns
    /// out to be stale, the rest of the agenda may be wrong.
    pub(in crate::engine) fn portion(&mut self) -> Vec<Decision> {
        let most = PORTION_STEPS_MIN.max(self.0.len() / PORTION_PART);
        let rank = self.0.front().map_or(0, |first| first.rank);
        let alike = self.0.iter().take_while(|next| next.rank == rank);
        let count = alike.take(most).count();
        self.0.drain(..count).collect()
    }
}

/// The tasks of one unit in a plan: of each unit there is one of a kind at most.
#[derive(Default)]
struct Way<'a> {
    leaves: Option<(usize, &'a MachineId, &'a Reason)>,
    comes: Option<usize>,
}

impl Decider {
    pub(super) fn agenda(&self, known: &Snapshot, tasks: Vec<Task>) -> Agenda {
        let tasks = self.permitted(known, tasks);
        let mut ways: HashMap<&UnitName, Way<'_>> = HashMap::new();
        let mut last_arrival: HashMap<&MachineId, usize> = HashMap::new();
        for (index, task) in tasks.iter().enumerate() {
            let way = ways.entry(task.unit()).or_default();
            match task {
                Task::Withdraw {
                    machine, reason, ..
                } => way.leaves = Some((index, machine, reason)),
                Task::Place { machine, .. } => {
                    way.comes = Some(index);
                    last_arrival.insert(machine, index);
                }
            }
        }
        let is_moved = |way: &Way<'_>| match (way.leaves, way.comes) {
            (Some((index, from, _)), Some(_)) => {
                last_arrival.get(from).is_none_or(|last| *last < index)
            }
            _ => false,
        };
        let (mut leaving, mut coming) = (Vec::new(), Vec::new());
        let mut ranks: HashMap<&str, usize> = HashMap::new();
        for task in &tasks {
            let way = &ways[task.unit()];
            match task {
                Task::Withdraw { reason, .. } if !is_moved(way) => {
                    leaving.push(self.withdrawal(known, task, reason));
                }
                Task::Withdraw { .. } => {}
                Task::Place { reason, .. } => {
                    let moved = way.leaves.filter(|_| is_moved(way));
                    let reason = moved.map_or(reason, |(_, _, reason)| reason);
                    let rank = self.rank(task.unit(), &ranks);
                    ranks.insert(task.unit().as_str(), rank);
                    let step = self.arrival(known, task, moved.map(|(_, from, _)| from));
                    let reason = Some(reason.clone());
                    coming.push(Decision { step, reason, rank });
                }
            }
        }
        coming.sort_by_key(|next| (next.rank, !matches!(next.step, Step::Move { .. })));
        leaving.extend(coming);
        Agenda(leaving.into())
    }

    /// One more than the highest of the leaders that come in the same plan, 1 if none does.
    fn rank(&self, unit: &UnitName, ranks: &HashMap<&str, usize>) -> usize {
        let job = self.cluster.job(unit.as_str());
        let leaders = job.iter().flat_map(|job| &job.requirements.machine_of);
        let leaders = leaders.filter_map(|leader| ranks.get(leader.as_str()));
        leaders.max().map_or(1, |highest| highest + 1)
    }

    /// Without what concerns units that are not ours to touch, and without what was planned because they would have
    /// moved: what follows them, and what would come where they stay.
    fn permitted(&self, known: &Snapshot, tasks: Vec<Task>) -> Vec<Task> {
        let is_damaged = !self.missing_desired_state.is_empty() || !self.misplaced.is_empty();
        if known.foreign.is_empty() && !is_damaged && !self.awaits_machines {
            return tasks;
        }
        let (mut kept, mut staying) = (Vec::new(), HashSet::new());
        let mut machines: HashSet<MachineId> = HashSet::new();
        // In their order: what a task was planned for comes before it.
        for task in tasks {
            let unit = task.unit();
            let job = self.cluster.job(unit.as_str());
            let mut leaders = job.iter().flat_map(|job| &job.requirements.machine_of);
            let is_withdrawal = matches!(task, Task::Withdraw { .. });
            let is_kept = !staying.contains(unit.as_str())
                && !leaders.any(|leader| staying.contains(leader.as_str()))
                && (is_withdrawal || !machines.contains(task.machine()))
                && !self.is_fixed(known, unit.as_str());
            if is_kept {
                kept.push(task);
                continue;
            }
            staying.insert(unit.as_str().to_owned());
            if is_withdrawal {
                machines.insert(task.machine().clone());
            }
        }
        kept
    }

    /// The revision by which a step is guarded: that of the record, or, if the record is newer than what was decided
    /// on or gone, one that fails. The step is stale then, and what was to come after it does not come.
    fn guarded<T>(&self, record: Option<&Stored<T>>) -> Revision {
        record.map_or(self.told_at, |record| record.revision.min(self.told_at))
    }

    fn withdrawal(&self, known: &Snapshot, task: &Task, reason: &Reason) -> Decision {
        let unit = task.unit().as_str();
        let step = Step::Withdraw {
            unit: unit.to_owned(),
            from: task.machine().as_str().to_owned(),
            want: self.guarded(known.wants.get(unit)),
            place: self.guarded(known.places.get(unit)),
        };
        Decision {
            step,
            reason: Some(reason.clone()),
            rank: 0,
        }
    }

    fn arrival(&self, known: &Snapshot, task: &Task, from: Option<&MachineId>) -> Step {
        let unit = task.unit().as_str().to_owned();
        let machine = task.machine().as_str().to_owned();
        let (body, want) = (known.bodies.get(&unit), known.wants.get(&unit));
        let run = Run {
            hash: body.map_or_else(String::new, |body| body.value.hash.clone()),
            state: want.map_or_else(DesiredState::default, |want| want.value.state),
        };
        let want = self.guarded(want);
        match from {
            Some(from) => Step::Move {
                from: from.as_str().to_owned(),
                machine,
                run,
                want,
                place: self.guarded(known.places.get(&unit)),
                unit,
            },
            None => Step::Place {
                unit,
                machine,
                run,
                want,
            },
        }
    }
}
