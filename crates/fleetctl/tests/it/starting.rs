//! Units that are to run already are started again if they do not, and commands end when units cannot run.

use hyperfleet_testkit::until;

use crate::cluster::{Cluster, FIRST, SECOND, SHORT};

const UNSUITABLE: &str = "[Service]\nExecStart=/bin/true\n[X-Fleet]\nMachineMetadata=disk=ssd\n";

async fn until_reported(cluster: &Cluster, unit: &str, active: &str) {
    until("it is reported", async || {
        cluster.get(&format!("state/{unit}")).await["systemdActiveState"] == active
    })
    .await;
}

#[tokio::test]
async fn a_launched_unit_that_does_not_run_is_started_again() {
    let cluster = Cluster::of(&[FIRST]).await;
    cluster.service("a.service");
    cluster.run(&["start", "a"]).await.succeeded();
    // It runs: nothing is done.
    cluster.run(&["start", "a"]).await.is(0, "", "");
    let systemd = cluster.machines[0].systemd.clone();
    assert!(cluster.machines[0].stopped().is_empty());
    let launched = format!("Unit a.service launched on {SHORT}\n");
    systemd.fail("a.service");
    until_reported(&cluster, "a.service", "failed").await;
    cluster.run(&["start", "a"]).await.is(0, &launched, "");
    assert_eq!(cluster.running(), ["a.service"]);
    // As with systemctl stop on the machine.
    systemd.end("a.service");
    until_reported(&cluster, "a.service", "inactive").await;
    cluster.run(&["start", "a"]).await.is(0, &launched, "");
    assert_eq!(cluster.running(), ["a.service"]);
    systemd.fail("a.service");
    until_reported(&cluster, "a.service", "failed").await;
    let triggered = cluster.run(&["start", "--no-block", "a"]).await;
    triggered.is(0, "Triggered unit a.service start\n", "");
    until("it runs", async || cluster.running() == ["a.service"]).await;
}

#[tokio::test]
async fn a_launched_unit_that_fails_again_is_reported() {
    let cluster = Cluster::of(&[FIRST]).await;
    cluster.service("a.service");
    cluster.run(&["start", "a"]).await.succeeded();
    let systemd = cluster.machines[0].systemd.clone();
    systemd.fail("a.service");
    until_reported(&cluster, "a.service", "failed").await;
    systemd.with(|state| state.refused.insert("a.service".to_owned()));
    let failed = cluster.run(&["start", "a"]).await;
    assert_eq!((failed.status, failed.output.as_str()), (1, ""));
    let words = "Error waiting for units: unit a.service does not ";
    assert!(failed.errors.starts_with(words), "{failed:?}");
    assert!(failed.errors.contains("it is refused"), "{failed:?}");
}

#[tokio::test]
async fn a_command_ends_when_no_machine_can_run_a_unit() {
    let cluster = Cluster::of(&[FIRST]).await;
    for unit in ["ssd.service", "loaded.service", "limited.service"] {
        cluster.file(unit, UNSUITABLE);
    }
    let is_refused = async |command: &str, unit: &str, state: &str| {
        let ended = cluster.run(&[command, unit]).await;
        let words = format!(
            "Error waiting for units: unit {unit} does not report state {state}: no machine can run it: MachineMetadata=disk=ssd: 1 machine ({FIRST}); its desired state stays, and is reached when that changes\nError waiting for unit states, exit status: 1\n"
        );
        assert_eq!((ended.status, ended.errors), (1, words), "{command}");
    };
    // Each command waits for some seconds.
    tokio::join!(
        async {
            is_refused("start", "ssd.service", "launched").await;
            // This one finds it launched.
            is_refused("start", "ssd.service", "launched").await;
        },
        is_refused("load", "loaded.service", "loaded"),
        async {
            // A limit is waited for.
            let waited = cluster
                .run(&["start", "--block-attempts=1", "limited.service"])
                .await;
            let words = "Error waiting for units: timed out waiting for unit limited.service to report state launched: no machine can run it";
            assert!(waited.errors.starts_with(words), "{waited:?}");
        }
    );
}

#[tokio::test]
async fn a_command_ends_when_systemd_refuses_a_unit() {
    let cluster = Cluster::of(&[FIRST]).await;
    cluster.service("a.service");
    cluster.run(&["submit", "a"]).await.succeeded();
    let systemd = cluster.machines[0].systemd.clone();
    systemd.with(|state| state.refused.insert("a.service".to_owned()));
    let ended = cluster.run(&["start", "a"]).await;
    assert_eq!(ended.status, 1, "{ended:?}");
    assert!(ended.errors.contains("it is refused"), "{ended:?}");
    assert!(!ended.errors.contains("timed out"), "{ended:?}");
}

#[tokio::test]
async fn a_launched_global_unit_that_does_not_run_is_reported() {
    let cluster = Cluster::of(&[FIRST, SECOND]).await;
    let text = "[Service]\nExecStart=/bin/true\n[X-Fleet]\nGlobal=true\n";
    cluster.file("g.service", text);
    cluster.run(&["start", "g"]).await.succeeded();
    until("both report it", async || {
        let states = cluster.get("state").await;
        states["states"].as_array().is_some_and(|states| {
            states.len() == 2
                && states
                    .iter()
                    .all(|state| state["systemdActiveState"] == "active")
        })
    })
    .await;
    cluster.run(&["start", "g"]).await.is(0, "", "");
    cluster.machines[1].systemd.fail("g.service");
    until("it has failed", async || {
        let states = cluster.get("state").await;
        states["states"][1]["systemdActiveState"] == "failed"
    })
    .await;
    let started = cluster.run(&["start", "g"]).await;
    let words = "Unit g.service does not run on 1 of 2 machines: 1f1e2d3c... (failed/failed); to start it again on all machines, run fleetctl restart g.service\n";
    started.is(1, "", words);
}
