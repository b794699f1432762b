//! Sparse answers.

use serde_json::json;

use crate::support::{Random, TestApi, until};

const NOBODY: &str = "019b7654-0000-7000-8000-000000000000";

#[tokio::test]
async fn a_resource_shows_what_is_asked_for_and_its_id() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("sparse").await;
    let pool = api.nodepool(&cluster, "pool").await;
    let complete = api.get(&pool).await.body;
    let id = &complete["id"];
    for (fields, expected) in [
        ("name", json!({"id": id, "name": "pool"})),
        (
            "name&fields=kind,%20generation%20,",
            json!({"generation": 1, "id": id, "kind": "NodePool", "name": "pool"}),
        ),
        (
            "deleted_time,references,labels",
            json!({"deleted_time": null, "id": id, "labels": {}, "references": null}),
        ),
        (
            "owner_references.href",
            json!({"id": id, "owner_references": {"href": complete["owner_references"]["href"]}}),
        ),
        (
            "status.conditions.type,status.conditions.status",
            json!({"id": id, "status": {"conditions": [
                {"status": "False", "type": "Reconciled"},
                {"status": "False", "type": "LastKnownReconciled"},
            ]}}),
        ),
    ] {
        let sparse = api.get(&format!("{pool}?fields={fields}")).await;
        assert_eq!((sparse.status, sparse.body), (200, expected), "{fields}");
    }
    for none in ["", "?fields=", "?fields=%20,"] {
        assert_eq!(
            api.get(&format!("{pool}{none}")).await.body,
            complete,
            "{none}"
        );
    }
}

/// How often TOAST values were read, such as large specs.
const READ_APART: &str = "SELECT coalesce(sum(idx_scan), 0)::bigint FROM pg_stat_all_tables t
    JOIN pg_class c ON c.reltoastrelid = t.relid WHERE c.relname = 'resources'";

/// So many lists without specs.
const LISTS: i64 = 50;

#[tokio::test]
async fn specs_that_are_not_asked_for_are_not_read() {
    let api = TestApi::spawn().await;
    let mut random = Random::seeded(1);
    // Nothing that could be compressed into the row.
    let text: String = (0..20_000)
        .map(|_| {
            char::from(b' ' + u8::try_from(random.below(2) * 16 + random.below(16)).unwrap() + 16)
        })
        .collect();
    let body = json!({"kind": "Cluster", "name": "large", "spec": {"text": text}});
    assert_eq!(api.post("/clusters", body).await.status, 201);
    let before = api.count(READ_APART).await;
    for _ in 0..LISTS {
        let list = api.get("/clusters?fields=name,status.conditions").await;
        assert_eq!(list.items()[0]["name"], "large");
    }
    let mut with_spec = 0;
    until("the database has counted its reads", async || {
        let list = api.get("/clusters?fields=spec").await;
        assert_eq!(list.items()[0]["spec"]["text"], text);
        with_spec += 1;
        api.count(READ_APART).await > before
    })
    .await;
    let read = api.count(READ_APART).await - before;
    // Others may have read it, too, but not each list.
    assert!(read < with_spec + LISTS / 2, "{read} of {with_spec}");
}

#[tokio::test]
async fn an_unknown_field_is_named_also_on_empty_lists() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("sparse").await;
    let message = "The following field(s) doesn't exist in `Resource`: status, labels.x";
    for path in [
        &*cluster,
        "/clusters",
        "/nodepools",
        &format!("{cluster}/nodepools"),
        "/resources",
    ] {
        let answer = api
            .get(&format!("{path}?fields=name,status,labels.x"))
            .await;
        assert_eq!(answer.problem(), (400, "VAL-000"), "{path}");
        assert_eq!(answer.detail(), message, "{path}");
        assert!(answer.body.get("errors").is_none(), "{path}");
    }
    for path in [
        format!("/clusters/{NOBODY}?fields=nope"),
        format!("/clusters/{NOBODY}/nodepools?fields=nope"),
    ] {
        assert_eq!(api.get(&path).await.problem(), (404, "NTF-001"), "{path}");
    }
}
