//! What is shown and asked on a terminal only.

use std::fs::File;
use std::io::{Read as _, Write as _};

use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::json;
use tokio::process::Child;
use tokio::sync::watch;

use crate::cluster::{Cluster, FIRST, SECOND};
use crate::operations::machines;
use crate::program::{command, run};
use crate::stub::{Reply, Stub};

/// A fleetctl on a terminal of its own.
struct OnTerminal {
    child: Child,
    terminal: File,
    shown: watch::Sender<String>,
}

impl OnTerminal {
    fn start(variables: &[(&str, &str)], arguments: &[&str]) -> Self {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap();
        let side = open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        let side = || std::process::Stdio::from(side.try_clone().unwrap());
        let mut command = command(variables, arguments);
        let child = command
            .stdin(side())
            .stdout(side())
            .stderr(side())
            .spawn()
            .unwrap();
        let (terminal, shown) = (File::from(terminal), watch::Sender::<String>::default());
        let (mut reader, kept) = (terminal.try_clone().unwrap(), shown.clone());
        // Ends with the terminal's other side.
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                let text = String::from_utf8_lossy(&buffer[..count]);
                kept.send_modify(|shown| shown.push_str(&text));
            }
        });
        Self {
            child,
            terminal,
            shown,
        }
    }

    fn shown(&self) -> String {
        self.shown.borrow().clone()
    }

    async fn until_shown(&self, words: &str) {
        let mut shown = self.shown.subscribe();
        let waiting = shown.wait_for(|shown| shown.contains(words));
        let waited = tokio::time::timeout(hyperfleet_testkit::PATIENCE, waiting);
        let is_shown = waited.await.is_ok();
        assert!(is_shown, "not shown: {words:?} in {:?}", self.shown());
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id().unwrap()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    async fn ended(&mut self) -> Option<i32> {
        let status = tokio::time::timeout(hyperfleet_testkit::PATIENCE, self.child.wait()).await;
        status.expect("it ends in time").unwrap().code()
    }
}

#[tokio::test]
async fn a_wait_shows_why_a_unit_is_not_placed() {
    let cluster = Cluster::of(&[FIRST]).await;
    let file = cluster.file(
        "a.service",
        "[Service]\nExecStart=/bin/true\n[X-Fleet]\nMachineMetadata=disk=ssd\n",
    );
    let endpoint = [("FLEETCTL_ENDPOINT", cluster.fleet.base.as_str())];
    let mut start = OnTerminal::start(
        &endpoint,
        &["start", "--block-attempts=2", file.to_str().unwrap()],
    );
    start
        .until_shown("\r\x1b[Kwaiting for a.service: no machine can run it")
        .await;
    assert_eq!(start.ended().await, Some(1));
    start
        .until_shown("\r\x1b[KError waiting for units: timed out")
        .await;
}

#[tokio::test]
async fn watched_lists_clear_the_screen() {
    let cluster = Cluster::of(&[FIRST]).await;
    let endpoint = [("FLEETCTL_ENDPOINT", cluster.fleet.base.as_str())];
    let watch = OnTerminal::start(&endpoint, &["list-machines", "-w", "--fields=machine"]);
    watch
        .until_shown("\x1b[H\x1b[2JMACHINE\r\n0f1e2d3c...\r\n")
        .await;
    let _second =
        hyperfleet_testkit::SimulatedMachine::start(cluster.fleet.registry.clone(), SECOND, 30);
    watch
        .until_shown("\x1b[H\x1b[2JMACHINE\r\n0f1e2d3c...\r\n1f1e2d3c...\r\n")
        .await;
}

#[tokio::test]
async fn moves_are_asked_about() {
    let moves = json!([{"name": "a.service", "from": FIRST, "to": SECOND}]);
    let plan = json!({"moves": moves, "before": {}, "after": {}});
    for (answer, status, orders) in [("n\n", 1, 0), ("\n", 1, 0), ("yes\n", 0, 1)] {
        let plan = plan.clone();
        let stub = Stub::spawn(move |line| match line {
            "GET /machines" => machines(),
            "GET /rebalance" => Reply::Json(200, plan.clone()),
            "POST /rebalance" => Reply::empty(202),
            _ => Reply::Json(200, json!({"name": "a.service", "machineID": SECOND})),
        })
        .await;
        let endpoint = stub.base();
        let mut rebalance = OnTerminal::start(&[("FLEETCTL_ENDPOINT", &endpoint)], &["rebalance"]);
        rebalance.until_shown("Move 1 unit? [y/N] ").await;
        rebalance.terminal.write_all(answer.as_bytes()).unwrap();
        assert_eq!(
            rebalance.ended().await,
            Some(status),
            "{answer:?}: {}",
            rebalance.shown()
        );
        assert_eq!(stub.changes().len(), orders, "{answer:?}");
    }
}

