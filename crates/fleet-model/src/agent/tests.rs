use proptest::prelude::*;

use super::AgentTask::{Load, Reload, Restart, Start, Stop, Unload};
use super::*;
use crate::unit::DesiredState::{Inactive, Launched, Loaded};

fn desired(units: &[(&str, DesiredState, &str)]) -> BTreeMap<String, Desired> {
    let units = units.iter().map(|(unit, state, hash)| {
        let desired = Desired {
            hash: (*hash).to_owned(),
            state: *state,
            restarts: 0,
        };
        ((*unit).to_owned(), desired)
    });
    units.collect()
}

fn current(units: &[(&str, DesiredState, Option<&str>)]) -> BTreeMap<String, Current> {
    let units = units.iter().map(|(unit, state, hash)| {
        let current = Current {
            hash: hash.map(str::to_owned),
            state: *state,
            restarts: Some(0),
        };
        ((*unit).to_owned(), current)
    });
    units.collect()
}

fn planned(
    is_desired: &[(&str, DesiredState, &str)],
    is: &[(&str, DesiredState, Option<&str>)],
) -> Vec<AgentTask> {
    let tasks = tasks(&desired(is_desired), &current(is));
    tasks.into_keys().collect()
}

/// The cases of the older fleet's agent, with its numbers.
#[test]
fn the_agent_does_what_the_older_one_did() {
    let a = || "a".to_owned();
    let [load, unload, start, stop] = [Load(a()), Unload(a()), Start(a()), Stop(a())];
    let whole = || vec![unload.clone(), load.clone(), Reload, start.clone()];
    for (case, is_desired, is, tasks) in [
        ("A01", None, None, vec![]),
        ("A02", Some((Loaded, "1")), None, vec![load.clone(), Reload]),
        (
            "A03",
            Some((Launched, "1")),
            None,
            vec![load.clone(), Reload, start.clone()],
        ),
        ("A04", Some((Inactive, "1")), None, vec![]),
        (
            "A05",
            Some((Loaded, "1")),
            Some((Loaded, Some("1"))),
            vec![],
        ),
        (
            "A06",
            Some((Launched, "1")),
            Some((Loaded, Some("1"))),
            vec![start.clone()],
        ),
        (
            "A07",
            Some((Loaded, "1")),
            Some((Launched, Some("1"))),
            vec![stop.clone()],
        ),
        (
            "A08",
            Some((Inactive, "1")),
            Some((Launched, Some("1"))),
            vec![unload.clone(), Reload],
        ),
        (
            "A09, launched",
            None,
            Some((Launched, Some("1"))),
            vec![unload.clone(), Reload],
        ),
        (
            "A09, loaded",
            None,
            Some((Loaded, Some("1"))),
            vec![unload.clone(), Reload],
        ),
        (
            "A10",
            Some((Loaded, "1")),
            Some((Inactive, Some("1"))),
            vec![load.clone(), Reload],
        ),
        (
            "A11",
            Some((Launched, "1")),
            Some((Inactive, Some("1"))),
            vec![load.clone(), Reload, start.clone()],
        ),
        (
            "A12",
            Some((Launched, "2")),
            Some((Launched, Some("1"))),
            whole(),
        ),
        (
            "A13",
            Some((Loaded, "2")),
            Some((Launched, Some("1"))),
            vec![unload.clone(), load.clone(), Reload],
        ),
        (
            "A14",
            Some((Launched, "1")),
            Some((Launched, None)),
            whole(),
        ),
        // Ours: a unit left running with an earlier file does not continue beside the new one.
        (
            "file only, other hash",
            Some((Launched, "2")),
            Some((Inactive, Some("1"))),
            whole(),
        ),
        (
            "nothing to do",
            Some((Launched, "1")),
            Some((Launched, Some("1"))),
            vec![],
        ),
    ] {
        let is_desired = is_desired.map(|(state, hash)| ("a", state, hash));
        let is = is.map(|(state, hash)| ("a", state, hash));
        let found = planned(is_desired.as_slice(), is.as_slice());
        assert_eq!(found, tasks, "{case}");
    }
}

#[test]
fn many_units_are_done_kind_by_kind_and_by_name() {
    let name = str::to_owned;
    let found = planned(
        &[
            ("cap", Launched, "1"),
            ("dim", Loaded, "1"),
            ("elm", Launched, "1"),
        ],
        &[
            ("ant", Launched, Some("1")),
            ("bee", Loaded, Some("1")),
            ("dim", Launched, Some("1")),
            ("elm", Loaded, Some("1")),
        ],
    );
    let expected = [
        Unload(name("ant")),
        Unload(name("bee")),
        Load(name("cap")),
        Reload,
        Stop(name("dim")),
        Start(name("cap")),
        Start(name("elm")),
    ];
    assert_eq!(found, expected, "A15");
    let found = planned(
        &[("dim", Loaded, "1"), ("elm", Launched, "1")],
        &[("dim", Launched, Some("1")), ("elm", Loaded, Some("1"))],
    );
    assert_eq!(found, [Stop(name("dim")), Start(name("elm"))], "A16");
}

