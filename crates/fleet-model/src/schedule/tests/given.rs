//! Builders.

use crate::schedule::{Availability, Cluster, ClusterChange, Job, Machine, MachineId, Task};
use crate::unit::fleet_section::SECTION;
use crate::unit::{DesiredState, FleetSection, NameParts, Requirements, UnitName, UnitOption};

pub(super) fn unit(name: &str) -> UnitName {
    UnitName::stored(name)
}

pub(super) fn id(machine: &str) -> MachineId {
    MachineId::new(machine)
}

/// A change of a machine or a unit, or of one part of a unit while the rest stays.
#[derive(Debug, Clone)]
pub(super) enum Seen {
    Change(ClusterChange),
    Wanted(UnitName, Requirements, DesiredState),
    /// Has no effect for an unknown unit.
    Placed(UnitName, Option<MachineId>),
}

impl Seen {
    /// The change, unless it is about a unit that `known` does not know.
    pub(super) fn into_change(
        self,
        known: impl FnOnce(&str) -> Option<Job>,
    ) -> Option<ClusterChange> {
        Some(match self {
            Self::Change(change) => change,
            Self::Wanted(name, requirements, desired) => {
                let placed_on = known(name.as_str()).and_then(|job| job.placed_on);
                ClusterChange::Unit(Job::new(name, requirements, desired, placed_on))
            }
            Self::Placed(name, placed_on) => ClusterChange::Unit(Job {
                placed_on,
                ..known(name.as_str())?
            }),
        })
    }
}

pub(super) fn see(cluster: &mut Cluster, seen: Seen) {
    if let Some(change) = seen.into_change(|unit| cluster.job(unit).cloned()) {
        cluster.apply(change);
    }
}

/// A machine with metadata such as `zone=west,disk=ssd`.
pub(super) fn machine(name: &str, metadata: &str) -> Seen {
    unavailable(name, metadata, Availability::Open)
}

/// A machine that does not take every unit.
pub(super) fn unavailable(name: &str, metadata: &str, availability: Availability) -> Seen {
    let pairs = metadata.split(',').filter_map(|pair| pair.split_once('='));
    let metadata = pairs.map(|(key, value)| (key.to_owned(), value.to_owned()));
    Seen::Change(ClusterChange::Machine(Machine {
        availability,
        ..Machine::new(id(name), metadata.collect())
    }))
}

/// A launched unit with these lines in `[X-Fleet]`.
pub(super) fn launched(name: &str, lines: &[&str]) -> Seen {
    desired_change(name, lines, DesiredState::Launched)
}

pub(super) fn desired_change(name: &str, lines: &[&str], desired: DesiredState) -> Seen {
    Seen::Wanted(unit(name), requirements(name, lines), desired)
}

pub(super) fn placed(name: &str, machine: &str) -> Seen {
    Seen::Placed(unit(name), Some(id(machine)))
}

pub(super) fn cluster(all: impl IntoIterator<Item = Seen>) -> Cluster {
    let mut cluster = Cluster::new();
    all.into_iter().for_each(|seen| see(&mut cluster, seen));
    cluster
}

/// Active units that are on no machine, by name.
pub(super) fn unplaced(cluster: &Cluster) -> Vec<UnitName> {
    let units = cluster.names.iter().map(|name| &cluster.units[name].job);
    let units = units.filter(|job| job.is_placeable() && job.placed_on.is_none());
    units.map(|job| job.name.clone()).collect()
}

/// The change that follows a task.
pub(super) fn done(task: &Task) -> Seen {
    Seen::Placed(task.unit.clone(), task.to.clone())
}

/// `+unit@machine` and `-unit@machine`, in order.
pub(super) fn shown(plan: &[Task]) -> Vec<String> {
    let task = |task: &Task| match (&task.from, &task.to) {
        (None, Some(to)) => format!("+{}@{to}", task.unit),
        (Some(from), None) => format!("-{}@{from}", task.unit),
        other => panic!("a plan does one or the other: {other:?}"),
    };
    plan.iter().map(task).collect()
}

/// The requirements of these lines in `[X-Fleet]`.
pub(super) fn requirements(name: &str, lines: &[&str]) -> Requirements {
    let lines = lines.iter().filter_map(|line| line.split_once('='));
    let options: Vec<_> = lines
        .map(|(option, value)| UnitOption::new(SECTION, option, value))
        .collect();
    FleetSection::of(&options).requirements(NameParts::of(name))
}