#[tokio::test]
async fn signals_end_a_question() {
    let plan = json!({"moves": [{"name": "a.service", "from": FIRST, "to": SECOND}], "before": {}, "after": {}});
    for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let plan = plan.clone();
        let stub = Stub::spawn(move |line| match line {
            "GET /machines" => machines(),
            _ => Reply::Json(200, plan.clone()),
        })
        .await;
        let endpoint = stub.base();
        let mut rebalance = OnTerminal::start(&[("FLEETCTL_ENDPOINT", &endpoint)], &["rebalance"]);
        rebalance.until_shown("Move 1 unit? [y/N] ").await;
        rebalance.signal(signal);
        assert_eq!(rebalance.ended().await, Some(status));
        assert_eq!(stub.changes(), []);
    }
}

#[tokio::test]
async fn control_characters_of_servers_reach_no_terminal() {
    const EVIL: &str = "\x1b[31mevil\u{9b}J\r";
    const SHOWN: &str = "\\x1b[31mevil\\x9bJ\\x0d";
    let unit = json!({
        "name": "a.service", "desiredState": "launched", "currentState": "launched", "machineID": FIRST
    });
    let explanation = json!({"name": "a.service", "desiredState": "launched", "reason": EVIL, "machineID": FIRST});
    let stub = Stub::spawn(move |line| match line {
        "GET /machines" => Reply::Json(
            200,
            json!({"machines": [{"id": FIRST, "primaryIP": EVIL, "version": EVIL}]}),
        ),
        "GET /units/a.service" => Reply::Json(200, unit.clone()),
        "GET /units/a.service/explain" => Reply::Json(200, explanation.clone()),
        line if line.starts_with("GET /units/a.service/journal") => {
            let entry = json!({"MESSAGE": EVIL});
            Reply::Text(
                200,
                vec![],
                format!("event: entry\ndata: {entry}\nid: s=1\n\n"),
            )
        }
        _ => Reply::error(500, EVIL),
    })
    .await;
    let endpoint = stub.base();
    let endpoint = [("FLEETCTL_ENDPOINT", endpoint.as_str())];
    for arguments in [
        &["list-machines"][..],
        &["list-machines", "-o", "yaml"],
        &["explain", "a"],
        &["doctor"],
        &["journal", "a"],
        &["destroy", "a"],
        &["top"],
    ] {
        let variables = [endpoint[0], ("NO_COLOR", "1")];
        let mut shown = OnTerminal::start(&variables, arguments);
        shown.ended().await;
        shown.until_shown("evil").await;
        let text = shown.shown();
        let is_raw = |c: char| c.is_control() && !"\r\n\t".contains(c);
        assert!(!text.contains(is_raw), "{arguments:?}: {text:?}");
        let lines = text.replace("\r\n", "");
        assert!(!lines.contains('\r'), "{arguments:?}: {text:?}");
    }
    let machines = run(&endpoint, &["list-machines"]).await.succeeded();
    assert!(machines.contains(SHOWN), "{machines:?}");
    // Programs get what the journal has.
    let journal = run(&endpoint, &["journal", "--output=cat", "a"]).await;
    journal.is(0, &format!("{EVIL}\n"), "");
}

#[tokio::test]
async fn colours_are_for_terminals_without_no_color() {
    let stub = Stub::spawn(|_| machines()).await;
    let endpoint = stub.base();
    let mut coloured = OnTerminal::start(&[("FLEETCTL_ENDPOINT", &endpoint)], &["doctor"]);
    assert_eq!(coloured.ended().await, Some(0));
    coloured.until_shown("\x1b[32mOK  \x1b[0m  endpoint").await;
    let plain = [("FLEETCTL_ENDPOINT", endpoint.as_str()), ("NO_COLOR", "1")];
    let mut plain = OnTerminal::start(&plain, &["doctor"]);
    assert_eq!(plain.ended().await, Some(0));
    plain.until_shown("OK    endpoint").await;
    assert!(!plain.shown().contains("\x1b["), "{}", plain.shown());
}
