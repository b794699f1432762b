//! Builders.

use crate::schedule::{Change, Cluster, Machine, MachineId, Plan, Task};
use crate::unit::fleet_section::SECTION;
use crate::unit::{DesiredState, FleetSection, NameParts, Requirements, UnitName, UnitOption};

pub(super) fn unit(name: &str) -> UnitName {
    UnitName::stored(name)
}

pub(super) fn id(machine: &str) -> MachineId {
    MachineId::new(machine)
}

/// A machine with metadata such as `zone=west,disk=ssd`.
pub(super) fn machine(name: &str, metadata: &str) -> Change {
    let pairs = metadata.split(',').filter_map(|pair| pair.split_once('='));
    let metadata = pairs.map(|(key, value)| (key.to_owned(), value.to_owned()));
    Change::Machine(Machine {
        id: id(name),
        metadata: metadata.collect(),
    })
}

/// A launched unit with such lines in its `[X-Fleet]`.
pub(super) fn launched(name: &str, lines: &[&str]) -> Change {
    wanted(name, lines, DesiredState::Launched)
}

pub(super) fn wanted(name: &str, lines: &[&str], desired: DesiredState) -> Change {
    Change::Unit {
        unit: unit(name),
        requirements: requirements(name, lines),
        desired,
    }
}

pub(super) fn placed(name: &str, machine: &str) -> Change {
    Change::Placed {
        unit: unit(name),
        machine: Some(id(machine)),
    }
}

pub(super) fn cluster(changes: impl IntoIterator<Item = Change>) -> Cluster {
    let mut cluster = Cluster::new();
    changes.into_iter().for_each(|change| cluster.apply(change));
    cluster
}

/// Active units that are on no machine, by name.
pub(super) fn unplaced(cluster: &Cluster) -> Vec<UnitName> {
    let units = cluster.names.iter().map(|name| &cluster.units[name].job);
    let units = units.filter(|job| job.is_placeable() && job.placed_on.is_none());
    units.map(|job| job.name.clone()).collect()
}

/// What is seen once a task is carried out.
pub(super) fn seen(task: &Task) -> Change {
    let (unit, machine) = (task.unit().clone(), task.machine().clone());
    let machine = matches!(task, Task::Place { .. }).then_some(machine);
    Change::Placed { unit, machine }
}

/// `+unit@machine` and `-unit@machine`, in order.
pub(super) fn shown(plan: &Plan) -> Vec<String> {
    let task = |task: &Task| {
        let sign = if matches!(task, Task::Place { .. }) {
            '+'
        } else {
            '-'
        };
        format!("{sign}{}@{}", task.unit(), task.machine())
    };
    plan.tasks.iter().map(task).collect()
}

/// What such lines in the `[X-Fleet]` of a unit ask for.
pub(super) fn requirements(name: &str, lines: &[&str]) -> Requirements {
    let lines = lines.iter().filter_map(|line| line.split_once('='));
    let options: Vec<_> = lines
        .map(|(option, value)| UnitOption::new(SECTION, option, value))
        .collect();
    FleetSection::of(&options).requirements(NameParts::of(name))
}
