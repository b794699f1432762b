//! What known clients break on, promised of imported resources: the rows of `tests/it/clients.rs` once more.

use serde_json::{Value, json};

use super::world::{PLAIN, World, cluster_id, pool_id};
use crate::support::TestApi;

/// Twelve imported clusters with three node pools each. The tenth is finalizing, with its node pools.
async fn imported() -> TestApi {
    let world = World::filled(12).await;
    world.run(PLAIN).await;
    let api = world.serve();
    // Reports must not be older than half an hour.
    api.clock.set("2026-01-02T00:10:00Z".parse().unwrap());
    api
}

fn cluster(number: usize) -> String {
    format!("/clusters/{}", cluster_id(number))
}

/// Generation of an imported cluster.
fn generation(number: i32) -> i32 {
    1 + number % 4
}

#[tokio::test]
async fn row_1_only_a_deleted_resource_has_a_trace_of_deletion() {
    let api = imported().await;
    let pool = format!("{}/nodepools/{}", cluster(1), pool_id(1));
    for path in [cluster(1), pool] {
        let body = api.get(&path).await.body;
        let body = body.as_object().unwrap();
        assert!(
            !body.contains_key("deleted_time") && !body.contains_key("deleted_by"),
            "{body:?}"
        );
    }
    let deleted = api.get(&cluster(10)).await.body;
    assert_eq!(deleted["deleted_time"], "2026-01-03T00:00:10.5Z");
    assert_eq!(deleted["deleted_by"], "remover@example.com");
}

#[tokio::test]
async fn row_2_a_missing_resource_and_a_missing_route_have_different_codes() {
    let api = imported().await;
    assert_eq!(api.get(&cluster(13)).await.problem(), (404, "NTF-001"));
    let elsewhere = format!("{}/nodepools/{}", cluster(2), pool_id(1));
    assert_eq!(api.get(&elsewhere).await.problem(), (404, "NTF-001"));
    let no_route = format!("{}/status", cluster(1));
    assert_eq!(api.get(&no_route).await.problem(), (404, "NTF-000"));
}

#[tokio::test]
async fn row_3_statuses_give_back_what_adapters_sent() {
    let api = imported().await;
    let statuses = api.get(&format!("{}/statuses", cluster(1))).await;
    let [_, validation] = statuses.items() else {
        panic!("{}", statuses.body)
    };
    assert_eq!(validation["adapter"], "validation");
    assert_eq!(
        validation["data"],
        json!({"name": "Cluster", "big": 1e25, "list": [1, 2.5]})
    );
    let kinds = validation["conditions"].as_array().unwrap().iter();
    let kinds: Vec<_> = kinds
        .map(|c| (c["type"].as_str().unwrap(), c["status"].as_str().unwrap()))
        .collect();
    assert_eq!(
        kinds,
        [
            ("Health", "True"),
            ("Available", "Unknown"),
            ("Applied", "False")
        ]
    );
}

#[tokio::test]
async fn row_4_times_are_rfc_3339_and_numbers_are_small_integers() {
    let api = imported().await;
    let found = api.get(&cluster(1)).await.body;
    assert_eq!(found["created_time"], "2026-01-01T00:00:01.123463Z");
    assert_eq!(found["updated_time"], "2026-01-02T00:00:01.000011Z");
    assert_eq!(found["generation"], 2);
    let conditions = found["status"]["conditions"].as_array().unwrap();
    assert!(
        conditions.iter().all(|c| c["observed_generation"] == 2),
        "{conditions:?}"
    );
    assert_eq!(api.get("/clusters").await.body["total"], 11);
}

#[tokio::test]
async fn row_5_authors_are_those_of_the_source() {
    let api = imported().await;
    let found = api.get(&cluster(1)).await.body;
    assert_eq!(found["created_by"], "maker-1@example.com");
    assert_eq!(found["updated_by"], "author-1@example.com");
}

