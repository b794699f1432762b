//! Computed patches of one resource at once: each is applied to what the others have written.

use serde_json::{Map, Value, json};

use super::Busy;
use crate::support::{JSON_PATCH, MERGE_PATCH, linked, root};

const MANY: usize = 24;

/// A patch of this number: it sets one member of the spec or one label, in one of the formats.
fn change(number: usize) -> (&'static str, Value) {
    let name = format!("m{number}");
    match number % 4 {
        0 => (MERGE_PATCH, json!({"spec": {name: number}})),
        1 => (MERGE_PATCH, json!({"labels": {name: "x"}})),
        2 => (
            JSON_PATCH,
            json!([{"op": "add", "path": format!("/spec/{name}"), "value": number}]),
        ),
        _ => (
            JSON_PATCH,
            json!([{"op": "add", "path": format!("/labels/{name}"), "value": "x"}]),
        ),
    }
}

fn changed(part: &[usize], value: impl Fn(usize) -> Value) -> Value {
    let numbers = (0..MANY).filter(|number| part.contains(&(number % 4)));
    let members: Map<_, _> = numbers
        .map(|number| (format!("m{number}"), value(number)))
        .collect();
    Value::Object(members)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn computed_patches_of_other_members_all_survive() {
    let busy = Busy::spawn().await;
    let path = busy.api.cluster("abc").await;
    let requests = (0..MANY).map(|number| {
        let (api, path) = (busy.api.clone(), path.clone());
        let (media_type, body) = change(number);
        async move { api.patch_as(media_type, &path, &body).await }
    });
    for answer in busy.at_once(requests).await {
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
    let stored = busy.api.get(&path).await.body;
    assert_eq!(stored["spec"], changed(&[0, 2], |number| json!(number)));
    assert_eq!(stored["labels"], changed(&[1, 3], |_| json!("x")));
    assert_eq!(stored["generation"], MANY + 1);
    busy.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_patches_that_test_a_value_one_succeeds() {
    let busy = Busy::spawn().await;
    let path = busy.api.cluster("abc").await;
    busy.api.merge(&path, json!({"spec": {"n": 0}})).await;
    let requests = (1..=MANY).map(|number| {
        let (api, path) = (busy.api.clone(), path.clone());
        let body = json!([
            {"op": "test", "path": "/spec/n", "value": 0},
            {"op": "replace", "path": "/spec/n", "value": number},
        ]);
        async move { api.operate(&path, body).await }
    });
    let answers = busy.at_once(requests).await;
    let (made, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|a| a.status == 200);
    assert_eq!(made.len(), 1);
    for answer in refused {
        assert_eq!(answer.problem(), (409, "CNF-005"));
    }
    let stored = busy.api.get(&path).await.body;
    assert_eq!(stored["spec"], made[0].body["spec"]);
    assert_eq!(stored["generation"], 3);
    busy.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn merged_references_of_other_types_all_survive() {
    const TYPES: [&str; 4] = ["a", "b", "c", "d"];
    let links = TYPES.map(|ref_type| (ref_type, "Site", 0, 1));
    let busy = Busy::spawn_with(vec![
        root("Site", "sites", &["map"]),
        linked(&links, root("App", "apps", &["deploy"])),
    ])
    .await;
    let path = busy.api.make("/apps", "App", "app").await;
    let mut targets = Vec::new();
    for name in TYPES {
        let made = busy.api.made("/sites", "Site", name).await;
        targets.push(json!([{"kind": "Site", "id": made.id()}]));
    }
    for round in 1..=4 {
        let requests = TYPES.iter().zip(&targets).map(|(ref_type, target)| {
            let (api, path) = (busy.api.clone(), path.clone());
            let body = json!({"references": {*ref_type: target}});
            async move { api.merge(&path, body).await }
        });
        for answer in busy.at_once(requests).await {
            assert_eq!(answer.status, 200, "{}", answer.body);
        }
        let stored = busy.api.get(&path).await.body;
        let types: Vec<_> = stored["references"].as_object().unwrap().keys().collect();
        assert_eq!(types, TYPES, "round {round}");
        let cleared = busy.api.merge(&path, json!({"references": null})).await;
        assert_eq!(cleared.status, 200, "{}", cleared.body);
    }
    busy.assert_sound().await;
}

/// Either a site is deleted and nothing references it, or it is referenced and stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_merged_reference_outlives_its_target() {
    let busy = Busy::spawn_with(vec![
        root("Site", "sites", &["map"]),
        linked(&[("site", "Site", 0, 0)], root("App", "apps", &["deploy"])),
    ])
    .await;
    for round in 0..8 {
        let app = busy.api.make("/apps", "App", &format!("app-{round}")).await;
        let site = busy
            .api
            .make("/sites", "Site", &format!("site-{round}"))
            .await;
        let target = json!([{"kind": "Site", "id": site.rsplit('/').next().unwrap()}]);
        let (merged, deleted) = tokio::join!(
            busy.api
                .merge(&app, json!({"references": {"site": target}})),
            busy.api.delete(&site),
        );
        let statuses = (merged.status, deleted.status);
        assert!(matches!(statuses, (200, 409) | (400, 202)), "{statuses:?}");
    }
    busy.assert_sound().await;
}
