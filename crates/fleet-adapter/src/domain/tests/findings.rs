use std::time::Duration;

use hyperfleet_adapter::Truth;
use hyperfleet_fleet_model::unit::{DesiredState, Options, UnitOption};

use super::*;
use crate::domain::ownership::Ownership;
use crate::domain::plan::plan;
use crate::domain::unit::{DesiredUnit, UnitReport};

const HEALTHY: FleetHealth = FleetHealth {
    has_leader: true,
    machines: 3,
};

fn needed(index: u32) -> DesiredUnit {
    let options = vec![UnitOption::new("Service", "ExecStart", "/x")];
    DesiredUnit {
        name: format!("a@{index}.service"),
        index,
        hash: Options::new(&options).unwrap().hash(),
        options,
    }
}

fn workload(replicas: u32) -> DesiredWorkload {
    DesiredWorkload {
        number: 1,
        max_unavailable: 1,
        min_ready: Duration::from_secs(10),
        units: (1..=replicas).map(needed).collect(),
    }
}

fn running(index: u32) -> OwnedUnit {
    let DesiredUnit { name, hash, .. } = needed(index);
    OwnedUnit {
        name,
        owner: Ownership {
            adapter: "fleet".to_owned(),
            resource: "1".to_owned(),
            path: "/api/hyperfleet/v1/1".to_owned(),
            workload: 1,
            index,
        },
        hash: hash.to_string(),
        desired: DesiredState::Launched,
        machine: Some(format!("m{index}")),
        reports: vec![UnitReport {
            machine: format!("m{index}"),
            hash: hash.to_string(),
            load: "loaded".to_owned(),
            active: "active".to_owned(),
            sub: "running".to_owned(),
            active_for: Duration::from_secs(10),
        }],
    }
}

/// The conditions `Applied`, `Available` and `Finalized` of the report on these units.
fn conditions_of(
    desired: &[DesiredWorkload],
    owned: &[OwnedUnit],
    is_deleted: bool,
) -> (Report, String) {
    conditions_with(desired, owned, is_deleted, None, &BTreeMap::new())
}

fn conditions_with(
    desired: &[DesiredWorkload],
    owned: &[OwnedUnit],
    is_deleted: bool,
    blocker: Option<&Blocker>,
    explanations: &BTreeMap<String, String>,
) -> (Report, String) {
    let plan = plan(desired, owned);
    let report = report(&Observation {
        desired,
        owned,
        plan: &plan,
        explanations,
        health: HEALTHY,
        blocker,
        is_deleted,
    });
    let findings = [
        Some(&report.applied),
        Some(&report.available),
        report.finalized.as_ref(),
    ];
    let text = |finding: &Finding| {
        format!(
            "{:?} {}: {}",
            finding.truth, finding.reason, finding.message
        )
    };
    let texts: Vec<String> = findings.into_iter().flatten().map(text).collect();
    (report, texts.join("\n"))
}

#[test]
fn replicas_that_run_are_available() {
    let (report, text) = conditions_of(&[workload(2)], &[running(1), running(2)], false);
    assert_eq!(
        text,
        "True UnitsStored: 2 units stored\nTrue ReplicasAvailable: 2 of 2 replicas available"
    );
    assert_eq!(report.health.truth, Truth::True);
    let unit = &report.data["units"][0];
    assert_eq!(
        unit.to_string(),
        r#"{"active":"active","available":true,"machine":"m1","name":"a@1.service","sub":"running"}"#
    );
}

#[test]
fn a_message_names_unit_machine_cause_and_the_worst_reason() {
    let mut owned = [running(1), running(2), running(3), running(4)];
    owned[0].reports[0].active_for = Duration::from_secs(9);
    owned[1].reports[0].active = "failed".to_owned();
    owned[1].reports[0].sub = "failed".to_owned();
    owned[2].machine = None;
    let why = "3 machines: conflicts with a@4.service".to_owned();
    let explanations = BTreeMap::from([("a@3.service".to_owned(), why)]);
    let (_, text) = conditions_with(&[workload(4)], &owned, false, None, &explanations);
    assert_eq!(
        text,
        "True UnitsStored: 4 units stored\n\
         False UnitFailed: 1 of 4 replicas available: a@2.service: failed (failed) on m2; \
         a@3.service: 3 machines: conflicts with a@4.service; a@1.service: active for less than 10 s on m1"
    );
}

#[test]
fn replicas_with_an_older_file_are_available_and_no_success() {
    let mut owned = [running(1), running(2)];
    for unit in &mut owned {
        unit.hash = "older".to_owned();
        unit.reports[0].hash = "older".to_owned();
    }
    let (_, text) = conditions_of(&[workload(2)], &owned, false);
    assert_eq!(
        text,
        "False Rolling: 1 unit to be updated once others are available: a@2.service\n\
         False Rolling: 2 of 2 replicas available: a@2.service: it has an older file; \
         a@1.service: it was just given its new file"
    );
}