#[tokio::test]
async fn row_6_content_types_are_exact() {
    let api = imported().await;
    for path in [
        "/clusters",
        &cluster(1),
        &format!("{}/statuses", cluster(1)),
    ] {
        let answer = api.get(path).await;
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (200, Some("application/json"))
        );
    }
    let problem = api.get(&cluster(13)).await;
    assert_eq!(
        problem.header("content-type"),
        Some("application/problem+json")
    );
}

#[tokio::test]
async fn row_7_errors_are_whole_problems() {
    let api = imported().await;
    let body = json!({"kind": "Cluster", "name": "cluster-1", "spec": {}});
    for answer in [
        api.post("/clusters", body).await,
        api.patch(&cluster(10), json!({"spec": {}})).await,
        api.post(
            &format!("{}/force-delete", cluster(1)),
            json!({"reason": "r"}),
        )
        .await,
    ] {
        assert_eq!(answer.status, 409, "{}", answer.body);
        assert!(answer.body["title"].as_str().unwrap().ends_with("Conflict"));
        assert_eq!(answer.body["status"], 409);
        assert_eq!(answer.body["timestamp"], "2026-01-02T00:10:00Z");
    }
}

#[tokio::test]
async fn row_8_lists_are_newest_first() {
    let api = imported().await;
    let all = api.get("/clusters?includeDeleted=true").await;
    let newest_first: Vec<_> = (1..=12)
        .rev()
        .map(|number| format!("cluster-{number}"))
        .collect();
    assert_eq!(all.column("name"), newest_first);
    let page = api.get("/clusters?size=5&page=2").await;
    assert_eq!(
        page.column("name"),
        [
            "cluster-6",
            "cluster-5",
            "cluster-4",
            "cluster-3",
            "cluster-2"
        ]
    );
    assert_eq!(api.get("/clusters?size=101").await.problem().0, 400);
}

#[tokio::test]
async fn row_9_reconciled_moves_on_with_reports() {
    let api = imported().await;
    let before = api.get(&cluster(1)).await;
    assert_eq!(before.condition("Reconciled")["observed_generation"], 2);
    assert_eq!(
        before.condition("LastKnownReconciled")["observed_generation"],
        2
    );
    let now = json!(api.clock.now());
    for adapter in ["validation", "dns", "pullsecret", "hypershift"] {
        let answer = api.report(&cluster(1), adapter, generation(1), &[]).await;
        assert_eq!(answer.status, 201, "{}", answer.body);
    }
    let after = api.get(&cluster(1)).await;
    let reconciled = after.condition("Reconciled");
    assert_eq!(
        (&reconciled["status"], &reconciled["last_updated_time"]),
        (&json!("True"), &now)
    );
    // The condition is still the one that the source has created.
    assert_eq!(reconciled["created_time"], "2026-01-01T00:00:01.123463Z");
}

#[tokio::test]
async fn row_10_labels_names_and_conditions_are_searched_for() {
    let api = imported().await;
    let probe = "/clusters?search=labels.non_existing_label%3D%27value%27";
    let answer = api.get(probe).await;
    assert_eq!((answer.status, &answer.body["total"]), (200, &json!(0)));
    for (search, found) in [
        ("labels.shard%3D%272%27", vec!["cluster-9", "cluster-1"]),
        (
            "name%20like%20%27cluster-1%25%27",
            vec!["cluster-12", "cluster-11", "cluster-1"],
        ),
        (
            "status.conditions.Reconciled%3D%27False%27",
            vec!["cluster-12", "cluster-11", "cluster-9", "cluster-8"],
        ),
    ] {
        let list = api.get(&format!("/clusters?search={search}")).await;
        assert_eq!(list.column("name"), found, "{search}");
    }
}

