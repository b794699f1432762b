//! Cordon and drain, with an engine that moves units and agents that run them.

use serde_json::{Value, json};

use super::cluster::{fleet_of, launch, until_on};
use super::error;
use hyperfleet_fleet::agent::Leave;
use hyperfleet_testkit::{SimulatedMachine, TestFleet, until};

async fn drain(fleet: &TestFleet, machine: &str, body: &str) -> u16 {
    let path = format!("/fleet/v1/machines/{machine}/drain");
    fleet.send("PUT", &path, &[], body).await.status
}

async fn progress(fleet: &TestFleet, machine: &str) -> Value {
    let path = format!("/fleet/v1/machines/{machine}/drain");
    fleet.get(&path).await.body
}

#[tokio::test]
async fn a_cordoned_machine_gets_no_unit_until_it_is_uncordoned() {
    let (fleet, _machines) = fleet_of(&["m1", "m2"]).await;
    let path = "/fleet/v1/machines/m1/cordon";
    for _ in 0..2 {
        assert_eq!(fleet.send("PUT", path, &[], "").await.status, 204);
    }
    let listed = fleet.get("/fleet/v1/machines").await.body;
    assert_eq!(listed["machines"][0]["cordoned"], true, "{listed}");
    assert_eq!(listed["machines"][1].get("cordoned"), None, "{listed}");
    launch(&fleet, "a.service", &[]).await;
    launch(&fleet, "b.service", &[]).await;
    until_on(&fleet, "a.service", "m2").await;
    until_on(&fleet, "b.service", "m2").await;
    assert_eq!(fleet.delete(path).await.status, 204);
    launch(&fleet, "c.service", &[]).await;
    until_on(&fleet, "c.service", "m1").await;
}

#[tokio::test]
async fn a_drained_machine_is_left_by_what_others_can_run() {
    let (fleet, machines) = fleet_of(&["m1", "m2"]).await;
    launch(&fleet, "a.service", &[]).await;
    until_on(&fleet, "a.service", "m1").await;
    launch(&fleet, "stays.service", &[("MachineID", "m1")]).await;
    launch(&fleet, "lead.service", &[("MachineID", "m1")]).await;
    launch(&fleet, "next.service", &[("MachineOf", "lead.service")]).await;
    for unit in ["stays.service", "lead.service", "next.service"] {
        until_on(&fleet, unit, "m1").await;
    }
    assert_eq!(drain(&fleet, "m1", "").await, 204);
    until_on(&fleet, "a.service", "m2").await;
    until("the unit that moved says why", async || {
        let explained = fleet.get("/fleet/v1/units/a.service/explain").await.body;
        let reason =
            "placed on m2, and launched there; moved from m1 (target Machine(m1) is being drained)";
        explained["reason"] == reason
    })
    .await;
    until("what stays is explained", async || {
        let left = progress(&fleet, "m1").await;
        let units = left["units"].as_array().unwrap();
        units.len() == 3 && units.iter().all(|unit| unit["reason"].is_string())
    })
    .await;
    let left = progress(&fleet, "m1").await;
    assert_eq!(
        left,
        json!({"cordoned": true, "draining": true, "machineID": "m1", "unitCount": 3, "units": [
            {"name": "lead.service", "reason": "no machine can run it: MachineID=m1: 1 machine (m2); cordoned: 1 machine (m1)"},
            {"name": "next.service", "reason": "no machine can run it together with lead.service"},
            {"name": "stays.service", "reason": "no machine can run it: MachineID=m1: 1 machine (m2); cordoned: 1 machine (m1)"},
        ]})
    );
    let explained = fleet
        .get("/fleet/v1/units/stays.service/explain")
        .await
        .body;
    let reason = explained["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("placed on m1, and launched there; m1 is being drained, but no machine"),
        "{reason}"
    );
    assert_eq!(explained["refusals"][0]["requirement"], "MachineID=m1");
    // Taken back, what is left may stay, and nothing is said of it any more.
    let path = "/fleet/v1/machines/m1/cordon";
    assert_eq!(fleet.delete(path).await.status, 204);
    let none = json!({"cordoned": false, "draining": false});
    let left = progress(&fleet, "m1").await;
    assert_eq!(left["cordoned"], none["cordoned"], "{left}");
    assert_eq!(left["units"][0], json!({"name": "lead.service"}), "{left}");
    let stopped = machines[0].stopped();
    assert_eq!(stopped, ["a.service"], "what stayed was not touched");
}