#[test]
fn surplus_units_are_named_until_they_are_gone() {
    let mut owned = [running(1), running(2)];
    owned[1].desired = DesiredState::Inactive;
    owned[1].reports[0].active = "deactivating".to_owned();
    let (_, text) = conditions_of(&[workload(1)], &owned, false);
    assert_eq!(
        text,
        "True UnitsStored: 1 unit stored\nFalse SurplusRunning: 1 of 1 replica available: \
         surplus a@2.service: deactivating (running) on m2"
    );
    owned[1].machine = None;
    owned[1].reports.clear();
    let (_, text) = conditions_of(&[workload(1)], &owned, false);
    assert!(
        text.contains("True ReplicasAvailable"),
        "its record goes with this plan: {text}"
    );
}

#[test]
fn a_deletion_is_final_once_no_machine_has_a_unit() {
    let mut owned = [running(1)];
    let (_, text) = conditions_of(&[], &owned, true);
    assert!(
        text.contains("False StoppingUnits: 1 unit left: a@1.service: active (running) on m1"),
        "{text}"
    );
    owned[0].desired = DesiredState::Inactive;
    owned[0].machine = None;
    let (_, text) = conditions_of(&[], &owned, true);
    assert!(
        text.contains("False StoppingUnits"),
        "a machine still reports it: {text}"
    );
    owned[0].reports.clear();
    let (_, text) = conditions_of(&[], &owned, true);
    assert!(text.contains("True Removed"), "{text}");
    assert!(conditions_of(&[], &[], true).1.contains("True Removed"));
}

#[test]
fn a_resource_without_workload_is_not_applicable_at_last() {
    let (report, text) = conditions_of(&[], &[], false);
    assert_eq!(text.matches("True NotApplicable").count(), 3, "{text}");
    assert_eq!(report.health.reason, "NotApplicable");
    let (_, text) = conditions_of(&[], &[running(1)], false);
    assert!(
        text.contains("False SurplusRunning: 0 of 0 replicas available: surplus a@1.service"),
        "{text}"
    );
}

#[test]
fn what_blocks_is_said_with_what_to_do() {
    let held = Blocker::Held {
        pending: 12,
        removed: 3,
        owned: 20,
        command: "approve".to_owned(),
    };
    let none = BTreeMap::new();
    let (_, text) = conditions_with(&[], &[running(1)], true, Some(&held), &none);
    assert!(
        text.contains("False RemovalHeld: 12 units of 20 would be removed, after 3 in the last ten minutes: if that is meant, run `approve`"),
        "{text}"
    );
    let taken = Blocker::NameTaken {
        unit: "a@1.service".to_owned(),
        owner: "nobody of this adapter".to_owned(),
    };
    let (_, text) = conditions_with(&[workload(1)], &[], false, Some(&taken), &none);
    assert!(
        text.contains("False NameTaken: a@1.service belongs to nobody"),
        "{text}"
    );
    assert!(
        text.contains("False NotStored: 0 of 1 replica available"),
        "{text}"
    );
}

#[test]
fn without_etcd_what_was_said_before_stays_and_health_falls() {
    let before = conditions_of(&[workload(1)], &[running(1)], false).0;
    let report = report_without_etcd(Some(before.clone()), false);
    assert_eq!(
        (&report.available, &report.data),
        (&before.available, &before.data)
    );
    assert_eq!(report.health.reason, "EtcdUnavailable");
    let report = report_without_etcd(None, false);
    assert_eq!(report.available.truth, Truth::False);
    assert_eq!(report.applied.truth, Truth::False);
    let report = report_without_etcd(Some(before), true);
    assert_eq!(report.finalized.unwrap().truth, Truth::False);
}

#[test]
fn health_says_what_of_fleet_is_missing() {
    let said = |has_leader, machines| {
        health(FleetHealth {
            has_leader,
            machines,
        })
        .reason
    };
    assert_eq!(said(true, 1), "Healthy");
    assert_eq!(said(false, 1), "NoEngine");
    assert_eq!(said(true, 0), "NoMachines");
}

#[test]
fn messages_and_data_have_a_limit() {
    let desired = [workload(150)];
    let owned: Vec<OwnedUnit> = (1..=150)
        .map(|index| {
            let mut unit = running(index);
            unit.machine = None;
            unit
        })
        .collect();
    let (report, text) = conditions_of(&desired, &owned, false);
    assert!(text.ends_with("; and 145 more"), "{text}");
    assert_eq!(report.data["units"].as_array().unwrap().len(), 100);
    assert_eq!(report.data["units_left_out"], 50);
}
