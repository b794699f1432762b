//! Computed patches with preconditions, idempotency keys and dry runs, and as one of several tenants.

use hyperfleet_domain::entity_config;
use serde_json::{Value, json};

use crate::support::{ACME, BETA, JSON_PATCH, MERGE_PATCH, TestApi, Walls};

/// One change in both computed formats: the size becomes this number.
fn resized(size: u32) -> [(&'static str, Value); 2] {
    let operation = json!({"op": "replace", "path": "/spec/size", "value": size});
    [
        (MERGE_PATCH, json!({"spec": {"size": size}})),
        (JSON_PATCH, json!([operation])),
    ]
}

#[tokio::test]
async fn preconditions_hold_for_every_format() {
    let api = TestApi::spawn().await;
    for (number, (media_type, body)) in resized(4).into_iter().enumerate() {
        let path = api.labelled(&format!("size-{number}")).await;
        let send = async |tag: &str, body: &Value| {
            let headers = [("content-type", media_type), ("if-match", tag)];
            api.send_with(&headers, "PATCH", &path, body).await
        };
        let refused = send("\"g9\"", &body).await;
        assert_eq!(refused.problem(), (412, "CNF-002"));
        let patched = send("\"g1\"", &body).await;
        assert_eq!(patched.status, 200, "{}", patched.body);
        assert_eq!(patched.body["spec"]["size"], 4);
        let refused = send("\"g1\"", &body).await;
        assert_eq!(refused.problem(), (412, "CNF-002"));
        assert_eq!(refused.header("etag"), Some("\"g2.r2\""));
    }
    // A precondition takes precedence over operations that do not fit.
    let path = api.labelled("last").await;
    let test = json!([{"op": "test", "path": "/spec/none", "value": 1}]);
    let headers = [("content-type", JSON_PATCH), ("if-match", "\"g9\"")];
    let refused = api.send_with(&headers, "PATCH", &path, &test).await;
    assert_eq!(refused.problem(), (412, "CNF-002"));
}

#[tokio::test]
async fn a_repeated_patch_has_one_effect() {
    let api = TestApi::spawn().await;
    let path = api.labelled("one").await;
    let push = json!([{"op": "add", "path": "/spec/zones/-", "value": "c"}]);
    let merge = json!({"spec": {"size": null}, "labels": {"team": null}});
    for (key, media_type, body) in [("a", JSON_PATCH, push), ("b", MERGE_PATCH, merge)] {
        let headers = [("content-type", media_type), ("idempotency-key", key)];
        let first = api.send_with(&headers, "PATCH", &path, &body).await;
        assert_eq!(first.status, 200, "{}", first.body);
        let again = api.send_with(&headers, "PATCH", &path, &body).await;
        assert_eq!(again.bytes, first.bytes);
        assert_eq!(again.header("idempotency-replayed"), Some("true"));
        assert_eq!(again.header("etag"), first.header("etag"));
    }
    let stored = api.get(&path).await.body;
    assert_eq!(stored["spec"]["zones"], json!(["a", "b", "c"]));
    assert_eq!(stored["generation"], 3);
    // A refused patch keeps no key.
    let test = json!([{"op": "test", "path": "/spec/size", "value": 3}]);
    let headers = [("content-type", JSON_PATCH), ("idempotency-key", "c")];
    let refused = api.send_with(&headers, "PATCH", &path, &test).await;
    assert_eq!(refused.problem(), (409, "CNF-005"));
    api.merge(&path, json!({"spec": {"size": 3}})).await;
    let later = api.send_with(&headers, "PATCH", &path, &test).await;
    assert_eq!(later.status, 200, "{}", later.body);
}

#[tokio::test]
async fn a_key_belongs_to_one_format() {
    let api = TestApi::spawn().await;
    let path = api.labelled("one").await;
    let body = json!({"spec": {"size": 4}});
    let key = ("idempotency-key", "a");
    let first = api.send_with(&[key], "PATCH", &path, &body).await;
    assert_eq!(first.body["spec"], json!({"size": 4}));
    let plain = [key, ("content-type", "application/json; charset=utf-8")];
    let again = api.send_with(&plain, "PATCH", &path, &body).await;
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    let merge = [key, ("content-type", MERGE_PATCH)];
    let other = api.send_with(&merge, "PATCH", &path, &body).await;
    assert_eq!(other.problem(), (422, "VAL-009"));
}

#[tokio::test]
async fn a_dry_run_plans_a_computed_patch() {
    let api = TestApi::spawn().await;
    for (number, (media_type, body)) in resized(4).into_iter().enumerate() {
        let path = api.labelled(&format!("size-{number}")).await;
        let before = api.get(&path).await;
        let dry = format!("{path}?dryRun=true");
        let planned = api.patch_as(media_type, &dry, &body).await;
        assert_eq!(planned.status, 200, "{}", planned.body);
        assert_eq!(planned.body["spec"]["size"], 4);
        assert_eq!(planned.body["spec"]["region"], "eu");
        assert_eq!(planned.body["dry_run"]["effects"][0]["action"], "patch");
        assert_eq!(api.get(&path).await.bytes, before.bytes);
        let made = api.patch_as(media_type, &path, &body).await;
        assert_eq!(made.body["spec"], planned.body["spec"]);
        let nothing = api.patch_as(media_type, &dry, &body).await;
        assert_eq!(nothing.body["dry_run"]["effects"], json!([]));
    }
    let path = api.labelled("last").await;
    let test = json!([{"op": "test", "path": "/spec/size", "value": 4}]);
    let refused = api.operate(&format!("{path}?dryRun=true"), test).await;
    assert_eq!(refused.problem(), (409, "CNF-005"));
}

#[tokio::test]
async fn a_computed_patch_reads_no_resource_of_another_tenant() {
    let api = TestApi::spawn_for(&entity_config::built_in(), Walls::Up).await;
    let (acme, beta) = (api.speaking(ACME), api.speaking(BETA));
    let path = acme.labelled("one").await;
    for (media_type, body) in resized(4) {
        let hidden = beta.patch_as(media_type, &path, &body).await;
        assert_eq!(hidden.problem(), (404, "NTF-001"));
    }
    // Not even its values can be tested.
    let test = json!([{"op": "test", "path": "/spec/size", "value": 9}]);
    let hidden = beta.operate(&path, test).await;
    assert_eq!(hidden.problem(), (404, "NTF-001"));
    for (media_type, body) in resized(4) {
        let patched = acme.patch_as(media_type, &path, &body).await;
        assert_eq!(patched.status, 200, "{}", patched.body);
    }
}
