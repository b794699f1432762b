//! Commands for operators: cordon, drain, rebalance, resume, doctor.

use std::sync::{Arc, Mutex};

use hyperfleet_testkit::RunningProgram;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::cluster::{Cluster, FIRST, SECOND};
use crate::program::{Ran, command, run};
use crate::stub::{Reply, Stub};

pub(crate) fn machines() -> Reply {
    Reply::Json(
        200,
        json!({"machines": [
            {"id": FIRST, "primaryIP": "192.0.2.1", "version": env!("CARGO_PKG_VERSION")},
            {"id": SECOND, "primaryIP": "192.0.2.2", "cordoned": true, "draining": true},
        ]}),
    )
}

pub(crate) async fn ask(stub: &Stub, arguments: &[&str]) -> Ran {
    run(&[("FLEETCTL_ENDPOINT", &stub.base())], arguments).await
}

#[tokio::test]
async fn machines_are_cordoned_by_prefixes_of_their_ids() {
    let stub = Stub::spawn(|line| match line {
        "GET /machines" => machines(),
        line if line.contains(SECOND) => Reply::error(404, "machine does not exist"),
        _ => Reply::empty(204),
    })
    .await;
    ask(&stub, &["cordon", "0f1e"])
        .await
        .is(0, &format!("Machine {FIRST} cordoned\n"), "");
    ask(&stub, &["uncordon", FIRST])
        .await
        .is(0, &format!("Machine {FIRST} uncordoned\n"), "");
    let refused = ask(&stub, &["cordon", "x", SECOND, FIRST]).await;
    assert_eq!(
        (refused.status, refused.output),
        (1, format!("Machine {FIRST} cordoned\n"))
    );
    assert_eq!(
        refused.errors,
        format!(
            "Could not find machine x; fleetctl list-machines --full lists them\nUnable to cordon machine {SECOND}: machine does not exist\n"
        )
    );
    let path = format!("/machines/{FIRST}/cordon");
    let changes: Vec<String> = stub.changes().into_iter().map(|(line, _)| line).collect();
    assert_eq!(
        changes[..2],
        [format!("PUT {path}"), format!("DELETE {path}")]
    );
    // Columns that are not asked for are at the end.
    let listed = ask(&stub, &["list-machines", "--no-legend"]).await;
    let line = "1f1e2d3c...\t192.0.2.2\t-\tdraining\n";
    assert!(listed.output.contains(line), "{listed:?}");
    let listed = ask(&stub, &["list-machines", "--fields=machine,state,version"]).await;
    let lines = concat!(
        "MACHINE\t\tSTATE\t\tVERSION\n0f1e2d3c...\tready\t\t",
        env!("CARGO_PKG_VERSION"),
        "\n1f1e2d3c...\tdraining\t-\n"
    );
    listed.is(0, lines, "");
}

#[tokio::test]
async fn a_server_without_a_route_is_named_as_such() {
    let stub = Stub::spawn(|line| match line {
        "GET /machines" => machines(),
        _ => Reply::error(404, ""),
    })
    .await;
    for (arguments, words) in [
        (
            &["cordon", FIRST][..],
            "this version of fleetd cannot cordon machines",
        ),
        (
            &["drain", FIRST],
            "this version of fleetd cannot cordon machines",
        ),
        (&["rebalance"], "this version of fleetd cannot rebalance"),
    ] {
        let ran = ask(&stub, arguments).await;
        assert_eq!(ran.status, 1);
        assert!(
            ran.errors.contains(words) || ran.errors.contains("cannot drain machines"),
            "{ran:?}"
        );
    }
}

/// The state of a drain with these units left.
fn progress(is_draining: bool, units: &Value) -> Value {
    let count = units.as_array().unwrap().len();
    json!({"machineID": FIRST, "cordoned": true, "draining": is_draining, "unitCount": count, "units": units})
}

