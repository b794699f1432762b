//! Computed patches of references.

use serde_json::{Value, json};

use crate::support::{TestApi, linked, root};

/// Apps may use sites and know friends.
async fn spawn() -> TestApi {
    let links = [("site", "Site", 0, 2), ("friend", "App", 0, 0)];
    TestApi::spawn_with(&[
        root("Site", "sites", &["map"]),
        linked(&links, root("App", "apps", &["deploy"])),
    ])
    .await
}

/// The references of an answer, without hrefs.
fn links(body: &Value) -> Value {
    let mut references = body["references"].clone();
    for targets in references.as_object_mut().into_iter().flatten() {
        for target in targets.1.as_array_mut().unwrap() {
            target.as_object_mut().unwrap().remove("href");
        }
    }
    references
}

#[tokio::test]
async fn types_of_references_are_merged() {
    let api = spawn().await;
    let to = |kind: &str, id: &str| json!({"kind": kind, "id": id});
    let one = api.made("/sites", "Site", "one").await.id().to_owned();
    let two = api.made("/sites", "Site", "two").await.id().to_owned();
    let friend = api.made("/apps", "App", "friend").await.id().to_owned();
    let path = api.make("/apps", "App", "app").await;
    let (one, two, friend) = (to("Site", &one), to("Site", &two), to("App", &friend));
    for (body, expected) in [
        (json!({"site": [one]}), json!({"site": [one]})),
        (
            json!({"friend": [friend]}),
            json!({"site": [one], "friend": [friend]}),
        ),
        (
            json!({"site": [two]}),
            json!({"site": [two], "friend": [friend]}),
        ),
        (json!({"site": null}), json!({"friend": [friend]})),
    ] {
        let patched = api.merge(&path, json!({"references": body})).await;
        assert_eq!(patched.status, 200, "{}", patched.body);
        assert_eq!(links(&patched.body), expected, "{body}");
        assert_eq!(api.get(&path).await.body, patched.body);
    }
    let add = json!([
        {"op": "add", "path": "/references/site", "value": []},
        {"op": "add", "path": "/references/site/-", "value": one},
        {"op": "remove", "path": "/references/friend/0"},
    ]);
    let patched = api.operate(&path, add).await;
    assert_eq!(patched.status, 200, "{}", patched.body);
    assert_eq!(links(&patched.body), json!({"site": [one]}));
    assert_eq!(patched.body["generation"], 6);
    let same = api
        .merge(&path, json!({"references": {"site": [one]}}))
        .await;
    assert_eq!(same.body["generation"], 6);
    let emptied = api.merge(&path, json!({"references": null})).await;
    assert_eq!(emptied.body["references"], Value::Null);
    assert_eq!(emptied.body["generation"], 7);
}

#[tokio::test]
async fn references_of_a_computed_patch_are_checked() {
    let api = spawn().await;
    let path = api.make("/apps", "App", "app").await;
    let sites: Vec<_> = [
        api.made("/sites", "Site", "one").await,
        api.made("/sites", "Site", "two").await,
        api.made("/sites", "Site", "three").await,
    ]
    .iter()
    .map(|made| json!({"kind": "Site", "id": made.id()}))
    .collect();
    let gone = api.make("/sites", "Site", "gone").await;
    api.deleted(&gone).await;
    let gone = json!({"kind": "Site", "id": gone.rsplit('/').next().unwrap()});
    for (references, message) in [
        (json!({"site": sites}), "exceeds max count 2 (got 3)"),
        (json!({"site": [gone]}), "is marked for deletion"),
        (json!({"nothing": [gone]}), "unknown reference type"),
        (
            json!({"site": [{"kind": "App", "id": "x"}]}),
            "does not match",
        ),
    ] {
        let refused = api.merge(&path, json!({"references": references})).await;
        assert_eq!(refused.problem(), (400, "VAL-000"), "{references}");
        let detail = refused.body["detail"].as_str().unwrap();
        assert!(detail.contains(message), "{detail}");
    }
    assert_eq!(api.get(&path).await.body["generation"], 1);
}
