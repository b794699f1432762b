//! Placement of units, and units that exclude each other.

use std::collections::BTreeSet;

use hyperfleet_testkit::until;
use serde_json::json;

use super::super::fleet_socket::SLEEP;
use super::cluster::{Cluster, names};

#[tokio::test]
async fn units_run_where_their_files_allow() {
    let Some(cluster) = Cluster::boot(3, &[]).await else {
        return;
    };
    cluster.play("conflicts", conflicts).await;
    cluster
        .play("a conflict that one of two declares", one_way_conflict)
        .await;
    cluster.play("several conflicts", several_conflicts).await;
    cluster.play("a unit replaces another", replaces).await;
    cluster
        .play("units that replace each other", circular_replaces)
        .await;
    cluster.play("machines by id", machines_by_id).await;
    cluster.play("global units", globals).await;
    cluster
        .play("global units that conflict", global_conflicts)
        .await;
    cluster.play("specifiers in metadata", specifiers).await;
    cluster
        .play("metadata that is patched", patched_metadata)
        .await;
}

/// Requires the first machine.
const FIRST: &str = "X-Fleet MachineMetadata=host=m1";

async fn conflicts(cluster: &Cluster) {
    let units = names("apart@", 5);
    for unit in &units {
        cluster
            .launch_with(unit, &["X-Fleet Conflicts=apart@*.service"])
            .await;
    }
    let active = cluster.until_active(3).await;
    let machines: BTreeSet<_> = active.iter().map(|(_, machine)| machine.clone()).collect();
    assert_eq!(machines, cluster.ids());
    let running: BTreeSet<_> = active.iter().map(|(unit, _)| unit).collect();
    for unit in units.iter().filter(|unit| !running.contains(unit)) {
        let reason = "no machine can run it: Conflicts";
        cluster.api().until_explained(unit, reason).await;
    }
    assert_eq!(cluster.reported("active").await, active);
    cluster.destroy(&units).await;
}

async fn one_way_conflict(cluster: &Cluster) {
    let api = cluster.api();
    let alone = "X-Fleet Conflicts=other*.service";
    cluster.launch_with("alone.service", &[FIRST, alone]).await;
    api.until_state("alone.service", "active").await;
    cluster.launch_with("other.service", &[FIRST]).await;
    api.until_explained("other.service", "no machine can run it")
        .await;
    assert_eq!(cluster.reported("active").await.len(), 1);
    cluster.destroy(&["alone.service"]).await;
    api.until_state("other.service", "active").await;
    cluster.destroy(&["other.service"]).await;
}

async fn several_conflicts(cluster: &Cluster) {
    let api = cluster.api();
    let on_one_line = vec!["X-Fleet Conflicts=a.service b.service"];
    let on_lines = vec!["X-Fleet Conflicts=a.service", "X-Fleet Conflicts=b.service"];
    for conflicts in [on_one_line, on_lines] {
        for unit in ["a.service", "b.service"] {
            cluster.launch_with(unit, &[FIRST]).await;
            api.until_state(unit, "active").await;
        }
        cluster
            .launch_with("c.service", &[&[FIRST], &conflicts[..]].concat())
            .await;
        api.until_explained("c.service", "no machine can run it")
            .await;
        cluster.destroy(&["a.service"]).await;
        // A unit placed after the change shows that the change was applied.
        cluster.launch_with("later.service", &[FIRST]).await;
        api.until_state("later.service", "active").await;
        api.until_explained("c.service", "no machine can run it")
            .await;
        cluster.destroy(&["b.service"]).await;
        api.until_state("c.service", "active").await;
        cluster.destroy(&["c.service", "later.service"]).await;
        cluster.until_empty().await;
    }
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

async fn circular_replaces(cluster: &Cluster) {
    let api = cluster.api();
    cluster
        .launch_with("a.service", &["X-Fleet Replaces=b.service"])
        .await;
    let lines = [SLEEP[0], "X-Fleet Replaces=a.service"];
    let (status, message) = api.try_put("b.service", &lines, "launched").await.unwrap();
    assert_eq!(status, 400, "{message}");
    assert!(message.contains("circular Replaces"), "{message}");
    api.until_state("a.service", "active").await;
    cluster.destroy(&["a.service"]).await;
}

async fn machines_by_id(cluster: &Cluster) {
    let units = names("here", 3);
    let machines = units.iter().zip(&cluster.machines);
    for (unit, machine) in machines.clone() {
        let id = format!("X-Fleet MachineID={}", machine.id);
        cluster.launch_with(unit, &[&id]).await;
    }
    let active = cluster.until_active(3).await;
    let expected = machines.map(|(unit, machine)| (unit.clone(), machine.id.clone()));
    assert_eq!(active, expected.collect());
    cluster.destroy(&units).await;
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

async fn specifiers(cluster: &Cluster) {
    let line = "X-Fleet MachineMetadata=host=%i";
    for host in ["m1", "m2", "m3", "m4"] {
        cluster
            .launch_with(&format!("ping@{host}.service"), &[line])
            .await;
    }
    let active = cluster.until_active(3).await;
    let machines = cluster.machines.iter();
    let expected = machines.map(|machine| {
        let unit = format!("ping@m{}.service", machine.number);
        (unit, machine.id.clone())
    });
    assert_eq!(active, expected.collect());
    let reason = "no machine can run it: MachineMetadata=host=m4";
    cluster
        .api()
        .until_explained("ping@m4.service", reason)
        .await;
    for host in ["m1", "m2", "m3", "m4"] {
        cluster.destroy(&[format!("ping@{host}.service")]).await;
    }
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
