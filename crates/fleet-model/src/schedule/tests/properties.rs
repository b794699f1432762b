//! Properties of plans, over random clusters and random changes.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::given::{Seen, cluster, done, id, see, shown, unit, unplaced};
use super::plain::{Against, Plain};
use crate::schedule::{Availability, Cluster, ClusterChange, Job, Machine, MachineId, Task};
use crate::unit::{DesiredState, Glob, MachineIdentity, Requirements, UnitName};

const MACHINES: [&str; 5] = ["aaaaaaaa-1", "aaaaaaaa-2", "b", "c", "d"];
const UNITS: [&str; 9] = [
    "a", "db@1", "db@2", "db@3", "lead", "old", "web@1", "web@2", "z",
];
const GLOBS: [&str; 9] = ["a", "db@*", "web@*", "?", "*@1", "[r", "lead", "o*", "*"];

/// A change of a cluster.
#[derive(Debug, Clone)]
enum Event {
    Seen(Seen),
    /// Whether missing machines are expected to return from now on.
    Awaits(bool),
    /// Makes a plan and carries out this many of its tasks, or all of them.
    CarriedOut(Option<usize>),
}

fn metadata() -> impl Strategy<Value = BTreeMap<String, String>> {
    let pair = (select(vec!["zone", "disk"]), select(vec!["x", "y"]));
    vec(pair, 0..3).prop_map(|pairs| {
        pairs
            .into_iter()
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .collect()
    })
}

fn availability() -> impl Strategy<Value = Availability> {
    prop_oneof![
        4 => Just(Availability::Open),
        1 => Just(Availability::Cordoned),
        2 => Just(Availability::Draining),
    ]
}

fn demand() -> impl Strategy<Value = BTreeMap<String, BTreeSet<String>>> {
    let values = btree_set(select(vec!["x", "y", "w"]).prop_map(str::to_owned), 1..3);
    prop_oneof![3 => Just(BTreeMap::new()), 1 => btree_map(select(vec!["zone", "disk"]).prop_map(str::to_owned), values, 1..3)]
}

fn globs() -> impl Strategy<Value = Vec<Glob>> {
    prop_oneof![3 => Just(Vec::new()), 1 => vec(select(&GLOBS[..]).prop_map(Glob::new), 1..3)]
}

fn requirements() -> impl Strategy<Value = Requirements> {
    let identity = select(vec!["aaaaaaaa", "b", "gone"]).prop_map(MachineIdentity::new);
    let peers = btree_set(select(&UNITS[..]).prop_map(str::to_owned), 1..3);
    let peers = prop_oneof![3 => Just(BTreeSet::new()), 1 => peers];
    let identity = option::weighted(0.1, identity);
    (
        identity,
        peers,
        demand(),
        globs(),
        globs(),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.2),
    )
        .prop_map(
            |(machine_id, machine_of, metadata, conflicts, replaces, is_global, is_singleton)| {
                Requirements {
                    machine_id,
                    machine_of,
                    metadata,
                    conflicts,
                    replaces,
                    is_global,
                    is_singleton,
                }
            },
        )
}

fn desired() -> impl Strategy<Value = DesiredState> {
    prop_oneof![1 => Just(DesiredState::Inactive), 1 => Just(DesiredState::Loaded), 4 => Just(DesiredState::Launched)]
}

fn a_unit() -> impl Strategy<Value = UnitName> {
    select(&UNITS[..]).prop_map(unit)
}

fn a_machine() -> impl Strategy<Value = MachineId> {
    select(&MACHINES[..]).prop_map(id)
}

fn a_job() -> impl Strategy<Value = Job> {
    let placed_on = option::of(a_machine());
    let is_pinned = prop::bool::weighted(0.2);
    let stopping_on = option::weighted(0.2, a_machine());
    let parts = (
        a_unit(),
        requirements(),
        desired(),
        placed_on,
        is_pinned,
        stopping_on,
    );
    parts.prop_map(
        |(name, requirements, desired, placed_on, is_pinned, stopping_on)| Job {
            name,
            requirements,
            desired,
            placed_on,
            is_pinned,
            stopping_on,
        },
    )
}

fn change() -> impl Strategy<Value = Seen> {
    let machine = |(id, metadata, availability)| {
        Seen::Change(ClusterChange::Machine(Machine {
            id,
            metadata,
            availability,
        }))
    };
    prop_oneof![
        3 => (a_machine(), metadata(), availability()).prop_map(machine),
        1 => a_machine().prop_map(|id| Seen::Change(ClusterChange::MachineGone(id))),
        6 => (a_unit(), requirements(), desired())
            .prop_map(|(unit, requirements, desired)| Seen::Wanted(unit, requirements, desired)),
        1 => a_unit().prop_map(|unit| Seen::Change(ClusterChange::UnitGone(unit))),
        3 => (a_unit(), option::of(a_machine())).prop_map(|(unit, machine)| Seen::Placed(unit, machine)),
        1 => a_machine().prop_map(|id| Seen::Change(ClusterChange::MachineUnclear(id))),
        3 => a_job().prop_map(|job| Seen::Change(ClusterChange::Unit(job))),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => change().prop_map(Event::Seen),
        1 => option::of(0..4_usize).prop_map(Event::CarriedOut),
        1 => any::<bool>().prop_map(Event::Awaits),
    ]
}