#[test]
fn reasons_are_in_the_older_words() {
    let why = |is_desired: &[_], is: &[_], task: AgentTask| {
        tasks(&desired(is_desired), &current(is))[&task].to_string()
    };
    let a = || "a".to_owned();
    let launched = [("a", Launched, Some("1"))];
    let loaded = [("a", Loaded, Some("1"))];
    for (is_desired, is, task, text) in [
        (
            None,
            &loaded,
            Unload(a()),
            "unit loaded but not scheduled here",
        ),
        (
            Some(("a", Loaded, "2")),
            &loaded,
            Unload(a()),
            "unit loaded but hash differs to expected",
        ),
        (
            Some(("a", Loaded, "2")),
            &loaded,
            Load(a()),
            "unit scheduled here but not loaded",
        ),
        (
            Some(("a", Loaded, "2")),
            &loaded,
            Reload,
            "always reload unit files",
        ),
        (
            Some(("a", Launched, "1")),
            &loaded,
            Start(a()),
            "unit currently loaded but desired state is launched",
        ),
        (
            Some(("a", Loaded, "1")),
            &launched,
            Stop(a()),
            "unit currently launched but desired state is loaded",
        ),
    ] {
        assert_eq!(why(is_desired.as_slice(), is, task), text);
    }
}

#[test]
fn an_order_is_carried_out_again_when_that_is_asked_for() {
    for (is_desired, asked, state, done, expected) in [
        (Launched, 2, Launched, Some(1), vec![Restart("a".into())]),
        (Launched, 2, Launched, Some(2), vec![]),
        // Started by an agent of an older version.
        (Launched, 2, Launched, None, vec![]),
        (Launched, 2, Loaded, Some(1), vec![Start("a".into())]),
        (Loaded, 2, Launched, Some(1), vec![Stop("a".into())]),
        // systemd may have started it for another unit.
        (Loaded, 2, Loaded, Some(1), vec![Stop("a".into())]),
        (Loaded, 2, Loaded, Some(2), vec![]),
        (Loaded, 2, Loaded, None, vec![]),
    ] {
        let mut desired = desired(&[("a", is_desired, "1")]);
        let mut current = current(&[("a", state, Some("1"))]);
        desired.get_mut("a").unwrap().restarts = asked;
        current.get_mut("a").unwrap().restarts = done;
        let planned: Vec<_> = tasks(&desired, &current).into_keys().collect();
        assert_eq!(planned, expected, "{is_desired:?} {state:?} {done:?}");
    }
}

#[test]
fn orders_count_from_the_registration_on() {
    for (read_at, registered_at, expected) in [(6, 7, false), (7, 7, true), (8, 7, true)] {
        let found = may_follow(read_at, registered_at);
        assert_eq!(found, expected, "{read_at} {registered_at}");
    }
}

/// The current state after all tasks have succeeded.
fn after(
    desired: &BTreeMap<String, Desired>,
    mut current: BTreeMap<String, Current>,
    tasks: impl IntoIterator<Item = AgentTask>,
) -> BTreeMap<String, Current> {
    for task in tasks {
        match task {
            Unload(unit) => assert!(current.remove(&unit).is_some(), "{unit} is there"),
            Load(unit) => {
                let hash = Some(desired[&unit].hash.clone());
                let state = Loaded;
                let restarts = None;
                current.insert(
                    unit,
                    Current {
                        hash,
                        state,
                        restarts,
                    },
                );
            }
            Reload => {}
            Stop(unit) => {
                let stopped = current.get_mut(&unit).expect("it is loaded");
                stopped.state = Loaded;
                stopped.restarts = Some(desired[&unit].restarts);
            }
            Start(unit) => {
                let started = current.get_mut(&unit).expect("it is loaded");
                started.state = Launched;
                started.restarts = Some(desired[&unit].restarts);
            }
            Restart(unit) => {
                let restarted = current.get_mut(&unit).expect("it is launched");
                assert_eq!(restarted.state, Launched);
                restarted.restarts = Some(desired[&unit].restarts);
            }
        }
    }
    current
}

proptest! {
    #[test]
    fn what_is_done_is_what_is_desired(
        is_desired in prop::collection::btree_map("[a-d]", (0_usize..3, "[12]", 0_u64..3), 0..4),
        is in prop::collection::btree_map("[a-d]", (0_usize..3, prop::option::of("[12]"), prop::option::of(0_u64..3)), 0..4),
    ) {
        let is_desired: BTreeMap<_, _> = is_desired
            .into_iter()
            .map(|(unit, (state, hash, restarts))| (unit, Desired { hash, state: DesiredState::ALL[state], restarts }))
            .collect();
        let is: BTreeMap<_, _> = is
            .into_iter()
            .map(|(unit, (state, hash, restarts))| (unit, Current { hash, state: DesiredState::ALL[state], restarts }))
            .collect();
        let planned = tasks(&is_desired, &is);
        for (unit, one) in &is {
            let wanted = is_desired.get(unit);
            let is_well = wanted.is_some_and(|wanted| {
                wanted.state.is_active()
                    && wanted.state == one.state
                    && one.hash.as_ref() == Some(&wanted.hash)
                    && one.restarts.is_none_or(|done| done == wanted.restarts)
            });
            let is_touched = planned.keys().any(|task| task.unit() == Some(unit.as_str()));
            prop_assert!(!(is_well && is_touched), "{unit} is touched");
        }
        let made = after(&is_desired, is, planned.into_keys());
        prop_assert!(tasks(&is_desired, &made).is_empty());
        let active: Vec<_> = is_desired
            .into_iter()
            .filter(|(_, desired)| desired.state.is_active())
            .map(|(unit, desired)| (unit, Some(desired.hash), desired.state))
            .collect();
        let made: Vec<_> = made.into_iter().map(|(unit, one)| (unit, one.hash, one.state)).collect();
        prop_assert_eq!(made, active);
    }
}
