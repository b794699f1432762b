//! Restarts leave no unit stopped, or name those that they do.

use std::sync::{Arc, Mutex};

use hyperfleet_testkit::{RunningProgram, until};
use rustix::process::Signal;
use serde_json::json;

use crate::cluster::{Cluster, FIRST, SHORT};
use crate::operations::ask;
use crate::program::{Ran, command};
use crate::stub::{Reply, Stub};

#[tokio::test]
async fn restart_stops_units_and_starts_them_again() {
    let cluster = Cluster::of(&[FIRST]).await;
    for name in ["a.service", "b.service", "c.service", "d.service"] {
        cluster.service(name);
    }
    cluster.run(&["start", "a", "b"]).await.succeeded();
    cluster.run(&["load", "c"]).await.succeeded();
    cluster.run(&["submit", "d"]).await.succeeded();
    // It is reported as stopped only when the test says so.
    let systemd = cluster.machines[0].systemd.clone();
    systemd.with(|state| state.stops_slowly.insert("b.service".to_owned()));
    let finish = async {
        until("b is stopping", async || {
            cluster.machines[0]
                .stopped()
                .contains(&"b.service".to_owned())
        })
        .await;
        until("b is not started before it has stopped", async || {
            cluster.get("units/b.service").await["desiredState"] == "loaded"
        })
        .await;
        assert!(!cluster.running().contains(&"b.service".to_owned()));
        systemd.finish_stopping("b.service");
    };
    let (restarted, ()) = tokio::join!(cluster.run(&["restart", "a", "b", "c", "d"]), finish);
    let mut lines: Vec<_> = restarted.output.lines().collect();
    lines.sort_unstable();
    let expected = ["a", "b", "c"].map(|name| format!("Unit {name}.service launched on {SHORT}"));
    assert_eq!(lines, expected);
    assert_eq!(
        restarted.errors,
        "Unable to restart unit d.service in state inactive\n"
    );
    assert_eq!(restarted.status, 1);
    let mut stopped = cluster.machines[0].stopped();
    stopped.sort();
    assert_eq!(stopped, ["a.service", "b.service"]);
    assert_eq!(cluster.running(), ["a.service", "b.service", "c.service"]);
}

#[tokio::test]
async fn a_unit_that_does_not_stop_in_time_is_not_left_stopped() {
    let cluster = Cluster::of(&[FIRST]).await;
    cluster.service("a.service");
    cluster.run(&["start", "a"]).await.succeeded();
    let systemd = &cluster.machines[0].systemd;
    systemd.with(|state| state.stops_slowly.insert("a.service".to_owned()));
    let restarted = cluster.run(&["restart", "--block-attempts=1", "a"]).await;
    assert_eq!(restarted.status, 1, "{restarted:?}");
    let words = "Error waiting for units: timed out waiting for unit a.service to stop";
    assert!(restarted.errors.starts_with(words), "{restarted:?}");
    assert_eq!(
        cluster.get("units/a.service").await["desiredState"],
        json!("launched")
    );
}

#[tokio::test]
async fn a_restart_that_is_interrupted_leaves_no_unit_stopped() {
    let cluster = Cluster::of(&[FIRST]).await;
    cluster.service("a.service");
    cluster.run(&["start", "a"]).await.succeeded();
    let systemd = &cluster.machines[0].systemd;
    systemd.with(|state| state.stops_slowly.insert("a.service".to_owned()));
    let endpoint = [("FLEETCTL_ENDPOINT", cluster.fleet.base.as_str())];
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let restart = command(&endpoint, &["restart", "a"]).into_std();
        // Where the tests themselves run without SIGHUP, fleetctl would, too.
        let mut program = std::process::Command::new("env");
        program
            .arg("--default-signal=HUP")
            .arg(restart.get_program())
            .args(restart.get_args());
        for (name, value) in restart.get_envs() {
            match value {
                Some(value) => program.env(name, value),
                None => program.env_remove(name),
            };
        }
        program.stdin(std::process::Stdio::null());
        let mut program = RunningProgram::start(program);
        until("it is stopping", async || {
            cluster.get("units/a.service").await["desiredState"] == "loaded"
        })
        .await;
        program.signal(signal);
        assert_eq!(program.ended().await.code(), Some(1), "{signal:?}");
        assert!(
            program.output().starts_with("interrupted: "),
            "{}",
            program.output()
        );
        let unit = cluster.get("units/a.service").await;
        assert_eq!(unit["desiredState"], json!("launched"));
    }
}

/// Restarts `a.service` on a server that answers the orders to start it with these, and with success afterwards.
async fn restart_with(answers: Vec<Reply>) -> Ran {
    let (orders, mut answers) = (Arc::new(Mutex::new(0)), answers.into_iter());
    let stub = Stub::spawn(move |line| {
        let mut orders = orders.lock().unwrap();
        let (desired, active) = match *orders {
            1 => ("loaded", "inactive"),
            _ => ("launched", "active"),
        };
        match line {
            "GET /units/a.service" => Reply::Json(
                200,
                json!({"name": "a.service", "desiredState": desired, "currentState": desired}),
            ),
            "GET /state/a.service" => Reply::Json(
                200,
                json!({"name": "a.service", "systemdLoadState": "loaded", "systemdActiveState": active}),
            ),
            "PUT /units/a.service" => {
                let answer = if *orders == 1 { answers.next() } else { None };
                if answer.is_none() {
                    *orders += 1;
                }
                answer.unwrap_or(Reply::empty(204))
            }
            _ => Reply::error(404, ""),
        }
    })
    .await;
    ask(&stub, &["restart", "a"]).await
}

#[tokio::test]
async fn a_unit_is_started_again_when_the_server_was_away_for_a_moment() {
    let away = Reply::error(503, "stopping");
    let restarted = restart_with(vec![away.clone(), away]).await;
    restarted.is(0, "Unit a.service launched\n", "");
}

#[tokio::test]
async fn a_unit_that_cannot_be_started_again_is_named() {
    let refused = restart_with(vec![Reply::error(403, "not allowed")]).await;
    refused.is(
        1,
        "",
        "Unit a.service is left loaded: run fleetctl start a.service\n\
         Error restarting units: not allowed (status 403)\n",
    );
}

#[tokio::test]
async fn a_second_signal_names_units_that_are_left_stopped() {
    let orders = Arc::new(Mutex::new(0));
    let stub = Stub::spawn(move |line| {
        let mut orders = orders.lock().unwrap();
        match line {
            "GET /units/a.service" => {
                let desired = if *orders == 0 { "launched" } else { "loaded" };
                let unit = json!({"name": "a.service", "desiredState": desired, "currentState": "launched"});
                Reply::Json(200, unit)
            }
            "PUT /units/a.service" => {
                *orders += 1;
                Reply::empty(if *orders == 1 { 204 } else { 503 })
            }
            _ => Reply::error(404, ""),
        }
    })
    .await;
    let endpoint = stub.base();
    let command = command(&[("FLEETCTL_ENDPOINT", &endpoint)], &["restart", "a"]);
    let mut program = RunningProgram::start(command.into_std());
    let count = |start: &str| stub.lines().iter().filter(|l| l.starts_with(start)).count();
    until("it waits", async || count("GET /state/a.service") > 0).await;
    program.signal(Signal::INT);
    until("it tries to start the unit", async || count("PUT") > 1).await;
    program.signal(Signal::INT);
    assert_eq!(program.ended().await.code(), Some(130));
    let words = "Unit a.service is left loaded: run fleetctl start a.service\n";
    assert_eq!(program.output(), words);
}
