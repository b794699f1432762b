//! Decisions of the older fleet, computed by its own functions. `docs/internals/placement.md` lists the cases where
//! ours differ.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::given::{Seen, cluster, id, placed, requirements, shown, unit};
use super::plain::Plain;
use crate::schedule::{Cluster, ClusterChange, Machine, MachineId, Task};
use crate::unit::DesiredState;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pass {
    id: String,
    note: String,
    machines: Option<Vec<Known>>,
    units: Vec<Given>,
    /// Each result of the older fleet's random order.
    outcomes: Vec<Vec<String>>,
    #[serde(rename = "freq")]
    _frequencies: Vec<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    id: String,
    #[serde(default)]
    metadata: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    name: String,
    #[serde(rename = "desiredState", alias = "desired_state")]
    desired: String,
    #[serde(rename = "scheduledTo", alias = "machine")]
    machine: Option<String>,
    #[serde(default)]
    xfleet: Vec<String>,
    #[serde(default)]
    file: String,
}

impl Given {
    fn changes(&self) -> Vec<Seen> {
        let desired = [
            DesiredState::Inactive,
            DesiredState::Loaded,
            DesiredState::Launched,
        ];
        let desired = desired.into_iter().find(|d| d.as_str() == self.desired);
        let section = self.file.split("[X-Fleet]\n").skip(1).flat_map(str::lines);
        let lines: Vec<_> = self
            .xfleet
            .iter()
            .map(String::as_str)
            .chain(section)
            .collect();
        let (name, asked) = (unit(&self.name), requirements(&self.name, &lines));
        let unit = Seen::Wanted(name, asked, desired.expect("a known state"));
        let placed = self
            .machine
            .iter()
            .map(|machine| placed(&self.name, machine));
        [unit].into_iter().chain(placed).collect()
    }
}

fn changes(machines: &[Known], units: &[Given]) -> Vec<Seen> {
    let machine = |m: &Known| {
        Seen::Change(ClusterChange::Machine(Machine::new(
            id(&m.id),
            m.metadata.clone(),
        )))
    };
    let machines = machines.iter().map(machine);
    machines
        .chain(units.iter().flat_map(Given::changes))
        .collect()
}

/// A task in the notation of the vectors.
fn task_text(task: &Task) -> String {
    let (unit, reason) = (&task.unit, &task.reason);
    match (&task.from, &task.to) {
        (None, Some(to)) => format!("SCHED {unit} {to} ({reason})"),
        (Some(from), None) => format!("UNSCHED {unit} {from} ({reason})"),
        other => panic!("a plan does one or the other: {other:?}"),
    }
}

/// The unit that the other names moves, and only where it can run.
const CORRECTED: [(&str, &[&str]); 4] = [
    ("R02", &["-old.service@alder", "+old.service@birch"]),
    ("R03", &[]),
    ("R06", &[]),
    ("R07", &["-old-3.service@alder", "+old-3.service@birch"]),
];

#[test]
fn a_pass_decides_as_the_older_fleet_does_in_one_of_its_orders() {
    let text = include_str!("../../../../../tests/vectors/fleet_engine.json");
    let passes: Vec<Pass> = serde_json::from_str(text).expect("the vectors have this shape");
    assert_eq!(passes.len(), 78);
    for Pass {
        id,
        note,
        machines,
        units,
        outcomes,
        ..
    } in passes
    {
        let plan = cluster(changes(&machines.unwrap_or_default(), &units)).plan();
        if let Some((_, corrected)) = CORRECTED.iter().find(|(corrected, _)| *corrected == id) {
            assert_eq!(shown(&plan), *corrected, "{id} {note}");
        } else {
            let ours: Vec<_> = plan.iter().map(task_text).collect();
            assert!(
                outcomes.contains(&ours),
                "{id} {note}: {ours:#?} is none of {outcomes:#?}"
            );
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Situation {
    name: String,
    machines: Vec<Known>,
    units: Vec<Given>,
    expect_load: BTreeMap<String, u32>,
    expect: BTreeMap<String, Expected>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    /// Each machine's verdict on the unit.
    able: BTreeMap<String, Able>,
    /// The chosen machine, if this unit alone is placed.
    decision: Option<String>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Debug)]
#[serde(rename_all = "lowercase")]
enum Able {
    Schedule,
    Unschedule,
    /// It can run there, but would replace a unit or be replaced by one.
    Reschedule,
}

fn situations() -> Vec<Situation> {
    let text = include_str!("../../../../../tests/vectors/fleet_scheduling.json");
    serde_json::from_str(text).expect("the vectors have this shape")
}

#[test]
fn loads_are_those_of_the_older_fleet() {
    for situation in situations() {
        let cluster = cluster(changes(&situation.machines, &situation.units));
        for (machine, load) in situation.expect_load {
            assert_eq!(
                cluster.machines[machine.as_str()].load,
                load,
                "{} {machine}",
                situation.name
            );
        }
    }
}

#[test]
fn machines_are_able_to_run_what_they_were_in_the_older_fleet() {
    let situations = situations();
    assert_eq!(situations.len(), 120);
    for situation in situations {
        let mut reference = Plain::default();
        let changes = changes(&situation.machines, &situation.units);
        changes.iter().cloned().for_each(|seen| reference.see(seen));
        let as_given = cluster(changes);
        for (name, expected) in &situation.expect {
            for (machine, able) in &expected.able {
                let unit = &as_given.units[name.as_str()];
                let node = as_given.machines.get_key_value(machine.as_str());
                let (on, node) = node.expect("it is given");
                let is_active = unit.job.desired.is_active();
                let is_able = is_active.then(|| as_given.judge(unit, on, node).is_ok());
                let what = format!("{} {name} {machine}", situation.name);
                // The older fleet treats inactive units like active ones here.
                let is_able = is_able.unwrap_or_else(|| {
                    let job = &reference.jobs[name.as_str()];
                    reference
                        .check(job, &reference.machines[machine.as_str()])
                        .is_ok()
                });
                assert_eq!(is_able, *able != Able::Unschedule, "{what}");
                if is_able {
                    let job = &reference.jobs[name.as_str()];
                    let meets = reference.neighbours(&id(machine)).into_iter().any(|other| {
                        let (his, its) = (&other.requirements, &job.requirements);
                        his.replaces(name) != its.replaces(other.name.as_str())
                    });
                    assert_eq!(meets, *able == Able::Reschedule, "{what}");
                }
            }
        }
    }
}

#[test]
fn a_unit_alone_goes_where_it_went_in_the_older_fleet() {
    let mut decided = 0;
    for situation in situations() {
        for (name, expected) in &situation.expect {
            let given = situation
                .units
                .iter()
                .find(|unit| unit.name == *name)
                .expect("it is given");
            if given.machine.is_some() || given.desired == "inactive" {
                assert_eq!(expected.decision, None, "{} {name}", situation.name);
                continue;
            }
            let cluster: Cluster = cluster(changes(&situation.machines, &situation.units));
            let machine = cluster.choose(&unit(name), None);
            let machine = machine.as_ref().map(MachineId::as_str);
            assert_eq!(
                machine,
                expected.decision.as_deref(),
                "{} {name}",
                situation.name
            );
            decided += usize::from(machine.is_some());
        }
    }
    assert_eq!(decided, 366);
}
