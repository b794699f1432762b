//! A plan as steps, in an order in which each is valid even if others fail.
//!
//! 1. Units leave their machines, in separate portions: a later step may need the place of a unit that leaves. If a
//!    unit stays, because its user has changed it meanwhile, these later steps are not carried out.
//! 2. Units are moved and placed, leaders before their followers. Of steps with the same rank, moves come first,
//!    because these units were running.
//!
//! At the end of the plan no two units on one machine exclude each other. Exclusion is a matter of two units, so the
//! second part is also valid in any order and at every moment. Only a follower depends on another step, the arrival
//! of its leader. So both are never in one portion: if the leader's step were stale, etcd would still carry out the
//! follower's step.
//!
//! A move is one transaction if the plan places no unit on the old machine afterwards. Then no unit needs the place,
//! and it does no harm if the moved unit stays until its turn, or for good because its step is stale. This is always
//! so if the old machine is lost. Otherwise the unit leaves in the first part and is placed in the second: for a
//! moment it is on no machine.

use std::collections::{HashMap, HashSet, VecDeque};

use super::Decider;
use crate::keys::Revision;
use crate::registry::{Moved, Run, RunKey, Snapshot, Step, Stored};
use hyperfleet_fleet_model::schedule::{MachineId, Task};
use hyperfleet_fleet_model::unit::{DesiredState, UnitName};

/// Fewest steps that are carried out before changes are taken in: some transactions.
const PORTION_STEPS_MIN: usize = 400;
/// This part of a long plan is carried out before changes are taken in. It bounds how often a plan of any
/// length is made again.
const PORTION_PART: usize = 8;

/// Steps to carry out, in this order. The rank of a step is 0 for units that leave and 1 for units that come,
/// plus one for each leader in a row that comes first.
#[derive(Debug, Default)]
pub(in crate::engine) struct Agenda(VecDeque<(usize, Step)>);

impl Agenda {
    pub(in crate::engine) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(in crate::engine) fn len(&self) -> usize {
        self.0.len()
    }

    /// Appends steps that are valid at any time.
    pub(super) fn with(mut self, more: impl Iterator<Item = Step>) -> Self {
        self.0.extend(more.map(|step| (1, step)));
        self
    }

    /// The steps that can be carried out before changes are taken in; empty if nothing is left. If one of them
    /// is stale, the rest of the agenda may be invalid.
    pub(in crate::engine) fn portion(&mut self) -> Vec<Step> {
        let most = PORTION_STEPS_MIN.max(self.0.len() / PORTION_PART);
        let first = self.0.front().map(|(rank, _)| *rank);
        let alike = self.0.iter().take_while(|(rank, _)| Some(*rank) == first);
        let count = alike.take(most).count();
        self.0.drain(..count).map(|(_, step)| step).collect()
    }
}

impl Decider {
    pub(super) fn agenda(&self, snapshot: &Snapshot, tasks: &[Task]) -> Agenda {
        let mut leaves: HashMap<&UnitName, (usize, &Task)> = HashMap::new();
        let mut arrivals: HashSet<&UnitName> = HashSet::new();
        let mut last_arrival: HashMap<&MachineId, usize> = HashMap::new();
        for (index, task) in tasks.iter().enumerate() {
            if let Some(machine) = &task.to {
                arrivals.insert(&task.unit);
                last_arrival.insert(machine, index);
            } else {
                leaves.insert(&task.unit, (index, task));
            }
        }
        // The step by which a moved unit leaves.
        let leave_of_moved = |unit: &UnitName| {
            let (index, task) = leaves.get(unit).filter(|_| arrivals.contains(unit))?;
            let last = last_arrival.get(task.from.as_ref()?);
            last.is_none_or(|last| last < index).then_some(*task)
        };
        let (mut leaving, mut coming) = (Vec::new(), Vec::new());
        let mut ranks: HashMap<&str, usize> = HashMap::new();
        for task in tasks {
            match (&task.to, leave_of_moved(&task.unit)) {
                (None, None) => leaving.push((0, self.step(snapshot, task.clone(), None))),
                (None, Some(_)) => {}
                (Some(_), leave) => {
                    let rank = self.rank(&task.unit, &ranks);
                    ranks.insert(task.unit.as_str(), rank);
                    let moved = leaves.get(&task.unit).and_then(|(_, leave)| moved(leave));
                    let mut task = task.clone();
                    if let Some(leave) = leave {
                        task.from.clone_from(&leave.from);
                        task.reason.clone_from(&leave.reason);
                    }
                    coming.push((rank, self.step(snapshot, task, moved)));
                }
            }
        }
        let is_moved =
            |step: &Step| matches!(step, Step::Planned { task, .. } if task.from.is_some());
        coming.sort_by_key(|(rank, step)| (*rank, !is_moved(step)));
        leaving.extend(coming);
        Agenda(leaving.into())
    }

    /// One more than the highest rank of its leaders in the same plan; 1 without any.
    fn rank(&self, unit: &UnitName, ranks: &HashMap<&str, usize>) -> usize {
        let job = self.cluster.job(unit.as_str());
        let leaders = job.iter().flat_map(|job| &job.requirements.machine_of);
        let leaders = leaders.filter_map(|leader| ranks.get(leader.as_str()));
        leaders.max().map_or(1, |highest| highest + 1)
    }

    /// The revision that guards a step: that of the record, or an impossible one if the record is newer than
    /// the decision or gone. The step is stale then, and so are those after it.
    fn guarded<T>(&self, record: Option<&Stored<T>>) -> Revision {
        record.map_or(self.updated_at, |record| {
            record.revision.min(self.updated_at)
        })
    }

    fn step(&self, snapshot: &Snapshot, task: Task, moved: Option<Moved>) -> Step {
        let unit = task.unit.as_str();
        let (body, desired) = (snapshot.bodies.get(unit), snapshot.desired.get(unit));
        let run_on = |machine: &Option<MachineId>| {
            let (machine, unit) = (machine.as_ref()?.to_string(), unit.to_owned());
            let run = snapshot.runs.get(&RunKey { machine, unit })?;
            Some(self.guarded(Some(run)))
        };
        Step::Planned {
            run_from: run_on(&task.from),
            run_to: run_on(&task.to),
            run: Run {
                hash: body.map_or_else(String::new, |body| body.value.hash.clone()),
                state: desired.map_or_else(DesiredState::default, |desired| desired.value.state),
                epoch: self.epoch,
                restarts: desired.map_or(0, |desired| desired.value.restarts),
            },
            desired: self.guarded(desired),
            placement: self.guarded(snapshot.placements.get(unit)),
            task,
            moved,
        }
    }
}

/// What is stored of a move, by the task in which the unit leaves its machine.
fn moved(leave: &Task) -> Option<Moved> {
    Some(Moved {
        from: leave.from.as_ref()?.to_string(),
        reason: leave.reason.to_string(),
    })
}