pub(super) fn state() -> impl Strategy<Value = Plain> {
    vec(change(), 0..40).prop_map(|changes| {
        let mut reference = Plain::default();
        for change in changes {
            reference.see(change);
        }
        reference
    })
}

fn carry_out(reference: &mut Plain, cluster: &mut Cluster, plan: &[Task]) {
    for task in plan {
        reference.see(done(task));
        see(cluster, done(task));
    }
}

fn same_state(reference: &Plain, cluster: &Cluster) -> Result<(), TestCaseError> {
    for machine in reference.machines.keys() {
        let node = &cluster.machines[machine];
        let globals: Vec<_> = node.globals.iter().collect();
        prop_assert_eq!(globals, reference.globals(machine), "{}", machine);
        let load = u32::try_from(reference.neighbours(machine).len()).expect("few");
        prop_assert_eq!(node.load, load, "{}", machine);
    }
    for job in reference.jobs.values() {
        prop_assert_eq!(cluster.job(job.name.as_str()), Some(job));
    }
    Ok(())
}

proptest! {
    #[test]
    fn after_any_changes_the_plan_is_that_of_the_state_alone(events in vec(event(), 0..60)) {
        let (mut reference, mut incremental) = (Plain::default(), Cluster::new());
        for event in events {
            match event {
                Event::Seen(seen) => {
                    reference.see(seen.clone());
                    see(&mut incremental, seen);
                }
                Event::Awaits(awaits) => {
                    reference.awaits_machines = awaits;
                    incremental.await_machines(awaits);
                }
                Event::CarriedOut(count) => {
                    let mut plan = incremental.plan();
                    prop_assert_eq!(&plan, &reference.plan());
                    plan.truncate(count.unwrap_or(usize::MAX));
                    carry_out(&mut reference, &mut incremental, &plan);
                }
            }
            same_state(&reference, &incremental)?;
        }
        let plan = incremental.plan();
        prop_assert_eq!(&plan, &reference.plan());
        prop_assert_eq!(&plan, &incremental.plan());
        let mut rebuilt = cluster(reference.changes());
        rebuilt.await_machines(reference.awaits_machines);
        prop_assert_eq!(&plan, &rebuilt.plan());
    }

    #[test]
    fn carried_out_plans_leave_nothing_to_plan(state in state()) {
        let mut state = state;
        let mut cluster = cluster(state.changes());
        let mut passes = 0;
        loop {
            let plan = cluster.plan();
            if plan.is_empty() {
                break;
            }
            carry_out(&mut state, &mut cluster, &plan);
            passes += 1;
            let meets = state.jobs.values().any(|job| job.is_placeable() && state.replacer(job).is_some());
            // A singleton is withdrawn by one plan and placed by a later one.
            let stops = state.jobs.values().any(|job| job.is_unplaced() && job.requirements.is_singleton);
            prop_assert!(meets || stops || cluster.plan().is_empty(), "{:?}", shown(&cluster.plan()));
            prop_assert!(passes < 12, "{:?}", shown(&cluster.plan()));
        }
        prop_assert!(cluster.suspects.is_empty());
    }

    #[test]
    fn no_plan_breaks_a_requirement(state in state()) {
        let mut state = state;
        let mut cluster = cluster(state.changes());
        let plan = cluster.plan();
        carry_out(&mut state, &mut cluster, &plan);
        for job in state.jobs.values() {
            prop_assert!(state.against(job) == Against::Nothing, "{} {:?}", job.name, shown(&plan));
        }
    }

    #[test]
    fn a_unit_that_may_stay_stays(state in state()) {
        let plan = cluster(state.changes()).plan();
        let touched: BTreeSet<_> = plan.iter().map(|task| &task.unit).collect();
        for job in state.jobs.values().filter(|job| job.placed_on.is_some()) {
            let follows = |other: &&&UnitName| state.follows(job.name.as_str(), other.as_str(), 9);
            let leads_on = touched.iter().find(follows).is_some();
            let on_globals = job.requirements.machine_of.iter().any(|peer| {
                state.jobs.get(peer.as_str()).is_some_and(|peer| peer.requirements.is_global)
            });
            let is_asked_to_leave = state.replacer(job).is_some() || state.drained(job).is_some();
            let may_stay = state.against(job) == Against::Nothing && !is_asked_to_leave;
            if may_stay && !leads_on && !on_globals {
                prop_assert!(!touched.contains(&job.name), "{} {:?}", job.name, shown(&plan));
            }
        }
    }

    #[test]
    fn losing_a_machine_moves_its_units_and_what_follows_from_them(state in state(), lost in a_machine()) {
        let (mut state, mut cluster) = (state.clone(), cluster(state.changes()));
        for _ in 0..12 {
            let plan = cluster.plan();
            carry_out(&mut state, &mut cluster, &plan);
        }
        prop_assert!(cluster.plan().is_empty());
        cluster.apply(ClusterChange::MachineGone(lost.clone()));
        let mut expected: BTreeSet<_> = state.placed(&lost).iter().map(|job| job.name.clone()).collect();
        // A unit without a machine may find one now that others have left theirs.
        expected.extend(unplaced(&cluster));
        let plan = cluster.plan();
        for task in &plan {
            let follows = expected.iter().any(|lost| state.follows(task.unit.as_str(), lost.as_str(), 9));
            let displaced = state.replacer(&state.jobs[&task.unit]).is_some();
            prop_assert!(expected.contains(&task.unit) || follows || displaced, "{:?}", shown(&plan));
        }
    }
}
