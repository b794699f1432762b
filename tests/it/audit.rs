//! The audit trail: who changed what, when and why.

use serde_json::{Value, json};

use crate::support::{Answer, TestApi, child, root};

/// A request with an id.
async fn send(api: &TestApi, id: &str, method: &str, path: &str, body: Value) -> Answer {
    let request = api
        .client
        .request(method.parse().unwrap(), format!("{}{path}", api.base))
        .header("x-request-id", id)
        .body(body.to_string());
    Answer::of(request.send().await.unwrap()).await
}

/// Actions and names of entries.
fn summary(list: &Answer) -> Vec<(&str, &str)> {
    let (actions, names) = (list.column("action"), list.column("name"));
    actions.into_iter().zip(names).collect()
}

async fn total(api: &TestApi) -> i64 {
    api.count("SELECT count(*) FROM audit_entries").await
}

#[tokio::test]
async fn every_action_leaves_a_complete_entry() {
    let api = TestApi::spawn().await;
    let body = json!({"kind": "Cluster", "name": "watched", "spec": {}});
    let made = send(&api, "create-1", "POST", "/clusters", body).await;
    let path = format!("/clusters/{}", made.id());
    api.clock.advance(1);
    let body = json!({"spec": {"a": 1}});
    send(&api, "patch-1", "PATCH", &path, body).await;
    api.clock.advance(1);
    send(&api, "delete-1", "DELETE", &path, Value::Null).await;
    api.clock.advance(1);
    let reason = json!({"reason": "it is \"stuck\" – <b>"});
    let forced = format!("{path}/force-delete");
    assert_eq!(
        send(&api, "force-1", "POST", &forced, reason).await.status,
        204
    );
    let list = api.get("/audit").await;
    let entry = |action: &str, id: &str, second: u32| {
        json!({
            "action": action, "tenancy": {}, "request_id": id, "time": format!("2026-01-01T10:00:0{second}Z"),
            "actor": "system@hyperfleet.local", "kind": "Cluster", "name": "watched", "resource_id": made.id(),
        })
    };
    let mut expected = [
        entry("force_delete", "force-1", 3),
        entry("delete", "delete-1", 2),
        entry("patch", "patch-1", 1),
        entry("create", "create-1", 0),
    ];
    for (entry, (before, after)) in expected.iter_mut().zip([
        (Some(3), None),
        (Some(2), Some(3)),
        (Some(1), Some(2)),
        (None, Some(1)),
    ]) {
        for (name, generation) in [("generation_before", before), ("generation_after", after)] {
            if let Some(generation) = generation {
                entry[name] = json!(generation);
            }
        }
    }
    expected[0]["reason"] = json!("it is \"stuck\" – <b>");
    let mut found = list.items().to_vec();
    let sequences: Vec<_> = found
        .iter_mut()
        .map(|entry| entry.as_object_mut().unwrap().remove("sequence").unwrap())
        .map(|sequence| sequence.as_i64().unwrap())
        .collect();
    assert_eq!(found, expected);
    assert!(
        sequences.iter().rev().is_sorted_by(|a, b| a < b),
        "{sequences:?}"
    );
    assert_eq!(list.body["kind"], "AuditList");
    assert_eq!(
        (&list.body["page"], &list.body["size"], &list.body["total"]),
        (&json!(1), &json!(4), &json!(4))
    );
}

#[tokio::test]
async fn a_hard_delete_is_recorded_with_the_request_of_its_report() {
    let api = TestApi::spawn_with(&[root("Cluster", "clusters", &["dns"])]).await;
    let cluster = api.cluster("going").await;
    api.deleted(&cluster).await;
    let conditions = ["Available", "Applied", "Health", "Finalized"]
        .map(|kind| json!({"type": kind, "status": "True"}));
    let body = json!({"adapter": "dns", "observed_generation": 2, "conditions": conditions});
    let path = format!("{cluster}/statuses");
    assert_eq!(
        send(&api, "last-word", "PUT", &path, body).await.status,
        201
    );
    let list = api.get("/audit?action=hard_delete").await;
    assert_eq!(summary(&list), [("hard_delete", "going")]);
    let entry = &list.items()[0];
    assert_eq!(entry["request_id"], "last-word");
    assert_eq!(entry["generation_before"], 2);
    assert_eq!(entry.get("generation_after"), None);
    assert_eq!(entry.get("reason"), None);
}

