//! Deletion of owners and of what they own.

use serde_json::json;

use crate::support::{TestApi, child, root};

const CLUSTER_ADAPTERS: [&str; 4] = ["validation", "dns", "pullsecret", "hypershift"];
const NODEPOOL_ADAPTERS: [&str; 2] = ["validation", "hypershift"];

/// Regions own zones own racks. Adapters work only on racks.
async fn with_three_levels() -> (TestApi, [String; 3]) {
    let api = TestApi::spawn_with(&[
        root("Region", "regions", &[]),
        child("Region", "cascade", root("Zone", "zones", &[])),
        child("Zone", "cascade", root("Rack", "racks", &["power"])),
    ])
    .await;
    let region = api.make("/regions", "Region", "region").await;
    let zone = api.made(&format!("{region}/zones"), "Zone", "zone").await;
    let zone = format!("/zones/{}", zone.id());
    let rack = api.make(&format!("{zone}/racks"), "Rack", "rack").await;
    (api, [region, zone, rack])
}

#[tokio::test]
async fn a_restricting_grandchild_blocks_the_deletion_of_the_family() {
    let api = TestApi::spawn_with(&[
        root("Region", "regions", &["map"]),
        child("Region", "cascade", root("Zone", "zones", &["map"])),
        child("Zone", "restrict", root("Rack", "racks", &["map"])),
    ])
    .await;
    let region = api.make("/regions", "Region", "region").await;
    let zones = format!("{region}/zones");
    let empty = api.make(&zones, "Zone", "empty").await;
    let full = api.made(&zones, "Zone", "full").await;
    let racks = format!("/zones/{}/racks", full.id());
    let rack = api.make(&racks, "Rack", "rack").await;
    let answer = api.delete(&region).await;
    assert_eq!(answer.problem(), (409, "CNF-003"));
    assert_eq!(
        answer.detail(),
        format!("Cannot delete Zone '{}': active Rack(s) exist", full.id())
    );
    for path in [&region, &empty, &rack] {
        assert_eq!(api.get(path).await.body["generation"], 1, "{path}");
    }
    // A finalizing one does not.
    api.deleted(&rack).await;
    api.deleted(&region).await;
    assert_eq!(api.get(&empty).await.body["generation"], 2);
}

#[tokio::test]
async fn an_owner_waits_for_its_last_child_and_goes_with_it() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("owner").await;
    let first = api.nodepool(&cluster, "first").await;
    let last = api.nodepool(&cluster, "last").await;
    api.deleted(&cluster).await;
    api.finalize(&cluster, &CLUSTER_ADAPTERS, 2).await;
    api.finalize(&first, &NODEPOOL_ADAPTERS, 2).await;
    assert!(!api.has(&first).await);
    let waiting = api.get(&cluster).await;
    let reconciled = waiting.condition("Reconciled");
    assert_eq!(reconciled["status"], "False");
    assert_eq!(reconciled["reason"], "ReconciledWaitingForChildren");
    assert_eq!(
        reconciled["message"],
        "Deletion in progress. All required adapters reported Finalized=True but child resources still exist"
    );
    api.finalize(&last, &NODEPOOL_ADAPTERS, 2).await;
    assert!(!api.has(&last).await);
    assert!(!api.has(&cluster).await);
    assert_eq!(api.rows().await, 0);
}

#[tokio::test]
async fn owners_without_adapters_go_with_the_last_grandchild() {
    let (api, [region, zone, rack]) = with_three_levels().await;
    let deleted = api.deleted(&region).await;
    assert_eq!(deleted.body["generation"], 2);
    assert_eq!(deleted.body["status"]["conditions"], json!([]));
    for path in [&region, &zone, &rack] {
        let found = api.get(path).await;
        assert_eq!(
            found.body["deleted_time"], deleted.body["deleted_time"],
            "{path}"
        );
    }
    api.finalize(&rack, &["power"], 2).await;
    for path in [&region, &zone, &rack] {
        assert!(!api.has(path).await, "{path}");
    }
    assert_eq!(api.rows().await, 0);
}

#[tokio::test]
async fn an_active_grandparent_stays() {
    let (api, [region, zone, rack]) = with_three_levels().await;
    api.deleted(&zone).await;
    api.finalize(&rack, &["power"], 2).await;
    assert!(!api.has(&zone).await);
    assert_eq!(api.get(&region).await.body["generation"], 1);
}

#[tokio::test]
async fn last_children_that_go_at_once_take_their_owner_along() {
    for round in 0..10 {
        let api = TestApi::spawn().await;
        let cluster = api.cluster("owner").await;
        let names = ["one", "two", "three", "four"];
        let mut nodepools = Vec::new();
        for name in names {
            nodepools.push(api.nodepool(&cluster, name).await);
        }
        api.deleted(&cluster).await;
        for nodepool in &nodepools {
            api.finalize(nodepool, &NODEPOOL_ADAPTERS[..1], 2).await;
        }
        api.finalize(&cluster, &CLUSTER_ADAPTERS[..3], 2).await;
        let mut last: Vec<_> = nodepools.iter().map(|path| (path, "hypershift")).collect();
        last.insert(round % 5, (&cluster, "hypershift"));
        let done = [("Finalized", "True")];
        let reports = last
            .iter()
            .map(|(path, adapter)| api.report(path, adapter, 2, &done));
        for answer in futures_util::future::join_all(reports).await {
            assert_eq!(answer.status, 201, "round {round}: {}", answer.body);
        }
        assert_eq!(api.rows().await, 0, "round {round}");
    }
}
