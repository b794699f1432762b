//! Effects of placement on processes: units that replace each other, global units, metadata that changes.

use std::collections::BTreeSet;

use hyperfleet_testkit::until;
use serde_json::json;

use super::cluster::{Cluster, names};
use super::fleet_socket::SLEEP;

#[tokio::test]
async fn units_run_where_their_files_allow() {
    let Some(cluster) = Cluster::boot(3, &[]).await else {
        return;
    };
    cluster.play("a unit replaces another", replaces).await;
    cluster.play("global units", globals).await;
    cluster
        .play("global units that conflict", global_conflicts)
        .await;
    cluster
        .play("metadata that is patched", patched_metadata)
        .await;
}

async fn replaces(cluster: &Cluster) {
    cluster.launch("old.service").await;
    let before = cluster.until_active_on("old.service").await;
    let host = cluster.index(&before) + 1;
    let here = format!("X-Fleet MachineMetadata=host=m{host}");
    cluster
        .launch_with("new.service", &[&here, "X-Fleet Replaces=old.service"])
        .await;
    let mut after = String::new();
    until("they are apart", async || {
        let new = cluster.until_active_on("new.service").await;
        after = cluster.until_active_on("old.service").await;
        new == before && after != before
    })
    .await;
    cluster.destroy(&["old.service", "new.service"]).await;
}

async fn globals(cluster: &Cluster) {
    let api = cluster.api();
    let ordinary = names("ordinary", 2);
    for unit in &ordinary {
        cluster.launch(unit).await;
    }
    cluster
        .launch_with("global.service", &["X-Fleet Global=true"])
        .await;
    let active = cluster.until_active(5).await;
    let before = cluster.processes(&active);
    api.set("global.service", "loaded").await;
    let stopped = cluster.until_reported("inactive", 3).await;
    let machines: BTreeSet<_> = stopped.iter().map(|(_, machine)| machine.clone()).collect();
    assert_eq!(machines, cluster.ids());
    api.set("global.service", "launched").await;
    assert_eq!(cluster.until_active(5).await, active);
    for (unit, pid) in cluster.processes(&active) {
        let is_same = pid == before[&unit];
        assert_eq!(is_same, unit.0.starts_with("ordinary"), "{unit:?}");
    }
    cluster.destroy(&ordinary).await;
    cluster.destroy(&["global.service"]).await;
}

async fn global_conflicts(cluster: &Cluster) {
    let lines = ["X-Fleet Global=true", "X-Fleet Conflicts=global*.service"];
    // The first by name, not the first that was submitted.
    for unit in ["global2.service", "global1.service"] {
        cluster.launch_with(unit, &lines).await;
    }
    let until_everywhere = async |unit: &str| {
        let expected = cluster.ids().into_iter().map(|id| (unit.to_owned(), id));
        let expected: BTreeSet<_> = expected.collect();
        until(&format!("{unit} alone runs everywhere"), async || {
            cluster.reported("active").await == expected
        })
        .await;
    };
    until_everywhere("global1.service").await;
    cluster.destroy(&["global1.service"]).await;
    until_everywhere("global2.service").await;
    cluster.destroy(&["global2.service"]).await;
}

async fn patched_metadata(cluster: &Cluster) {
    let api = cluster.api();
    let machine = &cluster.machines[1];
    let label = format!("/{}/metadata/zone", machine.id);
    let patch = async |op: &str, value: &str| {
        let operation = json!({"op": op, "path": label, "value": {"value": value}});
        api.patch_machines(&json!([operation])).await
    };
    let lines = ["X-Fleet Global=true", "X-Fleet MachineMetadata=zone=a"];
    cluster.launch_with("zone.service", &lines).await;
    let lines = [SLEEP[0], "X-Fleet MachineMetadata=zone=a"];
    api.put("one.service", &lines, "launched").await;
    api.until_explained("one.service", "no machine can run it")
        .await;
    assert_eq!(patch("add", "a").await, 204);
    let active = cluster.until_active(2).await;
    assert!(active.iter().all(|(_, id)| *id == machine.id), "{active:?}");
    assert_eq!(patch("replace", "b").await, 204);
    cluster.until_active(0).await;
    api.until_explained("one.service", "no machine can run it")
        .await;
    assert_eq!(patch("replace", "a").await, 204);
    assert_eq!(cluster.until_active(2).await, active);
    assert_eq!(patch("remove", "").await, 204);
    cluster.until_active(0).await;
    assert_eq!(patch("no-such-op", "a").await, 400);
    cluster.destroy(&["zone.service", "one.service"]).await;
}