#[tokio::test]
async fn a_hard_delete_at_once_is_recorded_beside_the_deletion() {
    let api = TestApi::spawn_with(&[root("Channel", "channels", &[])]).await;
    let channel = api.make("/channels", "Channel", "stable").await;
    api.deleted(&channel).await;
    let list = api.get("/audit").await;
    assert_eq!(
        summary(&list),
        [
            ("hard_delete", "stable"),
            ("delete", "stable"),
            ("create", "stable")
        ]
    );
}

#[tokio::test]
async fn a_cascade_leaves_one_entry_per_resource() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("owner").await;
    let one = api.nodepool(&cluster, "one").await;
    api.nodepool(&cluster, "two").await;
    api.deleted(&one).await;
    let before = total(&api).await;
    send(&api, "cascade", "DELETE", &cluster, Value::Null).await;
    let list = api.get("/audit?action=delete").await;
    let mut cascade: Vec<_> = list
        .items()
        .iter()
        .filter(|entry| entry["request_id"] == "cascade")
        .map(|entry| entry["name"].as_str().unwrap())
        .collect();
    cascade.sort_unstable();
    // The one that was going already is not deleted once more.
    assert_eq!(cascade, ["owner", "two"]);
    assert_eq!(total(&api).await, before + 2);
}

#[tokio::test]
async fn owners_that_go_with_their_last_child_are_recorded() {
    let api = TestApi::spawn_with(&[
        root("Region", "regions", &[]),
        child("Region", "cascade", root("Zone", "zones", &["map"])),
    ])
    .await;
    let region = api.make("/regions", "Region", "region").await;
    let zone = api.make(&format!("{region}/zones"), "Zone", "zone").await;
    api.deleted(&region).await;
    api.finalize(&zone, &["map"], 2).await;
    let list = api.get("/audit?action=hard_delete").await;
    assert_eq!(
        summary(&list),
        [("hard_delete", "region"), ("hard_delete", "zone")]
    );
}

#[tokio::test]
async fn what_changes_nothing_leaves_no_entry() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("quiet").await;
    let before = total(&api).await;
    assert_eq!(before, 1);
    for body in [json!({"spec": {}}), json!({"labels": {}})] {
        assert_eq!(api.patch(&cluster, body).await.status, 200);
    }
    assert_eq!(api.report(&cluster, "dns", 1, &[]).await.status, 201);
    assert_eq!(api.report(&cluster, "dns", 2, &[]).await.status, 204);
    api.get(&cluster).await;
    assert_eq!(total(&api).await, before);
    api.deleted(&cluster).await;
    api.deleted(&cluster).await;
    assert_eq!(total(&api).await, before + 1);
}

#[tokio::test]
async fn what_is_refused_leaves_no_entry() {
    let api = TestApi::spawn_with(&[
        root("Region", "regions", &["map"]),
        child("Region", "cascade", root("Zone", "zones", &["map"])),
        child("Zone", "restrict", root("Rack", "racks", &["map"])),
    ])
    .await;
    let region = api.make("/regions", "Region", "region").await;
    let zone = api.made(&format!("{region}/zones"), "Zone", "zone").await;
    api.make(&format!("/zones/{}/racks", zone.id()), "Rack", "rack")
        .await;
    let before = total(&api).await;
    assert_eq!(before, 3);
    let taken = json!({"kind": "Region", "name": "region", "spec": {}});
    for (answer, status) in [
        (api.delete(&region).await, 409),
        (api.post("/regions", taken).await, 409),
        (
            api.post(&format!("{region}/force-delete"), json!({"reason": "r"}))
                .await,
            409,
        ),
        (api.patch(&region, json!({})).await, 400),
        (api.delete("/regions/nobody").await, 404),
    ] {
        assert_eq!(answer.status, status, "{}", answer.body);
    }
    assert_eq!(total(&api).await, before);
}