#[tokio::test]
async fn a_drain_ends_at_its_deadline_and_the_machine_stays_cordoned() {
    let (fleet, _machines) = fleet_of(&["m1"]).await;
    launch(&fleet, "a.service", &[]).await;
    until_on(&fleet, "a.service", "m1").await;
    assert_eq!(drain(&fleet, "m1", r#"{"deadlineSeconds":1}"#).await, 204);
    until("it is over", async || {
        progress(&fleet, "m1").await["draining"] == false
    })
    .await;
    let left = progress(&fleet, "m1").await;
    assert_eq!(
        left,
        json!({"cordoned": true, "draining": false, "machineID": "m1", "unitCount": 1,
            "units": [{"name": "a.service"}]})
    );
    // Asked again, it has no deadline; and may be taken back by itself.
    assert_eq!(drain(&fleet, "m1", "{}").await, 204);
    assert_eq!(progress(&fleet, "m1").await["draining"], true);
    let path = "/fleet/v1/machines/m1/drain";
    assert_eq!(fleet.delete(path).await.status, 204);
    assert_eq!(progress(&fleet, "m1").await["draining"], false);
}

#[tokio::test]
async fn a_unit_that_must_never_run_twice_starts_once_it_has_stopped() {
    let (fleet, machines) = fleet_of(&["m1", "m2"]).await;
    launch(&fleet, "one.service", &[("Singleton", "true")]).await;
    until_on(&fleet, "one.service", "m1").await;
    let slow = "one.service".to_owned();
    machines[0]
        .systemd
        .with(|state| state.stops_slowly.insert(slow));
    assert_eq!(drain(&fleet, "m1", "").await, 204);
    until("the engine says what it waits for", async || {
        let explained = fleet.get("/fleet/v1/units/one.service/explain").await.body;
        explained["reason"] == "waits until m1 has stopped it: it must never run twice"
    })
    .await;
    assert_eq!(machines[0].stopped(), ["one.service"]);
    assert!(machines[1].running().is_empty(), "it runs twice");
    machines[0].systemd.finish_stopping("one.service");
    until_on(&fleet, "one.service", "m2").await;
}

#[tokio::test]
async fn what_is_no_machine_or_no_deadline_is_refused() {
    let (fleet, _machines) = fleet_of(&["m1"]).await;
    for (method, path) in [
        ("PUT", "/fleet/v1/machines/m9/cordon"),
        ("PUT", "/fleet/v1/machines/m9/drain"),
        ("GET", "/fleet/v1/machines/m9/drain"),
        ("PUT", "/fleet/v1/machines/a%20b/drain"),
        ("GET", "/fleet/v1/machines/a%20b/drain"),
    ] {
        let answer = fleet.send(method, path, &[], "").await;
        let expected = (404, error(404, "machine does not exist"));
        assert_eq!((answer.status, answer.body), expected, "{method} {path}");
    }
    for body in [
        "[",
        "[]",
        r#"{"deadlineSeconds":0}"#,
        r#"{"deadlineSeconds":"1m"}"#,
    ] {
        assert_eq!(drain(&fleet, "m1", body).await, 400, "{body}");
    }
    let path = "/fleet/v1/machines/m1/cordon";
    let answer = fleet.get(path).await;
    assert_eq!(answer.status, 405);
    assert_eq!(answer.header("allow"), Some("PUT, DELETE"));
    assert_eq!(progress(&fleet, "m1").await["cordoned"], false);
}

#[tokio::test]
async fn a_machine_is_cordoned_over_its_restarts() {
    let (fleet, mut machines) = fleet_of(&["m1", "m2"]).await;
    assert_eq!(drain(&fleet, "m1", "").await, 204);
    machines[0].restart(fleet.registry.clone(), "m1", 60);
    launch(&fleet, "a.service", &[]).await;
    until_on(&fleet, "a.service", "m2").await;
}

#[tokio::test]
async fn an_agent_that_is_to_end_hands_its_units_over_first() {
    let (fleet, mut machines) = fleet_of(&["m1", "m2"]).await;
    launch(&fleet, "a.service", &[]).await;
    until_on(&fleet, "a.service", "m1").await;
    launch(&fleet, "stays.service", &[("MachineID", "m1")]).await;
    launch(&fleet, "all.service", &[("Global", "true")]).await;
    until_on(&fleet, "stays.service", "m1").await;
    let mut first = machines.remove(0);
    first.leave(Leave::Moved).await;
    // By now it runs elsewhere, and what cannot is stopped.
    assert!(machines[0].running().contains("a.service"));
    assert!(first.running().is_empty(), "all are stopped");
    let snapshot = fleet.registry.snapshot().await.unwrap();
    assert!(!snapshot.machines.contains_key("m1"));
    assert!(snapshot.drains.is_empty() && snapshot.cordons.is_empty());
    // It comes back as it was.
    let _back = SimulatedMachine::start(fleet.registry.clone(), "m1", 60);
    until_on(&fleet, "stays.service", "m1").await;
}

#[tokio::test]
async fn a_singleton_is_reported_before_it_is_started() {
    let fleet = TestFleet::spawn().await;
    let mut reports = fleet.machine("m1").await;
    launch(&fleet, "one.service", &[("Singleton", "true")]).await;
    fleet.place("one.service", "m1").await;
    let snapshot = fleet.registry.snapshot().await.unwrap();
    let (key, run) = snapshot.runs.first_key_value().unwrap();
    assert_eq!(key.unit, "one.service");
    let mut claim = async |at| {
        let claimed = reports
            .claim(&fleet.registry, "one.service", "hash", at)
            .await;
        claimed.unwrap()
    };
    assert!(!claim(run.revision - 1).await, "the order was another one");
    let states = fleet.registry.snapshot().await.unwrap().states;
    assert!(states.is_empty(), "{states:?}");
    assert!(claim(run.revision).await);
    let states = fleet.registry.snapshot().await.unwrap().states;
    assert_eq!(states.len(), 1);
    assert!(reports.has("one.service"));
}

#[tokio::test]
async fn a_drain_that_an_operator_has_asked_for_outlives_a_hand_over() {
    let (fleet, mut machines) = fleet_of(&["m1", "m2"]).await;
    launch(&fleet, "a.service", &[("MachineID", "m1")]).await;
    until_on(&fleet, "a.service", "m1").await;
    assert_eq!(drain(&fleet, "m1", "").await, 204);
    machines.remove(0).leave(Leave::Moved).await;
    let snapshot = fleet.registry.snapshot().await.unwrap();
    assert!(snapshot.drains.contains_key("m1"));
    assert!(!snapshot.machines.contains_key("m1"));
}