#[tokio::test]
async fn row_11_each_adapter_has_a_condition_of_its_own() {
    let api = imported().await;
    let available = |status: &str| {
        json!([
            {"type": "Available", "status": status, "reason": "Ready", "message": "it is there"},
            {"type": "Applied", "status": "True"}, {"type": "Health", "status": "True"},
        ])
    };
    let body = json!({"adapter": "validation", "observed_generation": generation(1), "conditions": available("True")});
    let answer = api.put(&format!("{}/statuses", cluster(1)), body).await;
    assert_eq!(answer.status, 201, "{}", answer.body);
    let found = api.get(&cluster(1)).await;
    let condition = found.condition("ValidationSuccessful");
    assert_eq!(
        (&condition["status"], &condition["reason"]),
        (&json!("True"), &json!("Ready"))
    );
}

#[tokio::test]
async fn row_12_reports_are_created_again_and_discarded() {
    let api = imported().await;
    let first = api
        .report(&cluster(1), "validation", generation(1), &[])
        .await;
    assert_eq!(first.status, 201);
    // The imported one was the first report of this adapter.
    assert_eq!(first.body["created_time"], "2026-01-02T00:00:01.000011Z");
    let ahead = api
        .report(&cluster(1), "validation", generation(1) + 1, &[])
        .await;
    let behind = api
        .report(&cluster(1), "validation", generation(1) - 1, &[])
        .await;
    let unknown = api
        .report(
            &cluster(1),
            "validation",
            generation(1),
            &[("Available", "Unknown")],
        )
        .await;
    assert_eq!([ahead.status, behind.status, unknown.status], [204; 3]);
    let body = json!({"adapter": "dns", "observed_generation": 1, "conditions": []});
    assert_eq!(
        api.put(&format!("{}/statuses", cluster(1)), body)
            .await
            .problem(),
        (400, "VAL-000")
    );
}

#[tokio::test]
async fn row_13_the_last_finalized_report_removes_the_resource() {
    let api = imported().await;
    // The clock is past the deletion that the source has noted.
    api.clock.set("2026-01-03T01:00:00Z".parse().unwrap());
    for pool in 28..=30 {
        let path = format!("{}/nodepools/{}", cluster(10), pool_id(pool));
        let generation = api.get(&path).await.body["generation"].as_i64().unwrap();
        let generation = i32::try_from(generation).unwrap();
        api.finalize(&path, &["validation", "hypershift"], generation)
            .await;
        assert_eq!(api.get(&path).await.problem(), (404, "NTF-001"));
    }
    api.finalize(
        &cluster(10),
        &["validation", "dns", "pullsecret"],
        generation(10),
    )
    .await;
    assert_eq!(api.get(&cluster(10)).await.status, 200);
    api.finalize(&cluster(10), &["hypershift"], generation(10))
        .await;
    assert_eq!(api.get(&cluster(10)).await.problem(), (404, "NTF-001"));
    // An active one goes the same way.
    let deleted = api.deleted(&cluster(1)).await;
    assert_eq!(deleted.body["generation"], generation(1) + 1);
    let pool = api.get(&format!("/nodepools/{}", pool_id(1))).await;
    assert!(pool.body["deleted_time"].is_string(), "{}", pool.body);
}

#[tokio::test]
async fn row_14_a_create_must_say_its_kind() {
    let api = imported().await;
    let list = format!("{}/nodepools", cluster(1));
    let answer = api
        .post(&list, json!({"name": "kindless", "spec": {}}))
        .await;
    assert_eq!(
        (answer.problem(), answer.detail()),
        ((400, "VAL-000"), "kind is required")
    );
    let made = api.made(&list, "NodePool", "one-more").await;
    assert_eq!(
        made.body["owner_references"]["id"],
        Value::from(cluster_id(1))
    );
}

#[tokio::test]
async fn row_15_reports_cannot_be_posted() {
    let api = imported().await;
    let answer = api
        .post(&format!("{}/statuses", cluster(1)), json!({}))
        .await;
    assert_eq!(answer.problem(), (405, "VAL-008"));
    assert_eq!(answer.header("allow"), Some("GET, HEAD, PUT"));
}
