//! Removed resources: what is left of them, for those who ask.

use serde_json::{Value, json};

use super::{kinds, recorded, text};
use crate::support::{Problem as _, TestApi};

#[tokio::test]
async fn a_removed_resource_is_410_in_history_and_404_for_others() {
    let api = TestApi::spawn_with(&kinds()).await;
    let path = api.make("/sites", "Site", "a").await;
    let asked = format!("{path}?includeDeleted=true");
    assert_eq!(api.get(&asked).await.status, 200);
    let deleted = api.deleted(&path).await;
    assert_eq!(api.get(&asked).await.status, 200);
    api.report(&path, "dns", 2, &[("Finalized", "True")]).await;
    let last = api.get(&path).await;
    api.clock.advance(5);
    let removed_at = api.clock.now();
    let done = api.report(&path, "net", 2, &[("Finalized", "True")]).await;
    assert_eq!(done.status, 201);
    for asked in [path.clone(), format!("{path}?includeDeleted=false")] {
        let answer = api.get(&asked).await;
        assert_eq!((answer.status, answer.code()), (404, "NTF-001"), "{asked}");
    }
    let answer = api.get(&asked).await;
    assert_eq!((answer.status, answer.code()), (410, "HST-003"));
    let removal = &answer.body["removal"];
    assert_eq!(removal["time"], text(removed_at));
    assert_eq!(removal["actor"], "system@hyperfleet.local");
    assert_eq!(removal["request_id"], done.header("x-request-id").unwrap());
    assert_eq!(removal.get("reason"), None);
    assert_eq!(recorded(&removal["resource"]), recorded(&last.body));
    assert_eq!(
        removal["resource"]["deleted_time"],
        deleted.body["deleted_time"]
    );
    // Its history is there, too.
    assert_eq!(
        api.get(&format!("{path}?generation=2")).await.body["generation"],
        2
    );
    // What is no id, and what never was, stays not found.
    for other in ["none", "01890000-0000-7000-8000-000000000000"] {
        let answer = api
            .get(&format!("/sites/{other}?includeDeleted=true"))
            .await;
        assert_eq!((answer.status, answer.code()), (404, "NTF-001"));
    }
    // While it is retained.
    let mut session = api.database.store().session().await.unwrap();
    let before = removed_at + chrono::TimeDelta::seconds(1);
    session
        .db()
        .delete_changes_before(before, 100)
        .await
        .unwrap();
    drop(session);
    let answer = api.get(&asked).await;
    assert_eq!((answer.status, answer.code()), (404, "NTF-001"));
}

#[tokio::test]
async fn a_family_that_was_forced_out_says_why_under_every_path() {
    let api = TestApi::spawn_with(&kinds()).await;
    let path = api.make("/sites", "Site", "a").await;
    let reason = "the building burned down";
    assert_eq!(
        api.patch(&path, json!({"labels": {"a": "b"}})).await.status,
        200
    );
    let rack = api.make(&format!("{path}/racks"), "Rack", "r").await;
    api.clock.advance(1);
    let there = text(api.clock.now());
    api.clock.advance(1);
    api.deleted(&path).await;
    let forced = api
        .post(&format!("{path}/force-delete"), json!({"reason": reason}))
        .await;
    assert_eq!(forced.status, 204);
    let answer = api.get(&format!("{path}?includeDeleted=true")).await;
    assert_eq!(answer.status, 410, "{}", answer.body);
    assert_eq!(answer.body["removal"]["reason"], reason);
    assert_eq!(
        answer.body["removal"]["resource"]["labels"],
        json!({"a": "b"})
    );
    let id = rack.rsplit('/').next().unwrap();
    for path in [
        rack.clone(),
        format!("/racks/{id}"),
        format!("/resources/{id}"),
    ] {
        let answer = api.get(&format!("{path}?includeDeleted=true")).await;
        assert_eq!(answer.status, 410, "{path}: {}", answer.body);
        assert_eq!(answer.body["removal"]["resource"]["name"], "r");
        let answer = api.get(&format!("{path}?at={there}")).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    }
    let other = format!("/sites/{id}?includeDeleted=true");
    assert_eq!(api.get(&other).await.status, 404);
    let racks = api.get(&format!("{path}/racks?at={there}")).await;
    let names: Vec<Value> = racks.items().iter().map(|i| i["name"].clone()).collect();
    assert_eq!(names, ["r"]);
}

#[tokio::test]
async fn a_resource_that_another_program_removes_keeps_its_references() {
    let api = TestApi::spawn_with(&kinds()).await;
    let peer = api.made("/sites", "Site", "peer").await;
    let body = json!({"kind": "Site", "name": "a", "spec": {}, "references": {"peer": [{"id": peer.id(), "kind": "Site"}]}});
    let linked = api.post("/sites", body).await;
    assert_eq!(linked.status, 201, "{}", linked.body);
    let gone = "WITH gone AS (DELETE FROM resources WHERE name = 'a' RETURNING 1) SELECT count(*) FROM gone";
    assert_eq!(api.count(gone).await, 1);
    let left = "SELECT count(*) FROM resource_references";
    assert_eq!(api.count(left).await, 0);
    let removals = "SELECT count(*) FROM changes WHERE action = 'removed'";
    assert_eq!(api.count(removals).await, 1);
    let asked = format!("/sites/{}?includeDeleted=true", linked.id());
    let answer = api.get(&asked).await;
    assert_eq!(answer.status, 410, "{}", answer.body);
    let last = &answer.body["removal"]["resource"];
    assert_eq!(last["references"], linked.body["references"]);
    assert_eq!(last["references"]["peer"][0]["id"], peer.id());
}
