//! Force-delete: out with a finalizing resource and everything below it.

use serde_json::json;

use crate::support::{Answer, TestApi, child, linked, root};

const NOBODY: &str = "019b7654-0000-7000-8000-000000000000";

async fn force(api: &TestApi, path: &str) -> Answer {
    api.post(&format!("{path}/force-delete"), json!({"reason": "stuck"}))
        .await
}

#[tokio::test]
async fn what_is_not_there_cannot_be_forced_out() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("owner").await;
    let gone = api.cluster("gone").await;
    api.deleted(&gone).await;
    assert_eq!(force(&api, &gone).await.status, 204);
    assert_eq!(force(&api, &gone).await.status, 404);
    for (path, detail) in [
        (
            format!("/clusters/{NOBODY}"),
            format!("Cluster with id='{NOBODY}' not found"),
        ),
        (
            format!("{cluster}/nodepools/{NOBODY}"),
            format!("NodePool with id='{NOBODY}' not found"),
        ),
        (
            format!("/clusters/{NOBODY}/nodepools/{NOBODY}"),
            format!("Cluster with id='{NOBODY}' not found"),
        ),
        (
            format!("/resources/{NOBODY}"),
            format!("Resource with id='{NOBODY}' not found"),
        ),
    ] {
        let answer = force(&api, &path).await;
        assert_eq!(answer.problem(), (404, "NTF-001"), "{path}");
        assert_eq!(answer.detail(), detail, "{path}");
    }
}

#[tokio::test]
async fn a_reason_may_be_blank_or_long() {
    let api = TestApi::spawn().await;
    for reason in [" ".to_owned(), "ü".repeat(1024)] {
        let cluster = api.cluster("stuck").await;
        api.deleted(&cluster).await;
        let body = json!({"reason": reason, "unknown": true});
        let answer = api.post(&format!("{cluster}/force-delete"), body).await;
        assert_eq!(answer.status, 204, "{}", answer.body);
    }
}

#[tokio::test]
async fn force_delete_removes_the_tree_in_any_state() {
    let api = TestApi::spawn_with(&[
        root("Region", "regions", &["map"]),
        child("Region", "cascade", root("Zone", "zones", &["map"])),
        child("Zone", "cascade", root("Rack", "racks", &["map"])),
        child("Region", "cascade", root("Road", "roads", &["map"])),
    ])
    .await;
    let region = api.make("/regions", "Region", "region").await;
    let other = api.make("/regions", "Region", "other").await;
    let road = api.make(&format!("{region}/roads"), "Road", "road").await;
    for name in ["one", "two"] {
        let zone = api.made(&format!("{region}/zones"), "Zone", name).await;
        let racks = format!("/zones/{}/racks", zone.id());
        for name in ["a", "b"] {
            let rack = api.make(&racks, "Rack", name).await;
            api.report(&rack, "map", 1, &[]).await;
        }
    }
    api.deleted(&road).await;
    api.deleted(&region).await;
    assert_eq!(force(&api, &region).await.status, 204);
    let left = api.get("/resources?includeDeleted=true").await;
    assert_eq!(left.column("name"), ["other"]);
    assert_eq!(api.get(&other).await.status, 200);
    assert_eq!(api.count("SELECT count(*) FROM adapter_reports").await, 0);
    let forced = api.get("/audit?action=force_delete").await;
    assert_eq!(forced.body["total"], 8);
    for entry in forced.items() {
        assert_eq!(entry["reason"], "stuck", "{entry}");
    }
}

#[tokio::test]
async fn links_to_what_is_forced_out_are_cleared() {
    let links = [("site", "Site", 1, 0)];
    let api = TestApi::spawn_with(&[
        root("Site", "sites", &["map"]),
        linked(&links, root("App", "apps", &["deploy"])),
    ])
    .await;
    let site = api.made("/sites", "Site", "site").await;
    let link = json!({"site": [{"kind": "Site", "id": site.id()}]});
    // A link that was there before its target was deleted cannot be; one whose target is brought
    // back to finalizing behind the service's back can.
    let body = json!({"kind": "App", "name": "app", "spec": {}, "references": link});
    let app = api.post("/apps", body).await;
    assert_eq!(app.status, 201, "{}", app.body);
    api.count(
        "WITH d AS (UPDATE resources SET deleted_at = now(), deleted_by = 'x' WHERE kind = 'Site' RETURNING id)
         SELECT count(*) FROM d",
    )
    .await;
    let site = format!("/sites/{}", site.id());
    assert_eq!(force(&api, &site).await.status, 204);
    let found = api.get(&format!("/apps/{}", app.id())).await;
    assert_eq!(found.status, 200);
    assert_eq!(found.body.get("references"), None);
}

#[tokio::test]
async fn an_owner_that_waited_goes_with_the_child_that_is_forced_out() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("owner").await;
    let nodepool = api.nodepool(&cluster, "stuck").await;
    api.deleted(&cluster).await;
    api.finalize(
        &cluster,
        &["validation", "dns", "pullsecret", "hypershift"],
        2,
    )
    .await;
    assert_eq!(api.get(&cluster).await.status, 200);
    assert_eq!(force(&api, &nodepool).await.status, 204);
    assert_eq!(api.get(&cluster).await.problem(), (404, "NTF-001"));
}

#[tokio::test]
async fn an_owner_still_names_its_adapters_after_its_child_is_gone() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("owner").await;
    let nodepool = api.nodepool(&cluster, "stuck").await;
    api.deleted(&cluster).await;
    assert_eq!(force(&api, &nodepool).await.status, 204);
    let found = api.get(&cluster).await;
    assert_eq!(
        found.condition("Reconciled")["reason"],
        "ReconciledMissingAdapters"
    );
    assert_eq!(
        api.get(&format!("{cluster}/nodepools?includeDeleted=true"))
            .await
            .body["total"],
        0
    );
}
