//! The life of a resource until its deletion: create, read, patch.

use serde_json::{Value, json};

use crate::support::{Answer, TestApi, child, root};

/// A resource must not be touched by what is done in between.
async fn assert_untouched(api: &TestApi, path: &str, before: &Answer) {
    assert_eq!(api.get(path).await.body, before.body, "{path}");
}

fn is_uuid_v7(text: &str) -> bool {
    let id = text.parse::<uuid::Uuid>();
    id.is_ok_and(|id| id.get_version_num() == 7 && id.to_string() == text)
}

#[tokio::test]
async fn a_new_cluster_has_every_member() {
    let api = TestApi::spawn().await;
    let body = json!({
        "kind": "Cluster",
        "name": "whole",
        "spec": {"region": "eu", "replicas": 3},
        "labels": {"team": "a"},
        // What only the service may say is ignored.
        "id": "mine", "href": "/x", "generation": 7, "status": {}, "created_by": "me", "tenancy": {"a": "b"},
    });
    let made = api.post("/clusters", body).await;
    assert_eq!(made.status, 201, "{}", made.body);
    assert!(is_uuid_v7(made.id()), "{}", made.id());
    let at = "2026-01-01T10:00:00Z";
    let message = "Required adapters have not yet reported status";
    let condition = |kind: &str, reason: &str| {
        json!({
            "type": kind, "status": "False", "reason": reason, "message": message, "observed_generation": 1,
            "created_time": at, "last_updated_time": at, "last_transition_time": at,
        })
    };
    let expected = json!({
        "kind": "Cluster",
        "id": made.id(),
        "href": format!("/api/hyperfleet/v1/clusters/{}", made.id()),
        "name": "whole",
        "spec": {"region": "eu", "replicas": 3},
        "labels": {"team": "a"},
        "tenancy": {},
        "generation": 1,
        "created_time": at, "created_by": "system@hyperfleet.local",
        "updated_time": at, "updated_by": "system@hyperfleet.local",
        "status": {"conditions": [
            condition("Reconciled", "ReconciledMissingAdapters"),
            condition("LastKnownReconciled", "AdaptersMissingReports"),
        ]},
    });
    assert_eq!(made.body, expected);
    let path = format!("/clusters/{}", made.id());
    assert_eq!(api.get(&path).await.body, expected);
}

#[tokio::test]
async fn a_child_kind_among_all_kinds_is_refused_before_violations() {
    let api = TestApi::spawn().await;
    for body in [
        json!({"kind": "NodePool", "name": "W", "spec": {}}),
        json!({"kind": "NodePool", "spec": 1}),
    ] {
        let answer = api.post("/resources", body.clone()).await;
        assert_eq!(answer.problem(), (422, "VAL-000"), "{body}");
        assert!(answer.detail().contains("is a child kind"), "{body}");
    }
    let root = json!({"kind": "Cluster", "name": "W", "spec": {}});
    assert_eq!(api.post("/resources", root).await.status, 400);
    let unreadable = r#"{"kind": "NodePool", "name": "w"#;
    let answer = api.send_bytes("POST", "/resources", unreadable).await;
    assert_eq!(answer.problem(), (400, "VAL-006"));
}

#[tokio::test]
async fn a_name_is_taken_once_per_kind() {
    let api = TestApi::spawn_with(&[
        root("Cluster", "clusters", &["dns"]),
        root("Channel", "channels", &[]),
    ])
    .await;
    api.cluster("same").await;
    api.make("/channels", "Channel", "same").await;
    for (list, kind) in [
        ("/clusters", "Cluster"),
        ("/channels", "Channel"),
        ("/resources", "Channel"),
    ] {
        let body = json!({"kind": kind, "name": "same", "spec": {"other": true}});
        let answer = api.post(list, body).await;
        assert_eq!(answer.problem(), (409, "CNF-001"), "{list}");
        assert_eq!(answer.body["title"], "Resource Conflict");
        assert_eq!(answer.detail(), format!("This {kind} already exists"));
    }
}

#[tokio::test]
async fn deletion_frees_names_at_once() {
    let api = TestApi::spawn().await;
    for _ in 0..3 {
        let cluster = api.cluster("again").await;
        let nodepool = api.nodepool(&cluster, "workers").await;
        api.deleted(&nodepool).await;
        api.nodepool(&cluster, "workers").await;
        api.deleted(&cluster).await;
    }
    let list = api.get("/resources?includeDeleted=true").await;
    assert_eq!(list.body["total"], 9);
}

#[tokio::test]
async fn of_many_that_want_one_name_one_gets_it() {
    let api = TestApi::spawn().await;
    let body = json!({"kind": "Cluster", "name": "wanted", "spec": {}});
    let posts = (0..10).map(|_| api.post("/clusters", body.clone()));
    let answers = futures_util::future::join_all(posts).await;
    let made = answers.iter().filter(|a| a.status == 201).count();
    let taken = answers
        .iter()
        .filter(|a| a.problem() == (409, "CNF-001"))
        .count();
    assert_eq!((made, taken), (1, 9));
}

#[tokio::test]
async fn a_patch_replaces_the_entire_spec() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("patched").await;
    api.patch(&cluster, json!({"spec": {"a": 1, "b": {"c": 2}}}))
        .await;
    api.clock.advance(60);
    let answer = api.patch(&cluster, json!({"spec": {"b": {"d": 3}}})).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.body["spec"], json!({"b": {"d": 3}}));
    assert_eq!(answer.body["generation"], 3);
    assert_eq!(answer.body["updated_time"], "2026-01-01T10:01:00Z");
    assert_eq!(answer.body["created_time"], "2026-01-01T10:00:00Z");
    assert_untouched(&api, &cluster, &answer).await;
    let emptied = api.patch(&cluster, json!({"spec": {}})).await;
    assert_eq!(emptied.body["spec"], json!({}));
    assert_eq!(emptied.body["generation"], 4);
}