/// A machine whose drain goes through these steps; the last one stays.
async fn draining(steps: Vec<Value>) -> Stub {
    let count = Arc::new(Mutex::new(0));
    Stub::spawn(move |line| {
        if line == "GET /machines" {
            return machines();
        }
        if line != format!("GET /machines/{FIRST}/drain") {
            return Reply::empty(204);
        }
        let mut count = count.lock().unwrap();
        let step = &steps[(*count).min(steps.len() - 1)];
        *count += 1;
        Reply::Json(200, step.clone())
    })
    .await
}

#[tokio::test]
async fn a_drain_is_followed_until_no_unit_is_left() {
    let both = json!([{"name": "a"}, {"name": "b"}]);
    // The first answer may be older than the order.
    let steps = [
        progress(false, &both),
        progress(true, &both),
        progress(true, &json!([{"name": "b"}])),
        progress(true, &json!([])),
    ];
    let stub = draining(steps.to_vec()).await;
    let drained = ask(&stub, &["drain", "0f1e2d3c", "--deadline", "2m"]).await;
    let lines = format!("Machine {FIRST} cordoned, draining\nMachine {FIRST} drained\n");
    drained.is(0, &lines, "");
    let changes = stub.changes();
    assert_eq!(
        changes[0],
        (format!("PUT /machines/{FIRST}/cordon"), String::new())
    );
    let body: Value = serde_json::from_str(&changes[1].1).unwrap();
    let order = format!("PUT /machines/{FIRST}/drain");
    assert_eq!(
        (&changes[1].0, body),
        (&order, json!({"deadlineSeconds": 120}))
    );
    let unblocked = ask(&stub, &["drain", FIRST, "--no-block"]).await;
    unblocked.is(0, &format!("Machine {FIRST} cordoned, draining\n"), "");
}

#[tokio::test]
async fn a_drain_that_ends_with_units_left_lists_them() {
    let units =
        json!([{"name": "a.service", "reason": "no machine can run it"}, {"name": "b.service"}]);
    let steps = vec![progress(true, &units), progress(false, &units)];
    let stuck = ask(&draining(steps.clone()).await, &["drain", FIRST]).await;
    assert_eq!(stuck.status, 1);
    assert_eq!(
        stuck.errors,
        format!(
            "Machine {FIRST}: the drain has ended with 2 units left; the machine stays cordoned:\n  a.service: no machine can run it\n  b.service\n"
        )
    );
    let json = ask(&draining(steps).await, &["drain", FIRST, "-o", "json"]).await;
    let result: Value = serde_json::from_str(&json.output).unwrap();
    let expected = json!([{"machine": FIRST, "drained": false, "units": units}]);
    assert_eq!(
        (json.status, result, json.errors.as_str()),
        (1, expected, "")
    );
}

#[tokio::test]
async fn a_drain_that_waits_says_for_what() {
    let stuck = json!([{"name": "a.service", "reason": "no machine can run it"}]);
    let stub = draining(vec![progress(true, &stuck)]).await;
    let endpoint = stub.base();
    let command = command(&[("FLEETCTL_ENDPOINT", &endpoint)], &["drain", FIRST]);
    let mut program = RunningProgram::start(command.into_std());
    let words = format!("draining {FIRST}: 1 unit left; a.service: no machine can run it\n");
    program.until_output(&words).await;
}

#[tokio::test]
async fn ctrl_c_leaves_a_drain_going_and_says_how_to_stop_it() {
    let stub = draining(vec![progress(true, &json!([{"name": "a"}]))]).await;
    let endpoint = stub.base();
    let command = command(&[("FLEETCTL_ENDPOINT", &endpoint)], &["drain", FIRST]);
    let mut program = RunningProgram::start(command.into_std());
    program.until_output("draining").await;
    hyperfleet_testkit::until("it follows the drain", async || {
        stub.lines()
            .iter()
            .any(|line| line.ends_with("/drain") && line.starts_with("GET"))
    })
    .await;
    program.signal(Signal::INT);
    assert_eq!(program.ended().await.code(), Some(130));
    let words = format!("The drain goes on. Stop it with: fleetctl uncordon {FIRST}");
    assert!(program.output().contains(&words), "{}", program.output());
    assert!(stub.lines().iter().all(|line| !line.starts_with("DELETE")));
}

