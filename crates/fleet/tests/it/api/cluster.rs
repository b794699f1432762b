//! A whole cluster behind the API: an engine, and agents on simulated machines.

use serde_json::json;

use hyperfleet_testkit::{SimulatedMachine, TestFleet, engine_settings, run_engine, until};

/// A fleet with an engine, and machines of these ids with agents.
pub(super) async fn fleet_of(ids: &[&str]) -> (TestFleet, Vec<SimulatedMachine>) {
    let fleet = TestFleet::spawn().await;
    let settings = engine_settings("e1");
    let engine = run_engine(fleet.registry.clone(), settings, std::future::pending());
    tokio::spawn(engine);
    let start = |id: &&str| SimulatedMachine::start(fleet.registry.clone(), id, 60);
    let machines: Vec<_> = ids.iter().map(start).collect();
    until("they are members", async || {
        let listed = fleet.get("/fleet/v1/machines").await.body;
        listed["machines"]
            .as_array()
            .is_some_and(|all| all.len() == ids.len())
    })
    .await;
    (fleet, machines)
}

pub(super) async fn launch(fleet: &TestFleet, unit: &str, lines: &[(&str, &str)]) {
    let option = |(name, value): &(&str, &str)| {
        let section = if *name == "ExecStart" {
            "Service"
        } else {
            "X-Fleet"
        };
        json!({"section": section, "name": name, "value": value})
    };
    let mut options = vec![option(&("ExecStart", "/bin/true"))];
    options.extend(lines.iter().map(option));
    let body = json!({"desiredState": "launched", "options": options});
    let answer = fleet.put(&format!("/fleet/v1/units/{unit}"), &body).await;
    assert_eq!(answer.status, 201, "{}", answer.body);
}

pub(super) async fn until_on(fleet: &TestFleet, unit: &str, machine: &str) {
    until(&format!("{unit} runs on {machine}"), async || {
        let unit = fleet.get(&format!("/fleet/v1/units/{unit}")).await.body;
        unit["machineID"] == machine && unit["currentState"] == "launched"
    })
    .await;
}
