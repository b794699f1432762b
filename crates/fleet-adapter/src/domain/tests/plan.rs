use std::time::Duration;

use hyperfleet_fleet_model::unit::{Options, UnitOption};
use proptest::prelude::*;

use super::super::ownership::Ownership;
use super::super::unit::UnitReport;
use super::*;

fn needed(name: &str, index: u32, file: &str) -> DesiredUnit {
    let options = vec![UnitOption::new("Service", "ExecStart", file)];
    let hash = Options::new(&options).unwrap().hash();
    DesiredUnit {
        name: format!("{name}@{index}.service"),
        index,
        options,
        hash,
    }
}

fn workload(name: &str, replicas: u32, file: &str, max_unavailable: u32) -> DesiredWorkload {
    DesiredWorkload {
        number: 1,
        max_unavailable,
        min_ready: Duration::ZERO,
        units: (1..=replicas)
            .map(|index| needed(name, index, file))
            .collect(),
    }
}

/// The unit, launched and active.
fn running(unit: &DesiredUnit) -> OwnedUnit {
    let hash = unit.hash.to_string();
    OwnedUnit {
        name: unit.name.clone(),
        owner: Ownership {
            adapter: "fleet".to_owned(),
            resource: "1".to_owned(),
            path: "/api/hyperfleet/v1/1".to_owned(),
            workload: 1,
            index: unit.index,
        },
        hash: hash.clone(),
        desired: DesiredState::Launched,
        machine: Some("m".to_owned()),
        reports: vec![UnitReport {
            machine: "m".to_owned(),
            hash,
            load: "loaded".to_owned(),
            active: "active".to_owned(),
            sub: "running".to_owned(),
            active_for: Duration::ZERO,
        }],
    }
}

fn all_running(workload: &DesiredWorkload) -> Vec<OwnedUnit> {
    workload.units.iter().map(running).collect()
}

fn steps(plan: &Plan<'_>) -> Vec<String> {
    let text = |step: &PlanStep<'_>| {
        let verb = match step {
            PlanStep::Create(_) => "create",
            PlanStep::Replace(_) => "replace",
            PlanStep::Launch(_) => "launch",
            PlanStep::Stop(_) => "stop",
            PlanStep::Destroy(_) => "destroy",
        };
        format!("{verb} {}", step.unit())
    };
    plan.steps.iter().map(text).collect()
}

#[test]
fn missing_units_are_created_at_once() {
    let desired = [workload("a", 3, "/x", 1)];
    let plan = plan(&desired, &[]);
    assert_eq!(
        steps(&plan),
        [
            "create a@1.service",
            "create a@2.service",
            "create a@3.service"
        ]
    );
}

#[test]
fn nothing_is_left_to_do_where_everything_runs() {
    let desired = [workload("a", 3, "/x", 1)];
    let owned = all_running(&desired[0]);
    assert_eq!(plan(&desired, &owned), Plan::default());
}

#[test]
fn an_update_rolls_from_the_lowest_index_one_by_one() {
    let desired = [workload("a", 3, "/new", 1)];
    let mut owned = all_running(&workload("a", 3, "/old", 1));
    let first = plan(&desired, &owned);
    assert_eq!(steps(&first), ["replace a@1.service"]);
    assert_eq!(first.waiting, ["a@2.service", "a@3.service"]);
    owned[0] = running(&desired[0].units[0]);
    owned[0].reports[0].active = "activating".to_owned();
    assert_eq!(steps(&plan(&desired, &owned)), [""; 0]);
    owned[0] = running(&desired[0].units[0]);
    assert_eq!(steps(&plan(&desired, &owned)), ["replace a@2.service"]);
}

#[test]
fn failed_replicas_are_updated_first_and_use_the_budget() {
    let desired = [workload("a", 3, "/new", 1)];
    let mut owned = all_running(&workload("a", 3, "/old", 1));
    owned[2].reports[0].active = "failed".to_owned();
    let plan = plan(&desired, &owned);
    assert_eq!(steps(&plan), ["replace a@3.service"]);
    assert_eq!(plan.waiting, ["a@1.service", "a@2.service"]);
}

#[test]
fn a_machine_that_still_has_the_older_file_does_not_count() {
    let desired = [workload("a", 2, "/new", 1)];
    let mut owned = all_running(&workload("a", 2, "/old", 1));
    owned[0].hash = desired[0].units[0].hash.to_string();
    let plan = plan(&desired, &owned);
    assert_eq!(steps(&plan), [""; 0]);
    assert_eq!(plan.waiting, ["a@2.service"]);
}

#[test]
fn surplus_units_stop_from_the_highest_index() {
    let desired = [workload("a", 1, "/x", 1)];
    let mut owned = all_running(&workload("a", 4, "/x", 1));
    owned[1].desired = DesiredState::Inactive;
    owned[2].desired = DesiredState::Inactive;
    owned[2].machine = None;
    owned[2].reports.clear();
    let plan = plan(&desired, &owned);
    assert_eq!(steps(&plan), ["stop a@4.service", "destroy a@3.service"]);
    assert_eq!(plan.removals, 1);
    assert_eq!(plan.leaving.len(), 3);
}

#[test]
fn a_unit_that_was_stopped_by_hand_is_launched_again() {
    let desired = [workload("a", 1, "/x", 1)];
    let mut owned = all_running(&desired[0]);
    owned[0].desired = DesiredState::Inactive;
    assert_eq!(steps(&plan(&desired, &owned)), ["launch a@1.service"]);
}

