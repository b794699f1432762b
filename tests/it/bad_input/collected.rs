//! All violations of a body are reported together.

use serde_json::json;

use super::{report, with};
use crate::support::{Answer, Problem as _, TestApi};

#[track_caller]
fn assert_violations(answer: &Answer, fields: &[&str]) {
    assert_eq!(
        (answer.status, answer.code()),
        (400, "VAL-000"),
        "{}",
        answer.body
    );
    assert_eq!(answer.detail(), "Request body validation failed");
    let mut found = answer.fields();
    found.sort_unstable();
    assert_eq!(found, fields, "{}", answer.body);
}

#[tokio::test]
async fn each_violation_of_a_new_resource_has_its_entry() {
    let api = TestApi::spawn().await;
    for path in ["/clusters", "/resources"] {
        let answer = api.post(path, json!({})).await;
        assert_violations(&answer, &["kind", "name", "spec"]);
        let answer = api
            .post(path, json!({"kind": "Cluster", "name": "A", "spec": []}))
            .await;
        assert_violations(&answer, &["name", "spec"]);
        let body = json!({"kind": 1, "name": 2, "spec": 3, "labels": 4, "references": 5});
        let answer = api.post(path, body).await;
        assert_violations(&answer, &["kind", "labels", "name", "references", "spec"]);
        let body = json!({"kind": "Cluster", "name": "abc", "labels": {"a b": "c", "d": "e f", "ok": "ok"}});
        let answer = api.post(path, body).await;
        assert_violations(&answer, &["labels", "labels[d]", "spec"]);
        let body = json!({
            "kind": "Cluster",
            "name": "abc",
            "spec": {},
            "labels": {"a": 1, "b b": "x", "c": [], "d": "e f"},
            "references": {"a": 1, "b": [7, {"id": 8}], "c": [{"kind": {}}]},
        });
        let answer = api.post(path, body).await;
        let fields = [
            "labels",
            "labels",
            "labels",
            "labels[d]",
            "references",
            "references.b[0]",
            "references.b[1].id",
            "references.c[0].kind",
        ];
        assert_violations(&answer, &fields);
    }
}

#[tokio::test]
async fn each_violation_of_a_patch_has_its_entry() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("abc").await;
    let answer = api
        .patch(&cluster, json!({"spec": 1, "labels": [], "references": ""}))
        .await;
    assert_violations(&answer, &["labels", "references", "spec"]);
    let answer = api
        .patch(&cluster, json!({"spec": null, "labels": {"-": "-"}}))
        .await;
    assert_violations(&answer, &["labels", "spec"]);
}

#[tokio::test]
async fn each_violation_of_a_report_has_its_entry() {
    let api = TestApi::spawn().await;
    let path = format!("{}/statuses", api.cluster("abc").await);
    let answer = api.put(&path, json!({})).await;
    assert_violations(&answer, &["adapter", "observed_generation"]);
    let mut body = report(&api);
    for (pointer, wrong) in [
        ("/adapter", json!("")),
        ("/observed_generation", json!("1")),
        ("/observed_time", json!("1999-01-01T00:00:00Z")),
        ("/conditions/0/status", json!("true")),
        ("/conditions/1/type", json!("")),
        ("/conditions/2", json!(7)),
        ("/data", json!([])),
        ("/metadata/attempt", json!("1")),
        ("/metadata/job_name", json!(1)),
    ] {
        body = with(&body, pointer, wrong);
    }
    let fields = [
        "adapter",
        "conditions[0].status",
        "conditions[1].type",
        "conditions[2]",
        "data",
        "metadata.attempt",
        "metadata.job_name",
        "observed_generation",
        "observed_time",
    ];
    assert_violations(&api.put(&path, body).await, &fields);
}