#[tokio::test]
async fn a_rebalance_is_shown_before_it_is_done() {
    let moves = json!([{"name": "a.service", "from": FIRST, "to": SECOND}]);
    let plan =
        json!({"moves": moves, "before": {FIRST: 2, SECOND: 0}, "after": {FIRST: 1, SECOND: 1}});
    let on = Arc::new(Mutex::new(FIRST));
    let stub = Stub::spawn(move |line| {
        let mut on = on.lock().unwrap();
        match line {
            "GET /machines" => machines(),
            "GET /rebalance" | "GET /rebalance?max=1" => Reply::Json(200, plan.clone()),
            "POST /rebalance" => {
                *on = SECOND;
                Reply::empty(202)
            }
            "GET /units/a.service" => Reply::Json(
                200,
                json!({"name": "a.service", "desiredState": "launched", "machineID": *on}),
            ),
            _ => Reply::error(404, ""),
        }
    })
    .await;
    let shown = "UNIT\t\tFROM\t\t\tTO\na.service\t0f1e2d3c.../192.0.2.1\t1f1e2d3c.../192.0.2.2\n\n\
        MACHINE\t\t\tBEFORE\tAFTER\n0f1e2d3c.../192.0.2.1\t2\t1\n1f1e2d3c.../192.0.2.2\t0\t1\n";
    ask(&stub, &["rebalance", "--dry-run"])
        .await
        .is(0, shown, "");
    let asked = ask(&stub, &["rebalance"]).await;
    asked.is(
        1,
        shown,
        "Nothing was moved: use --yes to move units without being asked.\n",
    );
    assert_eq!(stub.changes(), []);
    let done = ask(&stub, &["rebalance", "--max=1", "--yes"]).await;
    done.is(0, &format!("{shown}Moved 1 unit\n"), "");
    let changes = stub.changes();
    let body: Value = serde_json::from_str(&changes[0].1).unwrap();
    assert_eq!((changes.len(), body), (1, json!({"moves": moves})));
    let json = ask(&stub, &["rebalance", "--dry-run", "-o", "json"])
        .await
        .succeeded();
    assert!(serde_json::from_str::<Value>(&json).unwrap()["moves"].is_array());
}

#[tokio::test]
async fn moves_that_do_not_happen_are_named() {
    let moves = json!([{"name": "a.service", "from": FIRST, "to": SECOND}]);
    let plan = json!({"moves": moves, "before": {}, "after": {}});
    let stub = Stub::spawn(move |line| match line {
        "GET /machines" => machines(),
        "GET /rebalance" => Reply::Json(200, plan.clone()),
        "POST /rebalance" => Reply::empty(202),
        _ => Reply::Json(200, json!({"name": "a.service", "machineID": FIRST})),
    })
    .await;
    let ran = ask(&stub, &["rebalance", "--yes", "--timeout=1s"]).await;
    assert_eq!(ran.status, 1);
    assert!(
        ran.errors
            .starts_with("Moved 0 of 1 unit within 1s. Not moved:\n  a.service\n"),
        "{ran:?}"
    );
}

#[tokio::test]
async fn agents_that_have_halted_are_resumed() {
    let cluster = Cluster::of(&[FIRST]).await;
    cluster
        .run(&["resume"])
        .await
        .is(0, "Agents that have halted continue\n", "");
}

