//! Patches in each of their formats: plain JSON, merge patches (RFC 7396) and JSON patches (RFC 6902).

mod guarded;
mod operations;
mod references;

use serde_json::json;

use crate::support::{Answer, JSON_PATCH, MERGE_PATCH, TestApi};

const ALL: &str = "application/json, application/merge-patch+json, application/json-patch+json";

impl TestApi {
    /// A cluster with a spec and labels; returns its path.
    async fn labelled(&self, name: &str) -> String {
        let spec =
            json!({"region": "eu", "size": 3, "zones": ["a", "b"], "net": {"cidr": "x", "mtu": 9}});
        let body = json!({"kind": "Cluster", "name": name, "spec": spec, "labels": {"team": "a", "stage": "b"}});
        let made = self.post("/clusters", body).await;
        assert_eq!(made.status, 201, "{}", made.body);
        format!("/clusters/{}", made.id())
    }
}

#[tokio::test]
async fn a_merge_patch_sets_and_removes_members() {
    let api = TestApi::spawn().await;
    let path = api.labelled("one").await;
    let change = json!({
        "spec": {"size": null, "zones": ["c"], "net": {"mtu": 1500}},
        "labels": {"team": null, "new": "x"},
    });
    let patched = api.merge(&path, change).await;
    assert_eq!(patched.status, 200, "{}", patched.body);
    let spec = json!({"region": "eu", "zones": ["c"], "net": {"cidr": "x", "mtu": 1500}});
    assert_eq!(patched.body["spec"], spec);
    assert_eq!(patched.body["labels"], json!({"stage": "b", "new": "x"}));
    assert_eq!(patched.body["generation"], 2);
    assert_eq!(patched.header("etag"), Some("\"g2.r2\""));
    assert_eq!(api.get(&path).await.body, patched.body);
    let cleared = api.merge(&path, json!({"labels": null})).await;
    assert_eq!(cleared.body["labels"], json!({}));
    assert_eq!(cleared.body["spec"], spec);
}

#[tokio::test]
async fn a_patch_that_changes_nothing_writes_nothing() {
    let api = TestApi::spawn().await;
    let path = api.labelled("one").await;
    let before = api.get(&path).await;
    for (media_type, body) in [
        (MERGE_PATCH, json!({})),
        (
            MERGE_PATCH,
            json!({"spec": {"size": 3.0, "none": null}, "labels": {"none": null}}),
        ),
        (MERGE_PATCH, json!({"references": {}})),
        (JSON_PATCH, json!([])),
        (
            JSON_PATCH,
            json!([{"op": "test", "path": "/spec/size", "value": 3.0}]),
        ),
        (
            JSON_PATCH,
            json!([{"op": "replace", "path": "/labels/team", "value": "a"}]),
        ),
        (
            JSON_PATCH,
            json!([{"op": "add", "path": "/references/none", "value": []},
                            {"op": "remove", "path": "/references/none"}]),
        ),
    ] {
        let same = api.patch_as(media_type, &path, &body).await;
        assert_eq!(same.status, 200, "{body}: {}", same.body);
        assert_eq!(same.body, before.body, "{body}");
        assert_eq!(same.header("etag"), before.header("etag"), "{body}");
    }
    assert_eq!(api.count("SELECT count(*) FROM audit_entries").await, 1);
    assert_eq!(api.count("SELECT count(*) FROM changes").await, 1);
}

