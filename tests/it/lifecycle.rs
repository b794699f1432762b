//! The life of a resource until its deletion: create, read, patch.

use serde_json::{Value, json};

use crate::support::{Answer, TestApi, child, root};

const NOBODY: &str = "019b7654-0000-7000-8000-000000000000";

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
async fn a_resource_without_labels_has_none() {
    let api = TestApi::spawn().await;
    for (name, labels) in [
        ("absent", None),
        ("null", Some(Value::Null)),
        ("empty", Some(json!({}))),
    ] {
        let mut body = json!({"kind": "Cluster", "name": name, "spec": {}});
        if let Some(labels) = labels {
            body["labels"] = labels;
        }
        let made = api.post("/clusters", body).await;
        assert_eq!(made.status, 201, "{name}: {}", made.body);
        assert_eq!(made.body["labels"], json!({}), "{name}");
    }
}

#[tokio::test]
async fn a_child_is_listed_below_its_owner() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("owner").await;
    let nodepool = api.nodepool(&cluster, "workers").await;
    let found = api.get(&nodepool).await;
    let href = format!("/api/hyperfleet/v1{cluster}");
    assert_eq!(found.body["href"], format!("/api/hyperfleet/v1{nodepool}"));
    let (_, owner) = cluster.rsplit_once('/').unwrap();
    let expected = json!({"href": href, "id": owner, "kind": "Cluster"});
    assert_eq!(found.body["owner_references"], expected);
}

#[tokio::test]
async fn every_path_of_a_child_gives_the_same_body() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("owner").await;
    let nodepool = api.nodepool(&cluster, "workers").await;
    api.report(&nodepool, "validation", 1, &[]).await;
    let nested = api.get(&nodepool).await;
    for path in ["/nodepools", "/resources"] {
        let other = api.get(&format!("{path}/{}", nested.id())).await;
        assert_eq!(other.bytes, nested.bytes, "{path}");
        let statuses = api.get(&format!("{path}/{}/statuses", nested.id())).await;
        assert_eq!(statuses.body["total"], 1, "{path}");
    }
}

#[tokio::test]
async fn a_child_is_not_there_below_another_owner() {
    let api = TestApi::spawn().await;
    let (one, two) = (api.cluster("one").await, api.cluster("two").await);
    let nodepool = api.nodepool(&one, "workers").await;
    let before = api.get(&nodepool).await;
    let elsewhere = format!("{two}/nodepools/{}", before.id());
    let nowhere = format!("/clusters/{NOBODY}/nodepools/{}", before.id());
    let not_below = format!("NodePool with id='{}' not found", before.id());
    let no_owner = format!("Cluster with id='{NOBODY}' not found");
    for (path, detail) in [(elsewhere, not_below), (nowhere, no_owner)] {
        let answers = [
            api.get(&path).await,
            api.patch(&path, json!({"spec": {"a": 1}})).await,
            api.delete(&path).await,
            api.post(&format!("{path}/force-delete"), json!({"reason": "r"}))
                .await,
        ];
        for answer in answers {
            assert_eq!(answer.problem(), (404, "NTF-001"), "{path}");
            assert_eq!(answer.detail(), detail, "{path}");
        }
        // A report names only the child as missing.
        let answer = api.report(&path, "dns", 1, &[]).await;
        assert_eq!(answer.problem(), (404, "NTF-001"), "{path}");
    }
    assert_untouched(&api, &nodepool, &before).await;
}