/// `doctor`, `list-machines` and `top` say that machines are halted, and what to do.
#[tokio::test]
async fn halted_machines_are_seen_without_looking_for_them() {
    let stub = Stub::spawn(|line| match line {
        "GET /machines" => Reply::Json(
            200,
            json!({"machines": [
                {"id": FIRST, "primaryIP": "192.0.2.1", "halted": true, "draining": true},
                {"id": SECOND, "primaryIP": "192.0.2.2"},
            ]}),
        ),
        _ => Reply::Json(200, json!({})),
    })
    .await;
    let why = "1 machine halted (0f1e2d3c...) and will start and stop no unit, because etcd went back in time or is another one";
    let hint = "check that etcd has the right units, then run: fleetctl resume";
    let ill = ask(&stub, &["doctor"]).await;
    assert_eq!(ill.status, 1, "{ill:?}");
    for line in [
        format!("FAIL  agents    {why} -> {hint}\n"),
        "OK    machines  2 machines, 1 ready\n".to_owned(),
    ] {
        assert!(ill.output.contains(&line), "{ill:?}");
    }
    let warning = format!("Warning: {why}; {hint}\n");
    ask(&stub, &["list-machines", "--fields=machine,state"])
        .await
        .is(
            0,
            "MACHINE\t\tSTATE\n0f1e2d3c...\thalted\n1f1e2d3c...\tready\n",
            &warning,
        );
    let top = ask(&stub, &["top"]).await;
    let row = "0f1e2d3c...\t192.0.2.1\t0\t0\t0\thalted\n";
    assert!(top.output.contains(row), "{top:?}");
    assert_eq!((top.status, top.errors), (0, warning));
}

#[tokio::test]
async fn the_doctor_says_what_is_wrong_and_what_to_do() {
    let cluster = Cluster::of(&[FIRST]).await;
    let well = cluster.run(&["doctor"]).await;
    assert_eq!(well.status, 0, "{well:?}");
    for line in [
        "OK    endpoint",
        "OK    api",
        "OK    etcd",
        "OK    machines  1 machine, 1 ready",
    ] {
        assert!(well.output.contains(line), "{well:?}");
    }
    let stub =
        Stub::spawn(|_| Reply::error(503, "fleet server unable to communicate with etcd")).await;
    let ill = ask(&stub, &["doctor"]).await;
    assert_eq!(ill.status, 1);
    assert!(
        ill.output
            .contains("FAIL  etcd      fleet server unable to communicate with etcd -> "),
        "{ill:?}"
    );
    let date = vec![("Date", "Thu, 01 Jan 2026 00:00:00 GMT".to_owned())];
    let stub = Stub::spawn(move |_| Reply::Text(200, date.clone(), "{}".to_owned())).await;
    let late = ask(&stub, &["doctor"]).await;
    assert_eq!(late.status, 0, "{late:?}");
    assert!(
        late.output
            .contains("WARN  machines  no machines -> start fleetd"),
        "{late:?}"
    );
    assert!(
        late.output
            .contains("WARN  clock     the server's clock differs by "),
        "{late:?}"
    );
    // A machine with the id of another one: the id itself is in the list.
    for (is_member, status, line) in [
        (
            "true",
            0,
            "OK    member    the server's machine 0f1e2d3c... is a member\n",
        ),
        (
            "false",
            1,
            "FAIL  member    the server's machine 0f1e2d3c... is no member of the cluster, and runs no units -> give each machine its own /etc/machine-id",
        ),
    ] {
        let headers = vec![
            ("Fleet-Machine-ID", FIRST.to_owned()),
            ("Fleet-Machine-Member", is_member.to_owned()),
        ];
        let listed = json!({"machines": [{"id": FIRST}]}).to_string();
        let stub = Stub::spawn(move |_| Reply::Text(200, headers.clone(), listed.clone())).await;
        let asked = ask(&stub, &["doctor"]).await;
        assert_eq!(asked.status, status, "{asked:?}");
        assert!(asked.output.contains(line), "{asked:?}");
    }
    let nowhere = run(&[], &["doctor", "--endpoint=unix:///nowhere/fleet.sock"]).await;
    assert_eq!(nowhere.status, 1);
    assert!(
        nowhere
            .output
            .starts_with("FAIL  endpoint  unable to reach the fleet API"),
        "{nowhere:?}"
    );
    let json = run(&[], &["doctor", "-o", "json", "--endpoint=h"]).await;
    let checks: Value = serde_json::from_str(&json.output).unwrap();
    assert_eq!((json.status, &checks[0]["level"]), (1, &json!("FAIL")));
}