#[tokio::test]
async fn a_result_is_checked_as_a_new_resource_is() {
    let api = TestApi::spawn().await;
    let path = api.labelled("one").await;
    let many: serde_json::Map<_, _> = (0..255).map(|n| (format!("l{n}"), json!("x"))).collect();
    for (media_type, body, field) in [
        (MERGE_PATCH, json!({"spec": null}), "spec"),
        (MERGE_PATCH, json!({"spec": [1]}), "spec"),
        (MERGE_PATCH, json!({"labels": "x"}), "labels"),
        (MERGE_PATCH, json!({"labels": {"team": 1}}), "labels"),
        (
            MERGE_PATCH,
            json!({"labels": {"team": "a b"}}),
            "labels[team]",
        ),
        (MERGE_PATCH, json!({"labels": many}), "labels"),
        (
            MERGE_PATCH,
            json!({"references": {"peer": [{"kind": "Cluster", "id": "x"}]}}),
            "references",
        ),
        (
            JSON_PATCH,
            json!([{"op": "remove", "path": "/spec"}]),
            "spec",
        ),
        (
            JSON_PATCH,
            json!([{"op": "add", "path": "/labels/x", "value": null}]),
            "labels[x]",
        ),
        (
            JSON_PATCH,
            json!([{"op": "add", "path": "/labels/-", "value": "x"}]),
            "labels",
        ),
        (
            JSON_PATCH,
            json!([{"op": "replace", "path": "/name", "value": "x"}]),
            "operations[0].path",
        ),
        (
            JSON_PATCH,
            json!([{"op": "remove", "path": ""}]),
            "operations[0].path",
        ),
        (JSON_PATCH, json!({"op": "remove", "path": "/spec/a"}), ""),
        (MERGE_PATCH, json!([]), ""),
    ] {
        let refused = api.patch_as(media_type, &path, &body).await;
        assert_eq!(refused.problem(), (400, "VAL-000"), "{body}");
        assert_eq!(refused.body["errors"][0]["field"], field, "{body}");
    }
    for (media_type, body) in [
        (MERGE_PATCH, r#"{"name": "x"}"#),
        (MERGE_PATCH, "{"),
        (JSON_PATCH, ""),
    ] {
        let request = api.client.patch(format!("{}{path}", api.base));
        let request = request.header("content-type", media_type).body(body);
        let refused = Answer::of(request.send().await.unwrap()).await;
        assert_eq!(refused.problem(), (400, "VAL-006"), "{body}");
    }
    assert_eq!(api.get(&path).await.body["generation"], 1);
}

#[tokio::test]
async fn many_merges_do_not_exceed_the_size_of_a_body() {
    let api = TestApi::spawn().await;
    let path = api.cluster("one").await;
    let part = "x".repeat(500_000);
    for (member, status) in [("a", 200), ("b", 200), ("c", 400)] {
        let answer = api.merge(&path, json!({"spec": {member: part}})).await;
        assert_eq!(answer.status, status, "{member}");
    }
    // A part that stays does not count.
    let label = api.merge(&path, json!({"labels": {"a": "b"}})).await;
    assert_eq!(label.status, 200, "{}", label.body["detail"]);
    let smaller = api.merge(&path, json!({"spec": {"b": null}})).await;
    assert_eq!(smaller.status, 200);
}

#[tokio::test]
async fn a_label_is_never_null() {
    let api = TestApi::spawn().await;
    let path = api.labelled("one").await;
    let labels = json!({"labels": {"team": null}});
    let create = json!({"kind": "Cluster", "name": "two", "spec": {}, "labels": {"team": null}});
    for refused in [
        api.patch(&path, labels.clone()).await,
        api.patch_as("application/json", &path, &labels).await,
        api.post("/clusters", create.clone()).await,
        api.post("/resources", create).await,
    ] {
        assert_eq!(refused.problem(), (400, "VAL-000"));
        let errors = json!([{"constraint": "format", "field": "labels[team]", "message": "label value must be a string, not null"}]);
        assert_eq!(refused.body["errors"], errors);
    }
}

#[tokio::test]
async fn only_patches_have_a_media_type() {
    let api = TestApi::spawn().await;
    let path = api.cluster("one").await;
    for (number, media_type) in [
        "",
        "application/json",
        "APPLICATION/json;charset=utf-8",
        "application/merge-patch+json; charset=utf-8",
        "application/json-patch+json;charset=utf-8",
    ]
    .into_iter()
    .enumerate()
    {
        let body = if media_type.starts_with(JSON_PATCH) {
            json!([{"op": "add", "path": "/spec/n", "value": number}])
        } else {
            json!({"spec": {"n": number}})
        };
        let patched = api.patch_as(media_type, &path, &body).await;
        assert_eq!(patched.status, 200, "{media_type}: {}", patched.body);
        assert_eq!(patched.body["spec"]["n"], number, "{media_type}");
    }
    let body = json!({"spec": {"n": 0}});
    for media_type in [
        "application/x-www-form-urlencoded",
        "application/apply-patch+yaml",
        "application/strategic-merge-patch+json",
        "text/plain",
        "*/*",
        "\u{e9}",
    ] {
        for path in [&path, "/clusters/nobody", "/resources/nobody"] {
            let refused = api.patch_as(media_type, path, &body).await;
            assert_eq!(refused.problem(), (415, "VAL-010"), "{media_type}");
            assert_eq!(refused.header("accept-patch"), Some(ALL));
        }
    }
    let twice = [("content-type", MERGE_PATCH), ("content-type", MERGE_PATCH)];
    let refused = api.send_with(&twice, "PATCH", &path, &body).await;
    assert_eq!(refused.problem(), (415, "VAL-010"));
    // Other requests are JSON, whatever they say.
    let headers = [("content-type", "text/plain")];
    let made = json!({"kind": "Cluster", "name": "two", "spec": {}});
    let made = api.send_with(&headers, "POST", "/clusters", &made).await;
    assert_eq!(made.status, 201);
}

#[tokio::test]
async fn every_path_of_a_resource_takes_every_format() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("one").await;
    let pool = api.nodepool(&cluster, "workers").await;
    let id = pool.rsplit('/').next().unwrap();
    let paths = [
        pool.clone(),
        format!("/nodepools/{id}"),
        format!("/resources/{id}"),
    ];
    let mut generation = 1;
    for (number, path) in paths.iter().enumerate() {
        let add = json!([{"op": "add", "path": format!("/spec/o{number}"), "value": 1}]);
        for answer in [
            api.merge(path, json!({"spec": {format!("m{number}"): 1}}))
                .await,
            api.operate(path, add).await,
        ] {
            generation += 1;
            assert_eq!(answer.status, 200, "{path}: {}", answer.body);
            assert_eq!(answer.body["generation"], generation, "{path}");
        }
    }
    let spec = json!({"m0": 1, "o0": 1, "m1": 1, "o1": 1, "m2": 1, "o2": 1});
    assert_eq!(api.get(&pool).await.body["spec"], spec);
    for media_type in [MERGE_PATCH, JSON_PATCH] {
        let body = if media_type == MERGE_PATCH {
            json!({})
        } else {
            json!([])
        };
        let missing = api.patch_as(media_type, "/clusters/none", &body).await;
        assert_eq!(missing.problem(), (404, "NTF-001"));
        api.delete(&cluster).await;
        let refused = api.patch_as(media_type, &cluster, &body).await;
        assert_eq!(refused.problem(), (409, "CNF-003"));
    }
    // The deletion takes precedence over operations that do not fit.
    let test = json!([{"op": "test", "path": "/spec/none", "value": 1}]);
    let refused = api.operate(&cluster, test).await;
    assert_eq!(refused.problem(), (409, "CNF-003"));
}
