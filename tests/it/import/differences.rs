//! The guide's table of differences, for the rows without a rule of the conformance suite: what this service answers
//! about imported resources.

use serde_json::json;

use super::world::{PLAIN, World, cluster_id, finding_counts, verified};
use crate::support::{TestApi, child, root};

const ADAPTERS: [&str; 4] = ["validation", "dns", "pullsecret", "hypershift"];

/// A finalizing cluster without children, of which every adapter has finalized: in the older service it waits for one
/// more report.
async fn waiting_parent() -> (TestApi, String) {
    let world = World::empty().await;
    world.there("SELECT fill(10, 0)").await;
    let id = cluster_id(10);
    let reports = ADAPTERS.map(|adapter| {
        format!(
            "INSERT INTO adapter_statuses (id, resource_type, resource_id, adapter, observed_generation,
                 created_time, last_report_time, conditions, data)
             SELECT 'waiting-{adapter}', 'Cluster', id, '{adapter}', generation, '2026-01-03 00:30:00Z', '2026-01-03 00:30:00Z', jsonb_build_array(
                 jsonb_build_object('type', 'Available', 'status', 'True', 'last_transition_time', '2026-01-03T00:30:00Z'),
                 jsonb_build_object('type', 'Applied', 'status', 'True', 'last_transition_time', '2026-01-03T00:30:00Z'),
                 jsonb_build_object('type', 'Health', 'status', 'True', 'last_transition_time', '2026-01-03T00:30:00Z'),
                 jsonb_build_object('type', 'Finalized', 'status', 'True', 'last_transition_time', '2026-01-03T00:30:00Z')), '{{}}'
             FROM resources WHERE id = '{id}'"
        )
    });
    let clear = format!("DELETE FROM adapter_statuses WHERE resource_id = '{id}'");
    for sql in [clear].into_iter().chain(reports) {
        world.there(&sql).await;
    }
    assert_eq!(verified(&world.run(PLAIN).await), [10, 0, 0]);
    let path = format!("/clusters/{id}");
    let api = world.serve();
    assert_eq!(api.get(&path).await.status, 200);
    (api, path)
}

#[tokio::test]
async fn a_parent_that_waited_for_a_report_goes_with_one() {
    let (api, path) = waiting_parent().await;
    let generation = api.get(&path).await.body["generation"].as_i64().unwrap();
    api.clock.set("2026-01-03T01:00:00Z".parse().unwrap());
    let generation = i32::try_from(generation).unwrap();
    api.finalize(&path, &["hypershift"], generation).await;
    assert_eq!(api.get(&path).await.problem(), (404, "NTF-001"));
}

#[tokio::test]
async fn a_waiting_parent_goes_with_a_repeated_deletion() {
    let (api, path) = waiting_parent().await;
    assert_eq!(api.delete(&path).await.status, 202);
    assert_eq!(api.get(&path).await.problem(), (404, "NTF-001"));
}

#[tokio::test]
async fn a_repeated_deletion_changes_nothing() {
    let world = World::filled(10).await;
    world.run(PLAIN).await;
    let api = world.serve();
    let path = format!("/clusters/{}", cluster_id(10));
    let before = api.get(&path).await.body;
    assert_eq!(api.delete(&path).await.status, 202);
    assert_eq!(api.get(&path).await.body, before);
}

#[tokio::test]
async fn without_a_policy_children_hold_their_parent() {
    let kinds = [
        root("Cluster", "clusters", &["dns"]),
        child("Cluster", "", root("NodePool", "nodepools", &["dns"])),
    ];
    let world = World::with_kinds(&kinds).await;
    world.there("SELECT fill(1, 1)").await;
    world.run(PLAIN).await;
    let api = world.serve();
    let refused = api.delete(&format!("/clusters/{}", cluster_id(1))).await;
    assert_eq!(refused.problem(), (409, "CNF-003"));
}

