//! Builders.

use crate::domain::schedule::{Change, Cluster, Desired, Machine, MachineId, Plan, Task, UnitName};
use crate::domain::unit::{Glob, MachineIdentity, Requirements};

pub(super) fn unit(name: &str) -> UnitName {
    UnitName::new(name)
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
    wanted(name, lines, Desired::Launched)
}

pub(super) fn wanted(name: &str, lines: &[&str], desired: Desired) -> Change {
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

/// Reads lines of `[X-Fleet]`, as far as the vectors need it: deprecated spellings, lists in
/// quotes, specifiers. The real reader is not under test here.
pub(super) fn requirements(name: &str, lines: &[&str]) -> Requirements {
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let (prefix, instance) = stem.split_once('@').unwrap_or((stem, ""));
    let specifiers = [("%n", name), ("%N", stem), ("%p", prefix), ("%i", instance)];
    let values = |option: &str| -> Vec<String> {
        let lines = lines.iter().filter_map(|line| line.split_once('='));
        let values = lines
            .filter(|(key, _)| *key == option)
            .flat_map(|(_, value)| {
                let value = specifiers
                    .iter()
                    .fold(value.to_owned(), |v, (from, to)| v.replace(from, to));
                let quoted = value
                    .strip_prefix('"')
                    .and_then(|rest| rest.strip_suffix('"'));
                quoted.map_or(vec![value.clone()], |list| {
                    list.split("\" \"").map(str::to_owned).collect()
                })
            });
        values.collect()
    };
    let both = |older: &str, newer: &str| [values(older), values(newer)].concat();
    let mut asked = Requirements::default();
    let ids = [
        "MachineID",
        "X-ConditionMachineID",
        "X-ConditionMachineBootID",
    ];
    asked.machine_id = ids
        .iter()
        .find_map(|option| values(option).into_iter().next())
        .map(MachineIdentity::new);
    asked.machine_of = both("X-ConditionMachineOf", "MachineOf")
        .into_iter()
        .collect();
    for pair in both("X-ConditionMachineMetadata", "MachineMetadata") {
        if let [key, value] = pair.split('=').collect::<Vec<_>>()[..] {
            asked
                .metadata
                .entry(key.to_owned())
                .or_default()
                .insert(value.to_owned());
        }
    }
    let conflicts = both("X-Conflicts", "Conflicts");
    asked.conflicts = conflicts
        .iter()
        .flat_map(|v| v.split_whitespace())
        .map(Glob::new)
        .collect();
    asked.replaces = values("Replaces").into_iter().map(Glob::new).collect();
    let truths = ["true", "yes", "1", "on", "t"];
    asked.is_global = values("Global")
        .last()
        .is_some_and(|v| truths.contains(&v.to_lowercase().as_str()));
    asked
}
