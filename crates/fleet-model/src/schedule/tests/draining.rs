//! Cordoned and drained machines.

use super::given::{
    Seen, cluster, desired_change, done, id, launched, machine, placed, requirements, see, shown,
    unavailable, unit,
};
use crate::schedule::{Availability, Cluster, ClusterChange, Job};
use crate::unit::DesiredState;

const CORDONED: Availability = Availability::Cordoned;
const DRAINING: Availability = Availability::Draining;

fn why(cluster: &Cluster, unit: &str) -> String {
    let why = cluster.explain(unit);
    why.map(|why| why.to_string()).unwrap_or_default()
}

/// Plans and carries out until nothing is left.
fn settle(cluster: &mut Cluster) -> Vec<String> {
    let mut all = Vec::new();
    for _ in 0..9 {
        let plan = cluster.plan();
        all.extend(shown(&plan));
        for task in &plan {
            see(cluster, done(task));
        }
    }
    all
}

#[test]
fn a_cordoned_machine_keeps_its_units_and_gets_none() {
    let mut cluster = cluster([
        unavailable("alder", "", CORDONED),
        launched("a", &[]),
        launched("b", &[]),
        launched("everywhere", &["Global=true"]),
        placed("a", "alder"),
    ]);
    assert_eq!(settle(&mut cluster), [""; 0]);
    assert_eq!(
        why(&cluster, "b"),
        "no machine can run it: cordoned: 1 machine (alder)"
    );
    assert!(
        cluster.machines[&id("alder")]
            .globals
            .contains("everywhere")
    );
    see(&mut cluster, machine("alder", ""));
    assert_eq!(settle(&mut cluster), ["+b@alder"]);
}

#[test]
fn the_units_of_a_drained_machine_leave_and_come_back_to_none() {
    let mut cluster = cluster([
        machine("birch", ""),
        machine("cedar", ""),
        unavailable("alder", "", DRAINING),
        launched("a", &[]),
        launched("b", &[]),
        placed("a", "alder"),
        placed("b", "alder"),
    ]);
    let moved = ["-a@alder", "+a@birch", "-b@alder", "+b@cedar"];
    assert_eq!(settle(&mut cluster), moved);
    see(
        &mut cluster,
        Seen::Change(ClusterChange::MachineGone(id("birch"))),
    );
    assert_eq!(settle(&mut cluster), ["-a@birch", "+a@cedar"]);
}

#[test]
fn a_unit_that_no_other_machine_can_run_stays_until_one_can() {
    let mut cluster = cluster([
        machine("birch", ""),
        unavailable("alder", "disk=ssd", DRAINING),
        launched("a", &["MachineMetadata=disk=ssd"]),
        placed("a", "alder"),
    ]);
    assert_eq!(settle(&mut cluster), [""; 0]);
    assert_eq!(
        why(&cluster, "a"),
        "no machine can run it: MachineMetadata=disk=ssd: 1 machine (birch); cordoned: 1 machine (alder)"
    );
    see(&mut cluster, machine("cedar", "disk=ssd"));
    assert_eq!(why(&cluster, "a"), "about to be placed on cedar");
    assert_eq!(settle(&mut cluster), ["-a@alder", "+a@cedar"]);
    assert_eq!(why(&cluster, "a"), "");
}

#[test]
fn units_that_belong_together_leave_together_leaders_first() {
    let mut cluster = cluster([
        machine("birch", ""),
        machine("cedar", "disk=ssd"),
        unavailable("alder", "disk=ssd", DRAINING),
        launched("a", &["MachineOf=z"]),
        launched("m", &["MachineOf=a"]),
        launched("z", &[]),
        launched("y", &["MachineOf=m", "MachineMetadata=disk=ssd"]),
        placed("a", "alder"),
        placed("m", "alder"),
        placed("y", "alder"),
        placed("z", "alder"),
    ]);
    let moved = [
        "-a@alder", "-m@alder", "-y@alder", "-z@alder", "+z@cedar", "+a@cedar", "+m@cedar",
        "+y@cedar",
    ];
    assert_eq!(shown(&cluster.plan()), moved);
    // As long as one of them has no machine, all of them stay.
    see(&mut cluster, machine("cedar", ""));
    assert_eq!(settle(&mut cluster), [""; 0]);
    assert_eq!(
        why(&cluster, "z"),
        "no machine can run it together with a, m, y"
    );
    let text = why(&cluster, "y");
    assert!(
        text.contains("MachineMetadata=disk=ssd: 2 machines"),
        "{text}"
    );
    // Without it, the others go.
    let gone = desired_change("y", &["MachineOf=m"], DesiredState::Inactive);
    see(&mut cluster, gone);
    let plan = settle(&mut cluster);
    assert!(plan.contains(&"+z@birch".to_owned()), "{plan:?}");
    assert!(plan.contains(&"+m@birch".to_owned()), "{plan:?}");
}

#[test]
fn nothing_moves_together_with_a_pinned_unit() {
    let mut cluster = cluster([
        machine("birch", ""),
        unavailable("alder", "", DRAINING),
        launched("a", &[]),
        launched("b", &["MachineOf=a"]),
        placed("b", "alder"),
    ]);
    let pinned = Job {
        is_pinned: true,
        placed_on: Some(id("alder")),
        ..cluster.job("a").unwrap().clone()
    };
    see(&mut cluster, Seen::Change(ClusterChange::Unit(pinned)));
    assert_eq!(settle(&mut cluster), [""; 0]);
}

#[test]
fn units_tied_to_a_singleton_stay_with_it() {
    let mut cluster = cluster([
        machine("birch", ""),
        unavailable("alder", "", DRAINING),
        launched("a", &["Singleton=true"]),
        launched("b", &["MachineOf=a"]),
        placed("a", "alder"),
        placed("b", "alder"),
    ]);
    assert_eq!(settle(&mut cluster), [""; 0]);
    assert_eq!(why(&cluster, "b"), "no machine can run it together with a");
}

#[test]
fn a_singleton_is_placed_once_it_has_stopped() {
    let mut cluster = cluster([
        machine("birch", ""),
        unavailable("alder", "", DRAINING),
        launched("a", &["Singleton=true"]),
        placed("a", "alder"),
    ]);
    let plan = cluster.plan();
    assert_eq!(shown(&plan), ["-a@alder"]);
    see(&mut cluster, done(&plan[0]));
    let stopping = |on| Job {
        stopping_on: on,
        placed_on: None,
        ..Job::new(
            unit("a"),
            requirements("a", &["Singleton=true"]),
            DesiredState::Launched,
            None,
        )
    };
    let seen = Seen::Change(ClusterChange::Unit(stopping(Some(id("alder")))));
    see(&mut cluster, seen);
    assert_eq!(settle(&mut cluster), [""; 0]);
    assert_eq!(
        why(&cluster, "a"),
        "waits until alder has stopped it: it must never run twice"
    );
    see(
        &mut cluster,
        Seen::Change(ClusterChange::Unit(stopping(None))),
    );
    assert_eq!(settle(&mut cluster), ["+a@birch"]);
}
