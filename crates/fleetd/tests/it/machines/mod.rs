//! Machines with a systemd of their own, on which fleetd runs as it is installed: what becomes of units when services,
//! machines and etcd end. `make test-cluster` runs these alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use hyperfleet_testkit::{PrivateMachine, TestEtcd, until};

use super::program::is_there;

/// Short, so that a machine that dies is missed soon.
const AGENT_TTL: Duration = Duration::from_secs(5);
const SERVICES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/systemd");

struct Cluster {
    etcd: TestEtcd,
    machines: Vec<PrivateMachine>,
}

impl Cluster {
    /// `None` where no machine can be booted.
    async fn boot(count: u32) -> Option<Self> {
        assert!(is_there("nsenter"), "of util-linux, as setpriv");
        let etcd = TestEtcd::start().await;
        let ttl = format!("{}s", AGENT_TTL.as_secs());
        let url = etcd.url();
        let settings = [("ETCD_SERVERS", url.as_str()), ("AGENT_TTL", &ttl)];
        let fleetd = Path::new(env!("CARGO_BIN_EXE_fleetd"));
        let mut machines = Vec::new();
        for number in 1..=count {
            let booted = PrivateMachine::boot(number, fleetd, Path::new(SERVICES), &settings);
            machines.push(booted.await?);
        }
        let cluster = Self { etcd, machines };
        cluster.until_members(machines_of(&cluster.machines)).await;
        Some(cluster)
    }

    /// The answer of the first machine's API.
    async fn get(&self, path: &str) -> Value {
        get(&self.machines[0], path).await
    }

    async fn until_members(&self, ids: BTreeSet<String>) {
        until("they are members", async || {
            let machines = self.get("/machines").await;
            let machines = machines["machines"].as_array().cloned().unwrap_or_default();
            let members = machines
                .iter()
                .map(|machine| machine["id"].as_str().unwrap().to_owned());
            members.collect::<BTreeSet<_>>() == ids
        })
        .await;
    }

    async fn launch(&self, unit: &str) {
        let option = json!({"section": "Service", "name": "ExecStart", "value": "/bin/sleep 1000"});
        let body = json!({"desiredState": "launched", "options": [option]});
        let url = format!("http://fleet/fleet/v1/units/{unit}");
        // While etcd has just come back it is refused.
        until(&format!("{unit} is taken"), async || {
            let request = client(&self.machines[0]).put(&url);
            let request = request.header("content-type", "application/json");
            let answer = request.body(body.to_string()).send().await;
            answer.is_ok_and(|answer| answer.status().is_success())
        })
        .await;
    }

    /// Waits until so many units are reported to be active; gives the machine of each.
    async fn until_active(&self, count: usize) -> BTreeMap<String, String> {
        let mut active = BTreeMap::new();
        until(&format!("{count} units are active"), async || {
            let states = self.get("/state").await;
            let states = states["states"].as_array().cloned().unwrap_or_default();
            let states = states
                .iter()
                .filter(|state| state["systemdActiveState"] == "active");
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            active = states
                .map(|state| (text(&state["name"]), text(&state["machineID"])))
                .collect();
            active.len() == count
        })
        .await;
        active
    }

    /// The main process of each unit, where it runs.
    fn processes(&self, active: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let process = |(unit, id): (&String, &String)| {
            let machine = self.machines.iter().find(|machine| machine.id == *id)?;
            Some((unit.clone(), machine.property(unit, "MainPID")))
        };
        active.iter().filter_map(process).collect()
    }
}

fn machines_of(machines: &[PrivateMachine]) -> BTreeSet<String> {
    machines.iter().map(|machine| machine.id.clone()).collect()
}

fn client(machine: &PrivateMachine) -> reqwest::Client {
    hyperfleet_server_kit::crypto::install();
    let client = reqwest::Client::builder().unix_socket(machine.socket());
    client.timeout(Duration::from_secs(10)).build().unwrap()
}

/// What the API of a machine answers; nothing while it does not.
async fn get(machine: &PrivateMachine, path: &str) -> Value {
    let request = client(machine).get(format!("http://fleet/fleet/v1{path}"));
    let Ok(answer) = request.send().await else {
        return Value::Null;
    };
    let text = answer.text().await.unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

#[tokio::test]
async fn as_it_is_installed_fleetd_keeps_units_over_its_own_restarts() {
    let Some(cluster) = Cluster::boot(1).await else {
        return;
    };
    let machine = &cluster.machines[0];
    for unit in ["a.service", "b.service"] {
        cluster.launch(unit).await;
    }
    let active = cluster.until_active(2).await;
    let before = cluster.processes(&active);
    assert!(before.values().all(|pid| pid != "0"), "{before:?}");
    for verb in ["restart", "reload", "kill --signal=KILL", "stop"] {
        let mut arguments = vec!["systemctl"];
        arguments.extend(verb.split(' '));
        arguments.push("fleetd.service");
        let output = machine.run(&arguments);
        assert!(output.status.success(), "{verb}: {output:?}");
        // The socket starts it, where it does not run.
        assert_eq!(cluster.until_active(2).await, active, "{verb}");
        until("it runs", async || {
            machine.property("fleetd.service", "ActiveState") == "active"
        })
        .await;
        assert_eq!(cluster.processes(&active), before, "{verb}");
    }
    let said = machine.log();
    assert!(
        !said.contains("unit unloaded") && !said.contains("ERROR"),
        "{said}"
    );
}

#[tokio::test]
async fn units_of_a_machine_that_dies_run_elsewhere_and_the_others_are_not_touched() {
    let Some(mut cluster) = Cluster::boot(3).await else {
        return;
    };
    for number in 0..6 {
        cluster.launch(&format!("u{number}.service")).await;
    }
    let active = cluster.until_active(6).await;
    let dead = cluster.machines.pop().unwrap();
    let lost: BTreeSet<_> = active
        .iter()
        .filter(|(_, id)| **id == dead.id)
        .map(|(unit, _)| unit.clone())
        .collect();
    assert_eq!(lost.len(), 2, "{active:?}");
    let before = cluster.processes(&active);
    assert_eq!(before.len(), 4);
    // A new term, and one after a silence, waits for machines that are away.
    tokio::time::sleep(AGENT_TTL * 2).await;
    let id = dead.id.clone();
    drop(dead);
    let since = Instant::now();
    cluster.until_members(machines_of(&cluster.machines)).await;
    let gone = since.elapsed();
    let after = cluster.until_active(6).await;
    println!(
        "lost after {gone:?}, all active after {:?}",
        since.elapsed()
    );
    assert!(after.values().all(|machine| *machine != id), "{after:?}");
    let now = cluster.processes(&after);
    for (unit, pid) in &before {
        assert_eq!(now[unit], *pid, "{unit}");
    }
}

#[tokio::test]
async fn while_etcd_is_away_no_process_is_touched() {
    let Some(mut cluster) = Cluster::boot(2).await else {
        return;
    };
    for number in 0..4 {
        cluster.launch(&format!("u{number}.service")).await;
    }
    let active = cluster.until_active(4).await;
    let before = cluster.processes(&active);
    cluster.etcd.kill();
    tokio::time::sleep(AGENT_TTL * 3).await;
    assert_eq!(cluster.processes(&active), before);
    cluster.etcd.resume().await;
    cluster.launch("late.service").await;
    let mut after = cluster.until_active(5).await;
    after.remove("late.service");
    assert_eq!(after, active);
    assert_eq!(cluster.processes(&active), before);
}