#[test]
fn renamed_units_stop_once_their_successors_are_ready() {
    let desired = [workload("new", 2, "/x", 1)];
    let mut owned = all_running(&workload("old", 2, "/x", 1));
    let plan_of = |owned: &[OwnedUnit]| steps(&plan(&desired, owned));
    assert_eq!(
        plan_of(&owned),
        ["create new@1.service", "create new@2.service"]
    );
    // They are stored, and no machine is free for them: one replica may be down.
    for unit in &desired[0].units {
        let mut unplaced = running(unit);
        unplaced.machine = None;
        unplaced.reports.clear();
        owned.push(unplaced);
    }
    assert_eq!(plan_of(&owned), ["stop old@1.service"]);
    owned[0].desired = DesiredState::Inactive;
    owned[0].machine = None;
    owned[0].reports.clear();
    assert_eq!(plan_of(&owned), ["destroy old@1.service"]);
    owned[2] = running(&desired[0].units[0]);
    assert_eq!(
        plan_of(&owned),
        ["destroy old@1.service", "stop old@2.service"]
    );
    assert_eq!(plan(&desired, &owned).removals, 1, "the brake counts it");
}

#[test]
fn what_cannot_be_stored_takes_nothing_away_but_surplus() {
    let desired = [workload("new", 1, "/x", 1)];
    let mut owned = all_running(&workload("old", 2, "/x", 1));
    owned.push(running(&desired[0].units[0]));
    let mut plan = plan(&desired, &owned);
    assert_eq!(steps(&plan), ["stop old@1.service", "stop old@2.service"]);
    plan.postpone_changes();
    assert_eq!(steps(&plan), ["stop old@2.service"]);
}

#[test]
fn what_is_held_stays() {
    let owned = all_running(&workload("a", 2, "/x", 1));
    let mut plan = plan(&[], &owned);
    assert_eq!(plan.removals, 2);
    plan.postpone_removals();
    assert_eq!(steps(&plan), [""; 0]);
    assert_eq!(plan.leaving.len(), 2, "and is said to be there");
}

/// Carries a plan out, as fleet would with one machine on which everything starts at once.
fn carry_out(plan: &[(String, Option<DesiredUnit>)], owned: &mut Vec<OwnedUnit>) {
    for (step, unit) in plan {
        let name = step.split(' ').nth(1).unwrap();
        owned.retain(|unit| unit.name != name || !step.starts_with("destroy"));
        if let Some(unit) = unit {
            owned.retain(|known| known.name != unit.name);
            owned.push(running(unit));
        }
        for known in owned.iter_mut().filter(|unit| unit.name == name) {
            if step.starts_with("stop") {
                known.desired = DesiredState::Inactive;
                known.machine = None;
                known.reports.clear();
            } else if step.starts_with("launch") {
                let mut launched = known.clone();
                launched.desired = DesiredState::Launched;
                *known = launched;
            }
        }
    }
}

proptest! {
    #[test]
    fn plans_converge_and_never_take_more_than_they_may(
        before in 0_u32..6, after in 0_u32..6, is_renamed: bool, is_changed: bool, max in 1_u32..4,
        down in proptest::collection::vec(any::<bool>(), 6),
    ) {
        let old = workload("a", before, "/old", max);
        let desired = [workload(
            if is_renamed { "b" } else { "a" },
            after,
            if is_changed { "/new" } else { "/old" },
            max,
        )];
        let mut owned = all_running(&old);
        for (unit, is_down) in owned.iter_mut().zip(&down) {
            if *is_down {
                unit.reports[0].active = "failed".to_owned();
            }
        }
        let ready = |owned: &[OwnedUnit]| {
            let is_ready = |index: u32| owned.iter().any(|u| u.owner.index == index && u.is_ready(Duration::ZERO));
            (1..=after).filter(|index| is_ready(*index)).count()
        };
        for _ in 0..40 {
            let plan = plan(&desired, &owned);
            if plan.steps.is_empty() {
                break;
            }
            let before = ready(&owned);
            let todo: Vec<_> = plan.steps.iter().map(|step| {
                let unit = match step {
                    PlanStep::Create(unit) | PlanStep::Replace(unit) => Some((*unit).clone()),
                    _ => None,
                };
                (steps(&Plan { steps: vec![*step], ..Plan::default() }).remove(0), unit)
            }).collect();
            // The worst moment: disturbed units are down, and no new one runs yet.
            let disturbed: Vec<&str> = plan.steps.iter()
                .filter(|step| !matches!(step, PlanStep::Create(_)))
                .map(PlanStep::unit).collect();
            let still: Vec<OwnedUnit> = owned.iter()
                .filter(|unit| !disturbed.contains(&unit.name.as_str())).cloned().collect();
            let floor = usize::try_from(after.saturating_sub(max)).unwrap().min(before);
            prop_assert!(ready(&still) >= floor, "{:?} leave {} of {}", todo, ready(&still), before);
            carry_out(&todo, &mut owned);
            // Units that failed by themselves, and are not touched, recover in the end.
            for unit in &mut owned {
                for report in &mut unit.reports {
                    report.active = "active".to_owned();
                }
            }
        }
        let mut names: Vec<_> = owned.iter().map(|unit| (unit.name.clone(), unit.hash.clone())).collect();
        names.sort();
        let needs: Vec<_> = desired[0].units.iter().map(|unit| (unit.name.clone(), unit.hash.to_string())).collect();
        prop_assert_eq!(names, needs);
    }
}