#[tokio::test]
async fn a_drain_moves_units_and_a_rebalance_returns_them() {
    let cluster = Cluster::of(&[FIRST, SECOND]).await;
    let names = ["a.service", "b.service", "c.service", "d.service"];
    for name in names {
        cluster.service(name);
    }
    let start: Vec<&str> = ["start"].into_iter().chain(names).collect();
    cluster.run(&start).await.succeeded();
    let drained = cluster.run(&["drain", "0f1e2d3c"]).await;
    let lines = format!("Machine {FIRST} cordoned, draining\nMachine {FIRST} drained\n");
    drained.is(0, &lines, "");
    let top = cluster
        .run(&["list-machines", "--fields=machine,state", "--no-legend"])
        .await;
    top.is(0, "0f1e2d3c...\tdraining\n1f1e2d3c...\tready\n", "");
    hyperfleet_testkit::until("all run on the second", async || {
        cluster.machines[1].running().len() == names.len() && cluster.running().is_empty()
    })
    .await;
    let uncordoned = cluster.run(&["uncordon", FIRST]).await;
    uncordoned.is(0, &format!("Machine {FIRST} uncordoned\n"), "");
    let moved = cluster.run(&["rebalance", "--yes"]).await.succeeded();
    assert!(moved.starts_with("UNIT\t\tFROM\t\t\tTO\n"), "{moved}");
    assert!(moved.ends_with("Moved 2 units\n"), "{moved}");
    let even = cluster.run(&["rebalance"]).await;
    even.is(0, "Nothing to move: units are spread evenly.\n", "");
}

#[tokio::test]
async fn a_unit_that_cannot_leave_outlives_the_drain() {
    let cluster = Cluster::of(&[FIRST, SECOND]).await;
    cluster.file(
        "a.service",
        &format!("[Service]\nExecStart=/bin/true\n[X-Fleet]\nMachineID={FIRST}\n"),
    );
    cluster.run(&["start", "a"]).await.succeeded();
    let stuck = cluster.run(&["drain", FIRST, "--deadline=2s"]).await;
    assert_eq!(stuck.status, 1, "{stuck:?}");
    let words = format!(
        "Machine {FIRST}: the drain has ended with 1 unit left; the machine stays cordoned:\n  a.service"
    );
    assert!(stuck.errors.starts_with(&words), "{stuck:?}");
    assert_eq!(cluster.running(), ["a.service"]);
}

#[tokio::test]
async fn global_units_restart_on_every_machine() {
    let cluster = Cluster::of(&[FIRST, SECOND]).await;
    cluster.file(
        "g.service",
        "[Service]\nExecStart=/bin/true\n[X-Fleet]\nGlobal=true\n",
    );
    cluster.run(&["start", "g"]).await.succeeded();
    hyperfleet_testkit::until("it runs on both", async || {
        cluster
            .machines
            .iter()
            .all(|machine| machine.running().contains("g.service"))
    })
    .await;
    cluster
        .run(&["restart", "g"])
        .await
        .is(0, "Triggered global unit g.service restart\n", "");
    let is_restarted = |calls: &[String]| calls.iter().any(|call| call == "restart g.service");
    hyperfleet_testkit::until("both have restarted it", async || {
        let mut machines = cluster.machines.iter();
        machines.all(|machine| machine.systemd.with(|state| is_restarted(&state.calls)))
    })
    .await;
}
