//! Units are restarted by their agents, and `restart` waits for that.

use hyperfleet_testkit::until;
use serde_json::json;

use crate::cluster::{Cluster, FIRST, SHORT};
use crate::operations::ask;
use crate::stub::{Reply, Stub};

/// How often systemd was asked to do this.
fn calls(cluster: &Cluster, call: &str) -> usize {
    let systemd = &cluster.machines[0].systemd;
    systemd.with(|state| state.calls.iter().filter(|other| *other == call).count())
}

#[tokio::test]
async fn restart_waits_until_agents_have_restarted_units() {
    let cluster = Cluster::of(&[FIRST]).await;
    for name in ["a.service", "b.service", "c.service", "d.service"] {
        cluster.service(name);
    }
    cluster.run(&["start", "a", "b"]).await.succeeded();
    cluster.run(&["load", "c"]).await.succeeded();
    cluster.run(&["submit", "d"]).await.succeeded();
    let systemd = cluster.machines[0].systemd.clone();
    // It starts again only when the test says so.
    systemd.with(|state| state.starts_queued.insert("b.service".to_owned()));
    let finish = async {
        until("the restart of b is shown", async || {
            let unit = cluster.get("units/b.service").await;
            assert_eq!(unit["desiredState"], "launched");
            calls(&cluster, "restart b.service") == 1 && unit["currentState"] == "loaded"
        })
        .await;
        assert!(!cluster.running().contains(&"b.service".to_owned()));
        systemd.finish_queueing("b.service");
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
    for unit in ["a", "b"] {
        assert_eq!(calls(&cluster, &format!("restart {unit}.service")), 1);
    }
    assert_eq!(calls(&cluster, "restart c.service"), 0);
    assert_eq!(cluster.running(), ["a.service", "b.service", "c.service"]);
}

#[tokio::test]
async fn a_restart_that_is_not_in_time_is_reported() {
    let cluster = Cluster::of(&[FIRST]).await;
    cluster.service("a.service");
    cluster.run(&["start", "a"]).await.succeeded();
    let systemd = &cluster.machines[0].systemd;
    systemd.with(|state| state.starts_queued.insert("a.service".to_owned()));
    let restarted = cluster.run(&["restart", "--block-attempts=1", "a"]).await;
    assert_eq!(restarted.status, 1, "{restarted:?}");
    let words =
        "Error waiting for units: timed out waiting for unit a.service to report state launched";
    assert!(restarted.errors.starts_with(words), "{restarted:?}");
}

#[tokio::test]
async fn a_restart_that_systemd_refuses_ends_the_command() {
    let cluster = Cluster::of(&[FIRST]).await;
    cluster.service("a.service");
    cluster.run(&["start", "a"]).await.succeeded();
    let systemd = &cluster.machines[0].systemd;
    systemd.with(|state| state.refused.insert("a.service".to_owned()));
    let restarted = cluster.run(&["restart", "a"]).await;
    assert_eq!(restarted.status, 1, "{restarted:?}");
    assert!(restarted.errors.contains("it is refused"), "{restarted:?}");
}

#[tokio::test]
async fn a_restart_that_the_server_refuses_is_named() {
    let stub = Stub::spawn(|line| match line {
        "GET /units/a.service" => Reply::Json(
            200,
            json!({"name": "a.service", "desiredState": "launched", "currentState": "launched"}),
        ),
        _ => Reply::error(403, "not allowed"),
    })
    .await;
    let words =
        "Error restarting units: unable to restart unit a.service: not allowed (status 403)\n";
    ask(&stub, &["restart", "a"]).await.is(1, "", words);
}
