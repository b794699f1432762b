//! Facts beyond the vectors.

use super::given::{
    cluster, desired_change, done, launched, machine, placed, see, shown, unplaced,
};
use crate::schedule::Cluster;
use crate::unit::{DesiredState, UnitName};

#[test]
fn a_leader_and_its_followers_are_placed_in_one_plan() {
    let plan = cluster([
        machine("alder", ""),
        launched("a", &["MachineOf=b"]),
        launched("b", &["MachineOf=z"]),
        launched("z", &[]),
    ])
    .plan();
    assert_eq!(shown(&plan), ["+z@alder", "+b@alder", "+a@alder"]);
}

#[test]
fn an_inactive_unit_excludes_no_other() {
    let plan = cluster([
        machine("alder", ""),
        desired_change(
            "all",
            &["Global=true", "Conflicts=*"],
            DesiredState::Inactive,
        ),
        desired_change("off", &["Conflicts=*"], DesiredState::Inactive),
        launched("a", &[]),
    ])
    .plan();
    assert_eq!(shown(&plan), ["+a@alder"]);
}

#[test]
fn no_unit_leaves_for_one_that_must_leave_anyway() {
    let plan = cluster([
        machine("alder", ""),
        launched("a", &["Conflicts=b"]),
        launched("b", &["MachineMetadata=zone=x"]),
        placed("a", "alder"),
        placed("b", "alder"),
    ])
    .plan();
    assert_eq!(shown(&plan), ["-b@alder"]);
}

#[test]
fn three_that_replace_each_other_in_turn_come_to_rest() {
    let mut cluster = cluster([
        machine("alder", ""),
        machine("birch", ""),
        launched("a", &["Replaces=b"]),
        launched("b", &["Replaces=c"]),
        launched("c", &["Replaces=a"]),
    ]);
    for _ in 0..3 {
        for task in cluster.plan() {
            see(&mut cluster, done(&task));
        }
    }
    assert_eq!(shown(&cluster.plan()), [""; 0]);
}

#[test]
fn a_follower_does_not_make_its_unit_move() {
    let mut cluster = cluster([
        machine("alder", ""),
        machine("birch", ""),
        launched("lead", &[]),
        launched("next", &["MachineOf=lead"]),
        launched("tail", &["MachineOf=next", "Replaces=lead"]),
        placed("lead", "alder"),
        placed("next", "alder"),
        placed("tail", "alder"),
    ]);
    assert_eq!(shown(&cluster.plan()), [""; 0]);
    see(&mut cluster, launched("next", &[]));
    assert_eq!(shown(&cluster.plan()), ["-lead@alder", "+lead@birch"]);
}

#[test]
fn the_reason_of_an_unplaced_unit_is_explained() {
    let crowd = (1..=7).map(|n| machine(&format!("m{n}"), "zone=x"));
    let mut cluster = cluster([
        launched("nowhere", &["MachineMetadata=zone=x"]),
        launched("tail", &["MachineOf=lead"]),
        launched("p", &["MachineOf=q"]),
        launched("q", &["MachineOf=p"]),
        launched("pinned", &["MachineID=far"]),
        desired_change("lead", &[], DesiredState::Inactive),
    ]);
    let why = |cluster: &Cluster, name| {
        cluster
            .explain(name)
            .map(|why| why.to_string())
            .unwrap_or_default()
    };
    assert_eq!(why(&cluster, "nowhere"), "there are no machines");
    see(&mut cluster, machine("alder", ""));
    crowd.for_each(|machine| see(&mut cluster, machine));
    assert_eq!(why(&cluster, "nowhere"), "about to be placed on m1");
    let asked = ["MachineMetadata=zone=y", "MachineID=alder"];
    see(&mut cluster, launched("nowhere", &asked));
    assert_eq!(
        why(&cluster, "nowhere"),
        "no machine can run it: MachineID=alder: 7 machines (m1, m2, m3, m4, m5, …); \
         MachineMetadata=zone=y: 1 machine (alder)"
    );
    let long = "v".repeat(500);
    let asked =
        ["a", "b", "c", "d", "e", &long].map(|value| format!("MachineMetadata=zone={value}"));
    let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
    see(&mut cluster, launched("many", &asked));
    see(&mut cluster, launched("long", &asked[5..]));
    assert_eq!(
        why(&cluster, "many"),
        "no machine can run it: \
         MachineMetadata=zone=a or zone=b or zone=c or zone=d or zone=e or …: \
         8 machines (alder, m1, m2, m3, m4, …)"
    );
    let text = why(&cluster, "long");
    assert!(
        text.contains(&"v".repeat(100)) && text.len() < 250,
        "{text}"
    );
    assert_eq!(
        why(&cluster, "tail"),
        "waits for lead, which is on no machine"
    );
    assert_eq!(why(&cluster, "p"), "follows itself: p → q → p");
    let lead = desired_change("lead", &["Conflicts=tail"], DesiredState::Launched);
    see(&mut cluster, lead);
    see(&mut cluster, placed("lead", "m3"));
    assert_eq!(
        why(&cluster, "tail"),
        "no machine can run it: MachineOf=lead: 7 machines (alder, m1, m2, m4, m5, …); \
         Conflicts: 1 machine (m3: lead)"
    );
    assert_eq!(why(&cluster, "lead"), "");
    assert_eq!(why(&cluster, "no such unit"), "");
    assert_eq!(
        unplaced(&cluster)
            .iter()
            .map(UnitName::as_str)
            .collect::<Vec<_>>(),
        ["long", "many", "nowhere", "p", "pinned", "q", "tail"]
    );
}
