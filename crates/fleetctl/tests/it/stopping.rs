//! `stop` and `unload` end when units have stopped.

use hyperfleet_testkit::until;

use crate::cluster::{Cluster, FIRST, SHORT};

#[tokio::test]
async fn stop_and_unload_wait_until_units_have_stopped() {
    let cluster = Cluster::of(&[FIRST]).await;
    cluster.service("a.service");
    let machine = &cluster.machines[0];
    let systemd = machine.systemd.clone();
    systemd.with(|state| state.stops_slowly.insert("a.service".to_owned()));
    for (count, command) in ["stop", "unload"].into_iter().enumerate() {
        cluster.run(&["start", "a"]).await.succeeded();
        let early = cluster.run(&[command, "--block-attempts=1", "a"]).await;
        assert_eq!((early.status, early.output.as_str()), (1, ""));
        let words = "Error waiting for units: timed out waiting for unit a.service to ";
        assert!(early.errors.starts_with(words), "{early:?}");
        assert_eq!(machine.stopped().len(), count + 1);
        let finish = async {
            let state = if command == "stop" {
                "loaded"
            } else {
                "inactive"
            };
            until("it was ordered", async || {
                cluster.get("units/a.service").await["desiredState"] == state
            })
            .await;
            systemd.finish_stopping("a.service");
        };
        let arguments = [command, "a"];
        let (ended, ()) = tokio::join!(cluster.run(&arguments), finish);
        let done = format!("Successfully {command}");
        assert!(ended.errors.starts_with(&done), "{ended:?}");
        assert_eq!(ended.status, 0, "{ended:?}");
    }
}

#[tokio::test]
async fn a_loaded_unit_that_systemd_started_is_stopped() {
    let cluster = Cluster::of(&[FIRST]).await;
    cluster.service("a.service");
    cluster.run(&["load", "a"]).await.succeeded();
    let machine = &cluster.machines[0];
    let is_reported = async || {
        until("it is reported", async || {
            cluster.get("state/a.service").await["systemdActiveState"] == "active"
        })
        .await;
    };
    machine.systemd.start_by_itself("a.service");
    is_reported().await;
    let done = "Successfully stopped units [a.service].\n";
    let loaded = format!("Unit a.service loaded on {SHORT}\n");
    cluster.run(&["stop", "a"]).await.is(0, &loaded, done);
    assert!(machine.running().is_empty());
    cluster.run(&["stop", "a"]).await.is(0, "", done);
    machine.systemd.start_by_itself("a.service");
    is_reported().await;
    let triggered = cluster.run(&["stop", "--no-block", "a"]).await;
    triggered.is(0, "Triggered unit a.service stop\n", "");
    until("it is stopped", async || machine.running().is_empty()).await;
}
