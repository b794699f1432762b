//! What becomes of resources when the configured kinds change under them.

use hyperfleet_domain::entity_config::{self, EntityConfig};
use serde_json::json;

use crate::support::{TestApi, child, root};

/// The same database, served with other kinds.
fn restarted(api: TestApi, kinds: &[EntityConfig]) -> TestApi {
    let registry = entity_config::registry(kinds).unwrap();
    let store = api.database.store();
    TestApi::spawn_on(registry, api.database, store, false)
}

fn regions_and_zones(adapters: &[&str]) -> [EntityConfig; 2] {
    [
        root("Region", "regions", &[]),
        child("Region", "cascade", root("Zone", "zones", adapters)),
    ]
}

#[tokio::test]
async fn deleting_again_finishes_what_no_adapter_works_on_any_more() {
    let api = TestApi::spawn_with(&regions_and_zones(&["map"])).await;
    let region = api.make("/regions", "Region", "region").await;
    let one = api.make(&format!("{region}/zones"), "Zone", "one").await;
    let two = api.make(&format!("{region}/zones"), "Zone", "two").await;
    api.deleted(&region).await;
    let api = restarted(api, &regions_and_zones(&[]));
    api.deleted(&one).await;
    assert!(!api.has(&one).await);
    assert!(api.has(&region).await, "it still waits for the other zone");
    // The last one takes its owner along.
    api.deleted(&two).await;
    assert!(!api.has(&region).await);
    assert_eq!(api.rows().await, 0);
}

#[tokio::test]
async fn deleting_an_owner_again_finishes_its_children_too() {
    let api = TestApi::spawn_with(&regions_and_zones(&["map"])).await;
    let region = api.make("/regions", "Region", "region").await;
    api.make(&format!("{region}/zones"), "Zone", "zone").await;
    let first = api.deleted(&region).await;
    let api = restarted(api, &regions_and_zones(&[]));
    let again = api.deleted(&region).await;
    assert_eq!(again.body, first.body);
    assert_eq!(api.rows().await, 0);
}

#[tokio::test]
async fn a_kind_that_is_gone_is_still_among_all_resources() {
    let api = TestApi::spawn_with(&regions_and_zones(&["map"])).await;
    let region = api.made("/regions", "Region", "region").await;
    let api = restarted(api, &[root("Other", "others", &[])]);
    let path = format!("/resources/{}", region.id());
    assert_eq!(
        api.get(&format!("/regions/{}", region.id()))
            .await
            .problem(),
        (404, "NTF-000")
    );
    let found = api.get(&path).await;
    assert_eq!(found.body["name"], "region");
    assert_eq!(found.body["href"], format!("/api/hyperfleet/v1{path}"));
    assert_eq!(api.get("/resources").await.body["total"], 1);
    let patched = api.patch(&path, json!({"spec": {"a": 1}})).await;
    assert_eq!(patched.body["generation"], 2, "{}", patched.body);
    api.deleted(&path).await;
    assert_eq!(api.rows().await, 0);
}

#[tokio::test]
async fn a_new_required_adapter_counts_from_the_next_report_on() {
    let api = TestApi::spawn_with(&[root("Cluster", "clusters", &["dns"])]).await;
    let cluster = api.cluster("growing").await;
    api.report(&cluster, "dns", 1, &[]).await;
    let before = api.get(&cluster).await;
    assert_eq!(before.condition("Reconciled")["status"], "True");
    let api = restarted(
        api,
        &[root("Cluster", "clusters", &["dns", "certificates"])],
    );
    assert_eq!(api.get(&cluster).await.body, before.body);
    api.clock.advance(60);
    api.report(&cluster, "dns", 1, &[]).await;
    assert_eq!(
        api.get(&cluster).await.condition("Reconciled")["status"],
        "False"
    );
    api.report(&cluster, "certificates", 1, &[]).await;
    assert_eq!(
        api.get(&cluster).await.condition("Reconciled")["status"],
        "True"
    );
}
