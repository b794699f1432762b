//! Restarts and stops: an order to every machine that has a unit.

use std::time::Duration;

use serde_json::json;

use super::cluster::{fleet_of, launch, until_on};
use super::error;
use hyperfleet_testkit::{SimulatedMachine, TestFleet, until};

async fn restart(fleet: &TestFleet, unit: &str) -> (u16, serde_json::Value) {
    order(fleet, unit, "restart").await
}

async fn order(fleet: &TestFleet, unit: &str, order: &str) -> (u16, serde_json::Value) {
    let path = format!("/fleet/v1/units/{unit}/{order}");
    let answer = fleet.send("POST", &path, &[], "").await;
    (answer.status, answer.body)
}

fn restarts(machine: &SimulatedMachine, unit: &str) -> usize {
    let call = format!("restart {unit}");
    machine
        .systemd
        .with(|state| state.calls.iter().filter(|made| **made == call).count())
}

#[tokio::test]
async fn every_machine_restarts_a_unit_once_for_each_order() {
    let (fleet, mut machines) = fleet_of(&["m1", "m2"]).await;
    launch(&fleet, "a.service", &[]).await;
    launch(&fleet, "all.service", &[("Global", "true")]).await;
    until_on(&fleet, "a.service", "m1").await;
    until("the global unit runs", async || {
        machines.iter().all(|m| m.running().contains("all.service"))
    })
    .await;
    for count in 1..=2 {
        assert_eq!(restart(&fleet, "a.service").await.0, 202);
        assert_eq!(restart(&fleet, "all.service").await.0, 202);
        until("all are restarted", async || {
            restarts(&machines[0], "a.service") == count
                && machines.iter().all(|m| restarts(m, "all.service") == count)
        })
        .await;
    }
    assert_eq!(restarts(&machines[1], "a.service"), 0);
    let unit = fleet.get("/fleet/v1/units/a.service").await.body;
    assert_eq!(
        (&unit["desiredState"], &unit["currentState"]),
        (&json!("launched"), &json!("launched"))
    );
    // An agent that starts again remembers which orders it has followed.
    machines[0].restart(fleet.registry.clone(), "m1", 60);
    launch(&fleet, "b.service", &[("MachineID", "m1")]).await;
    until_on(&fleet, "b.service", "m1").await;
    assert_eq!(restarts(&machines[0], "a.service"), 2);
    assert!(machines.iter().all(|machine| machine.stopped().is_empty()));
}

#[tokio::test]
async fn a_later_unit_ignores_older_restart_orders() {
    let (fleet, machines) = fleet_of(&["m1", "m2"]).await;
    launch(&fleet, "a.service", &[]).await;
    until_on(&fleet, "a.service", "m1").await;
    assert_eq!(restart(&fleet, "a.service").await.0, 202);
    until("it is restarted", async || {
        restarts(&machines[0], "a.service") == 1
    })
    .await;
    let path = "/fleet/v1/machines/m1/drain";
    assert_eq!(fleet.send("PUT", path, &[], "").await.status, 204);
    until_on(&fleet, "a.service", "m2").await;
    let body = json!({"desiredState": "loaded"});
    assert_eq!(fleet.put("/units/a.service", &body).await.status, 204);
    until("it is stopped", async || machines[1].running().is_empty()).await;
    let body = json!({"desiredState": "launched"});
    assert_eq!(fleet.put("/units/a.service", &body).await.status, 204);
    until("it is started", async || {
        machines[1].running().contains("a.service")
    })
    .await;
    assert_eq!(restarts(&machines[1], "a.service"), 0);
}

#[tokio::test]
async fn what_is_not_to_run_is_not_restarted() {
    let (fleet, _machines) = fleet_of(&["m1"]).await;
    let gone = restart(&fleet, "a.service").await;
    assert_eq!(gone, (404, error(404, "unit does not exist")));
    let options = [json!({"section": "Service", "name": "ExecStart", "value": "/bin/true"})];
    let body = json!({"options": options});
    assert_eq!(fleet.put("/units/a.service", &body).await.status, 201);
    let message = "cannot restart a.service: its desired state is not launched";
    assert_eq!(
        restart(&fleet, "a.service").await,
        (409, error(409, message))
    );
}

#[tokio::test]
async fn a_loaded_unit_that_systemd_started_is_stopped() {
    let (fleet, machines) = fleet_of(&["m1"]).await;
    launch(&fleet, "a.service", &[]).await;
    until_on(&fleet, "a.service", "m1").await;
    let message = "cannot stop a.service: its desired state is not loaded";
    let refused = order(&fleet, "a.service", "stop").await;
    assert_eq!(refused, (409, error(409, message)));
    let body = json!({"desiredState": "loaded"});
    assert_eq!(fleet.put("/units/a.service", &body).await.status, 204);
    until("it is stopped", async || machines[0].running().is_empty()).await;
    for count in 2..=3 {
        machines[0].systemd.start_by_itself("a.service");
        assert_eq!(order(&fleet, "a.service", "stop").await.0, 202);
        until("it is stopped again", async || {
            machines[0].running().is_empty() && machines[0].stopped().len() == count
        })
        .await;
    }
}

#[tokio::test]
async fn a_stop_and_a_start_that_arrive_together_are_a_restart() {
    let (fleet, machines) = fleet_of(&["m1"]).await;
    for unit in ["a.service", "b.service"] {
        launch(&fleet, unit, &[]).await;
        until_on(&fleet, unit, "m1").await;
    }
    // While the agent is busy with another unit, both orders arrive.
    let delay = Duration::from_millis(200);
    machines[0].systemd.with(|state| state.delay = delay);
    for count in 1..=2 {
        assert_eq!(restart(&fleet, "b.service").await.0, 202);
        until("the agent is busy", async || {
            restarts(&machines[0], "b.service") == count
        })
        .await;
        for state in ["loaded", "launched"] {
            let body = json!({"desiredState": state});
            assert_eq!(fleet.put("/units/a.service", &body).await.status, 204);
        }
        until("it has stopped and runs", async || {
            restarts(&machines[0], "a.service") + machines[0].stopped().len() == count
                && machines[0].running().contains("a.service")
        })
        .await;
    }
}