#[tokio::test]
async fn imported_conditions_keep_their_message_until_the_next_change() {
    let world = World::filled(9).await;
    let message = "Required adapters not reporting Available=True: [dns]. Currently reporting: []";
    world
        .there(&format!(
            "UPDATE resource_conditions SET message = '{message}' WHERE type = 'Reconciled';
             DELETE FROM adapter_statuses"
        ))
        .await;
    world.run(PLAIN).await;
    let api = world.serve();
    let path = format!("/clusters/{}", cluster_id(9));
    let before = api.get(&path).await;
    assert_eq!(before.condition("Reconciled")["message"], message);
    api.clock.set("2026-01-03T01:00:00Z".parse().unwrap());
    let patched = api.patch(&path, json!({"spec": {"changed": true}})).await;
    assert_eq!(patched.status, 200, "{}", patched.body);
    assert_eq!(
        api.get(&path).await.condition("Reconciled")["message"],
        "Required adapters have not yet reported status"
    );
}

#[tokio::test]
async fn imported_numbers_beyond_64_bits_stay_exact() {
    let world = World::filled(1).await;
    world
        .there("UPDATE resources SET spec = '{\"large\": 123456789012345678901234567890, \"exact\": 9007199254740993}'")
        .await;
    assert_eq!(finding_counts(&world.run(PLAIN).await), []);
    let stored = "SELECT spec ->> 'large' FROM resources WHERE kind = 'Cluster'";
    assert_eq!(
        world.target_value(stored).await,
        "123456789012345678901234567890"
    );
    let api = world.serve();
    let url = format!("{}/clusters/{}", api.base, cluster_id(1));
    let answer = reqwest::get(url).await.unwrap().text().await.unwrap();
    for number in ["123456789012345678901234567890", "9007199254740993"] {
        assert!(answer.contains(number), "{answer}");
    }
    let body =
        r#"{"kind":"Cluster","name":"large","spec":{"large":123456789012345678901234567890}}"#;
    let refused = api.send_bytes("POST", "/clusters", body).await;
    assert_eq!(refused.problem(), (400, "VAL-006"));
}

#[tokio::test]
async fn the_document_and_the_tenants() {
    let world = World::filled(3).await;
    world.run(PLAIN).await;
    let api = world.serve();
    let document = api.get("/openapi").await;
    assert_eq!(document.body["openapi"], "3.0.3");
    // The third cluster has a tenancy.
    assert_eq!(api.get("/clusters").await.body["total"], 3);
}

#[tokio::test]
async fn names_of_members_are_case_sensitive_and_stand_once() {
    let api = TestApi::spawn().await;
    let body = json!({"kind": "Cluster", "Name": "abc", "spec": {}});
    let refused = api.post("/clusters", body).await;
    assert_eq!(refused.problem(), (400, "VAL-000"));
    assert!(refused.detail().contains("name"), "{}", refused.body);
    let body = json!({"kind": "Cluster", "name": "abc", "spec": {}, "Labels": {"a": "b"}});
    let made = api.post("/clusters", body).await;
    assert_eq!((made.status, &made.body["labels"]), (201, &json!({})));
    let path = format!("/clusters/{}", made.id());
    let refused = api.patch(&path, json!({"Spec": {"a": 1}})).await;
    assert_eq!(refused.problem(), (400, "VAL-006"));
    let twice = r#"{"kind":"Cluster","name":"first","name":"last","spec":{}}"#;
    let refused = api.send_bytes("POST", "/clusters", twice).await;
    assert_eq!(refused.problem(), (400, "VAL-000"));
}

#[tokio::test]
async fn an_unknown_path_is_answered_with_the_id_of_the_request() {
    let api = TestApi::spawn().await;
    let answer = api.get("/nowhere").await;
    assert_eq!(answer.problem(), (404, "NTF-000"));
    let id = answer.header("x-request-id").unwrap();
    assert!(!id.is_empty());
    assert_eq!(answer.body["trace_id"], id);
}