#[tokio::test]
async fn entries_can_be_filtered() {
    let api = TestApi::spawn().await;
    let one = api.cluster("one").await;
    api.clock.advance(60);
    let two = api.cluster("two").await;
    api.nodepool(&two, "workers").await;
    api.clock.advance(60);
    api.deleted(&one).await;
    let id = one.rsplit_once('/').unwrap().1;
    for (query, expected) in [
        (
            String::new(),
            vec![
                ("delete", "one"),
                ("create", "workers"),
                ("create", "two"),
                ("create", "one"),
            ],
        ),
        (
            format!("resource_id={id}"),
            vec![("delete", "one"), ("create", "one")],
        ),
        (
            format!("resource_id={id}&action=create"),
            vec![("create", "one")],
        ),
        ("kind=NodePool".to_owned(), vec![("create", "workers")]),
        ("kind=nodepool".to_owned(), vec![]),
        ("action=delete".to_owned(), vec![("delete", "one")]),
        (
            "actor=system@hyperfleet.local&action=delete".to_owned(),
            vec![("delete", "one")],
        ),
        ("actor=nobody".to_owned(), vec![]),
        (
            "since=2026-01-01T10:02:00Z".to_owned(),
            vec![("delete", "one")],
        ),
        (
            "until=2026-01-01T10:01:00Z".to_owned(),
            vec![("create", "one")],
        ),
        (
            "since=2026-01-01T10:01:00Z&until=2026-01-01T10:02:00Z".to_owned(),
            vec![("create", "workers"), ("create", "two")],
        ),
        (
            "since=2026-01-01T12:01:00%2B02:00&until=2026-01-01T10:01:00.000001Z".to_owned(),
            vec![("create", "workers"), ("create", "two")],
        ),
        (
            "nobody=knows".to_owned(),
            vec![
                ("delete", "one"),
                ("create", "workers"),
                ("create", "two"),
                ("create", "one"),
            ],
        ),
    ] {
        let list = api.get(&format!("/audit?{query}")).await;
        assert_eq!(list.status, 200, "{query}: {}", list.body);
        assert_eq!(summary(&list), expected, "{query}");
        assert_eq!(list.body["total"], expected.len(), "{query}");
    }
}

#[tokio::test]
async fn a_filter_that_cannot_be_is_explained() {
    let api = TestApi::spawn().await;
    for (query, field) in [
        ("action=drop", "action"),
        ("resource_id=1", "resource_id"),
        ("since=yesterday", "since"),
        ("until=2026-01-01T00:00:00", "until"),
        ("actor=%00", "actor"),
    ] {
        let answer = api.get(&format!("/audit?{query}")).await;
        assert_eq!(answer.problem(), (400, "VAL-000"), "{query}");
        assert_eq!(answer.detail(), "Invalid query parameters");
        assert_eq!(answer.body["errors"][0]["field"], field, "{query}");
    }
}

#[tokio::test]
async fn the_trail_is_paged_newest_first() {
    let api = TestApi::spawn().await;
    for number in 0..7 {
        api.cluster(&format!("cluster-{number}")).await;
    }
    let mut names = Vec::new();
    for (page, size) in [(1, 3), (2, 3), (3, 1)] {
        let list = api.get(&format!("/audit?size=3&page={page}")).await;
        assert_eq!(list.body["page"], page);
        assert_eq!(list.body["size"], size);
        assert_eq!(list.body["total"], 7);
        names.extend(list.column("name").iter().map(ToString::to_string));
    }
    let newest_first: Vec<_> = (0..7).rev().map(|n| format!("cluster-{n}")).collect();
    assert_eq!(names, newest_first);
}

#[tokio::test]
async fn the_database_refuses_to_change_the_trail() {
    let api = TestApi::spawn().await;
    api.cluster("recorded").await;
    let mut connection = api.database.connect().await;
    for sql in [
        "UPDATE audit_entries SET actor = 'another'",
        "UPDATE audit_entries SET reason = NULL WHERE false",
        "DELETE FROM audit_entries",
        "TRUNCATE audit_entries",
    ] {
        let result = sqlx::raw_sql(sql).execute(&mut connection);
        let error = result.await.expect_err(sql).to_string();
        assert!(error.contains("append-only"), "{sql}: {error}");
    }
    assert_eq!(total(&api).await, 1);
}

#[tokio::test]
async fn entries_outlive_what_they_speak_of() {
    let api = TestApi::spawn_with(&[root("Channel", "channels", &[])]).await;
    let channel = api.make("/channels", "Channel", "gone").await;
    api.deleted(&channel).await;
    let id = channel.rsplit_once('/').unwrap().1;
    assert_eq!(api.get(&channel).await.status, 404);
    let list = api.get(&format!("/audit?resource_id={id}")).await;
    assert_eq!(list.body["total"], 3);
}