#[tokio::test]
async fn a_child_kind_cannot_be_created_without_its_owner() {
    let api = TestApi::spawn().await;
    let body = json!({"kind": "NodePool", "name": "workers", "spec": {}});
    for path in ["/nodepools", "/resources"] {
        let answer = api.post(path, body.clone()).await;
        assert_eq!(answer.problem(), (422, "VAL-000"), "{path}");
        assert_eq!(answer.body["title"], "Validation Failed");
        assert_eq!(
            answer.detail(),
            "kind \"NodePool\" is a child kind; create it via /clusters/{id}/nodepools"
        );
    }
    let invalid = json!({"kind": "NodePool", "name": "w", "spec": {}});
    assert_eq!(api.post("/nodepools", invalid).await.status, 400);
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
async fn a_child_needs_an_owner_that_is_there() {
    let api = TestApi::spawn().await;
    let body = json!({"kind": "NodePool", "name": "workers", "spec": {}});
    for id in [NOBODY, "no-uuid"] {
        let path = format!("/clusters/{id}/nodepools");
        let answer = api.post(&path, body.clone()).await;
        assert_eq!(answer.problem(), (404, "NTF-001"), "{id}");
        assert_eq!(answer.detail(), format!("Cluster with id='{id}' not found"));
        let invalid = api.post(&path, json!({"kind": "NodePool"})).await;
        assert_eq!(
            invalid.status, 400,
            "the body is read before the owner is looked for"
        );
    }
}

#[tokio::test]
async fn a_root_kind_can_be_created_among_all_resources() {
    let api = TestApi::spawn().await;
    let path = api.make("/resources", "Cluster", "anywhere").await;
    let found = api.get(&path).await;
    assert_eq!(
        found.body["href"],
        format!("/api/hyperfleet/v1/clusters/{}", found.id())
    );
    let body = json!({"kind": "Nothing", "name": "abc", "spec": {}});
    let answer = api.post("/resources", body).await;
    assert_eq!(answer.problem(), (400, "VAL-000"));
    assert_eq!(answer.detail(), "Unknown entity kind: Nothing");
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
async fn a_name_of_a_child_is_taken_once_per_owner() {
    let api = TestApi::spawn().await;
    let (one, two) = (api.cluster("one").await, api.cluster("two").await);
    api.nodepool(&one, "workers").await;
    api.nodepool(&two, "workers").await;
    let body = json!({"kind": "NodePool", "name": "workers", "spec": {}});
    let answer = api.post(&format!("{one}/nodepools"), body).await;
    assert_eq!(answer.problem(), (409, "CNF-001"));
    assert_eq!(answer.detail(), "This NodePool already exists");
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
async fn a_patch_replaces_all_labels() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("labelled").await;
    for (labels, generation) in [
        (json!({"a": "1", "b": "2"}), 2),
        (json!({"b": "2", "c": ""}), 3),
        (json!({"b": "2", "c": "3"}), 4),
        (json!({}), 5),
    ] {
        let answer = api.patch(&cluster, json!({"labels": labels})).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert_eq!(answer.body["labels"], labels);
        assert_eq!(answer.body["generation"], generation, "{labels}");
        assert_eq!(answer.body["spec"], json!({}));
    }
}

#[tokio::test]
async fn several_changes_in_one_patch_are_one_generation() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("patched").await;
    let both = json!({"spec": {"a": 1}, "labels": {"a": "1"}});
    let answer = api.patch(&cluster, both).await;
    assert_eq!(answer.body["generation"], 2);
    let one_of_two = json!({"spec": {"a": 1}, "labels": {"a": "2"}});
    assert_eq!(api.patch(&cluster, one_of_two).await.body["generation"], 3);
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
async fn a_patch_must_hold_something_that_can_be_changed() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("fixed").await;
    let before = api.get(&cluster).await;
    let nothing = "at least one field must be provided for update";
    let unknown = |name: &str| format!("Invalid request format: json: unknown field \"{name}\"");
    for (body, code, detail) in [
        (json!({}), "VAL-005", nothing.to_owned()),
        (json!({"labels": null}), "VAL-005", nothing.to_owned()),
        (json!({"references": null}), "VAL-005", nothing.to_owned()),
        (
            json!({"spec": null}),
            "VAL-000",
            "spec field must be an object".to_owned(),
        ),
        (
            json!({"spec": []}),
            "VAL-000",
            "spec field must be an object".to_owned(),
        ),
        (json!({"name": "other"}), "VAL-006", unknown("name")),
        (
            json!({"spec": {"a": 1}, "kind": "Cluster"}),
            "VAL-006",
            unknown("kind"),
        ),
        (
            json!({"spec": {"a": 1}, "generation": 5}),
            "VAL-006",
            unknown("generation"),
        ),
        (
            json!({"spec": {"a": 1}, "tenancy": {}}),
            "VAL-006",
            unknown("tenancy"),
        ),
    ] {
        let answer = api.patch(&cluster, body.clone()).await;
        assert_eq!(answer.problem(), (400, code), "{body}");
        assert_eq!(answer.detail(), detail, "{body}");
    }
    let null = api.send_bytes("PATCH", &cluster, "null").await;
    assert_eq!(null.problem(), (400, "VAL-005"));
    assert_untouched(&api, &cluster, &before).await;
}

#[tokio::test]
async fn a_change_asks_all_adapters_anew() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("changing").await;
    for adapter in ["validation", "dns", "pullsecret", "hypershift"] {
        api.report(&cluster, adapter, 1, &[]).await;
    }
    assert_eq!(
        api.get(&cluster).await.condition("Reconciled")["status"],
        "True"
    );
    let changed = api.patch(&cluster, json!({"spec": {"a": 1}})).await;
    let reconciled = changed.condition("Reconciled");
    assert_eq!(reconciled["status"], "False");
    assert_eq!(reconciled["reason"], "ReconciledMissingAdapters");
    assert_eq!(reconciled["observed_generation"], 2);
    let last_known = changed.condition("LastKnownReconciled");
    assert_eq!(last_known["status"], "True");
    assert_eq!(last_known["observed_generation"], 1);
}

#[tokio::test]
async fn a_report_changes_nothing_that_was_asked_for() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("reported").await;
    let before = api.get(&cluster).await.body;
    api.clock.advance(60);
    api.report(&cluster, "dns", 1, &[]).await;
    let mut after = api.get(&cluster).await.body;
    assert_ne!(after["status"], before["status"]);
    after["status"] = before["status"].clone();
    assert_eq!(after, before);
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
