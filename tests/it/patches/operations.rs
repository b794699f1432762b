//! Operations of JSON patches: their effects, their conflicts and their limits.

use serde_json::{Value, json};

use crate::support::TestApi;

#[tokio::test]
async fn operations_change_the_resource_in_their_order() {
    let api = TestApi::spawn().await;
    let path = api.labelled("one").await;
    let patched = api
        .operate(
            &path,
            json!([
                {"op": "test", "path": "/spec/region", "value": "eu"},
                {"op": "replace", "path": "/spec/region", "value": "us"},
                {"op": "add", "path": "/spec/zones/-", "value": "c"},
                {"op": "remove", "path": "/spec/zones/0"},
                {"op": "copy", "from": "/spec/net", "path": "/spec/backup"},
                {"op": "move", "from": "/labels/team", "path": "/labels/example.com~1team"},
                {"op": "add", "path": "/spec/none", "value": null},
            ]),
        )
        .await;
    assert_eq!(patched.status, 200, "{}", patched.body);
    let net = json!({"cidr": "x", "mtu": 9});
    let spec = json!({"region": "us", "size": 3, "zones": ["b", "c"], "net": net, "backup": net, "none": null});
    assert_eq!(patched.body["spec"], spec);
    let labels = json!({"example.com/team": "a", "stage": "b"});
    assert_eq!(patched.body["labels"], labels);
    assert_eq!(patched.body["generation"], 2);
    assert_eq!(api.get(&path).await.body, patched.body);
}

#[tokio::test]
async fn an_operation_that_does_not_fit_changes_nothing() {
    let api = TestApi::spawn().await;
    let path = api.labelled("one").await;
    let before = api.get(&path).await;
    for (operation, reason) in [
        (
            json!({"op": "test", "path": "/spec/region", "value": "us"}),
            "operations[1] (test /spec/region): the resource has another value",
        ),
        (
            json!({"op": "remove", "path": "/labels/none"}),
            "operations[1] (remove /labels/none): the resource has no such path",
        ),
        (
            json!({"op": "move", "from": "/spec/none", "path": "/spec/a"}),
            "operations[1] (move /spec/none to /spec/a): the resource has no value at from",
        ),
    ] {
        let first = json!({"op": "add", "path": "/spec/first", "value": 1});
        let refused = api.operate(&path, json!([first, operation])).await;
        assert_eq!(refused.problem(), (409, "CNF-005"), "{operation}");
        assert_eq!(refused.body["detail"], reason);
        assert_eq!(refused.body["title"], "Patch Conflict");
    }
    assert_eq!(api.get(&path).await.bytes, before.bytes);
}

#[tokio::test]
async fn operations_cannot_use_memory_or_time_without_limit() {
    let api = TestApi::spawn().await;
    let path = api.labelled("one").await;
    let doubling = (0..60)
        .map(|n| json!({"op": "copy", "from": "/spec", "path": format!("/spec/c{n}")}))
        .collect::<Value>();
    let nesting = (1..200)
        .map(|n| json!({"op": "add", "path": format!("/spec{}", "/a".repeat(n)), "value": {}}))
        .collect::<Value>();
    let zeros = json!({"spec": {"zeros": vec![0; 500_000]}});
    assert_eq!(api.merge(&path, zeros).await.status, 200);
    let shift = json!({"op": "move", "from": "/spec/zeros/0", "path": "/spec/zeros/1"});
    let shifting = json!(vec![shift; 256]);
    let many = json!(vec![
        json!({"op": "test", "path": "/spec/size", "value": 3});
        257
    ]);
    for (body, message) in [
        (shifting, "the operations shift more than"),
        (doubling, "copies add more than"),
        (nesting, "the result is nested deeper than 64 levels"),
        (many, "a patch must have at most 256 operations"),
    ] {
        let refused = api.operate(&path, body).await;
        assert_eq!(refused.problem(), (400, "VAL-000"));
        let detail = refused.body["detail"].as_str().unwrap();
        assert!(detail.starts_with(message), "{detail}");
    }
}