#[tokio::test]
async fn a_patch_that_changes_nothing_touches_nothing() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("same").await;
    let spec = r#"{"a":{"x":1,"y":[1,2]},"b":null,"c":9007199254740993}"#;
    let labels = r#"{"k":"v","l":""}"#;
    let set = format!(r#"{{"spec":{spec},"labels":{labels}}}"#);
    api.send_bytes("PATCH", &cluster, set.clone()).await;
    let before = api.get(&cluster).await;
    assert_eq!(before.body["generation"], 2);
    api.clock.advance(60);
    let reordered = r#"{"c": 9007199254740993, "b": null, "a": {"y": [1, 2], "x": 1}}"#;
    for body in [
        set,
        format!(r#"{{"spec":{spec}}}"#),
        format!(r#"{{"labels":{labels}}}"#),
        r#"{"labels":{"l":"","k":"v"}}"#.to_owned(),
        format!(r#"{{"spec":{reordered}}}"#),
        format!(r#"{{"spec":{spec},"labels":null}}"#),
        format!(r#"{{"spec":{spec},"references":null}}"#),
    ] {
        let answer = api.send_bytes("PATCH", &cluster, body.clone()).await;
        assert_eq!(answer.status, 200, "{body}: {}", answer.body);
        assert_eq!(answer.body, before.body, "{body}");
        assert_untouched(&api, &cluster, &before).await;
    }
}

#[tokio::test]
async fn a_patch_that_changes_little_is_a_change() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("exact").await;
    let specs = [
        r#"{"a":[1,2],"c":9007199254740992}"#,
        r#"{"a":[2,1],"c":9007199254740992}"#,
        r#"{"a":[2,1],"c":9007199254740993}"#,
        r#"{"a":[2,1],"c":"9007199254740993"}"#,
        r#"{"a":[2,1],"c":null}"#,
        r#"{"a":[2,1]}"#,
        r#"{"a":[2,1],"A":true}"#,
    ];
    for (generation, spec) in (2..).zip(specs) {
        let body = format!(r#"{{"spec":{spec}}}"#);
        let answer = api.send_bytes("PATCH", &cluster, body).await;
        assert_eq!(answer.status, 200, "{spec}: {}", answer.body);
        assert_eq!(answer.body["generation"], generation, "{spec}");
        let sent: Value = serde_json::from_str(spec).unwrap();
        assert_eq!(api.get(&cluster).await.body["spec"], sent, "{spec}");
    }
}

#[tokio::test]
async fn a_grandchild_hangs_below_its_direct_owner() {
    let api = TestApi::spawn_with(&[
        root("Region", "regions", &[]),
        child("Region", "cascade", root("Zone", "zones", &[])),
        child("Zone", "cascade", root("Rack", "racks", &["power"])),
    ])
    .await;
    let region = api.make("/regions", "Region", "r1").await;
    let zone = api.make(&format!("{region}/zones"), "Zone", "z1").await;
    let zone = format!("/zones/{}", zone.rsplit_once('/').unwrap().1);
    let rack = api.make(&format!("{zone}/racks"), "Rack", "k1").await;
    let found = api.get(&rack).await;
    // One level deep, which is where routes are.
    assert_eq!(found.body["href"], format!("/api/hyperfleet/v1{rack}"));
    assert_eq!(
        found.body["owner_references"]["href"],
        format!("/api/hyperfleet/v1{zone}")
    );
    let flat = api.get(&format!("/racks/{}", found.id())).await;
    assert_eq!(flat.body, found.body);
    let deep = format!("{region}{zone}/racks/{}", found.id());
    assert_eq!(api.get(&deep).await.problem(), (404, "NTF-000"));
}

#[tokio::test]
async fn a_report_that_is_not_stored_is_answered_with_the_reason() {
    let api = TestApi::spawn_with(&[root("Cart", "carts", &["dns"])]).await;
    let cart = api.make("/carts", "Cart", "cart").await;
    let warning = async |generation: i32, available: &str| {
        let statuses = [("Available", available)];
        let answer = api.report(&cart, "dns", generation, &statuses).await;
        let warning = answer.header("warning").map(ToOwned::to_owned);
        (answer.status, warning)
    };
    let not_stored = |reason: &str| Some(format!("299 - \"not stored: {reason}\""));
    assert_eq!(warning(1, "False").await, (201, None));
    assert_eq!(warning(1, "False").await, (201, None), "it is stored");
    let reason = "the stored report has the same observed_time and other conditions";
    assert_eq!(warning(1, "True").await, (201, not_stored(reason)));
    let reports = api.get(&format!("{cart}/statuses")).await.body;
    assert_eq!(reports["items"][0]["conditions"][2]["status"], "False");
    let reason = "the resource does not have this generation yet";
    assert_eq!(warning(2, "True").await, (204, not_stored(reason)));
    let reason = "only the first report may have Available=Unknown";
    assert_eq!(warning(1, "Unknown").await, (204, not_stored(reason)));
    api.clock.advance(-1);
    let reason = "the stored report has a later observed_time";
    assert_eq!(warning(1, "True").await, (204, not_stored(reason)));
    api.clock.advance(2);
    api.patch(&cart, json!({"spec": {"a": 1}})).await;
    assert_eq!(warning(2, "True").await, (201, None));
    let reason = "the stored report is about a later generation";
    assert_eq!(warning(1, "True").await, (204, not_stored(reason)));
}
