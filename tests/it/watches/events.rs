//! The events that a watcher receives.

use serde_json::{Value, json};

use super::client::{Instance, brief, force};

#[tokio::test]
async fn every_change_is_an_event_of_its_list() {
    let instance = Instance::spawn().await;
    let api = &instance.api;
    let mut watch = instance.watch("/clusters?includeDeleted=true").await;
    assert_eq!(
        watch.response.headers()["content-type"],
        "application/x-ndjson"
    );
    watch.bookmark().await;
    let made = api.made("/clusters", "Cluster", "aaa").await;
    let path = format!("/clusters/{}", made.id());
    let added = watch.next().await;
    assert_eq!(brief(&added), "ADDED aaa");
    assert_eq!(added["object"], made.body);
    assert_eq!(added["etag"], "\"g1.r1\"");

    let patched = api.patch(&path, json!({"spec": {"x": 1}})).await;
    let modified = watch.next().await;
    assert_eq!(brief(&modified), "MODIFIED aaa");
    assert_eq!(modified["object"], patched.body);
    assert_eq!(modified["etag"], patched.headers["etag"].to_str().unwrap());

    assert_eq!(api.report(&path, "dns", 2, &[]).await.status, 201);
    let reported = watch.next().await;
    assert_eq!(brief(&reported), "MODIFIED aaa");
    assert_eq!(reported["object"], api.get(&path).await.body);
    // The same again, later: times move, and nothing else.
    api.clock.advance(60);
    assert_eq!(api.report(&path, "dns", 2, &[]).await.status, 201);

    let deleted = api.deleted(&path).await;
    let event = watch.next().await;
    assert_eq!(brief(&event), "MODIFIED aaa");
    assert_eq!(event["object"], deleted.body);
    let adapters = ["validation", "dns", "pullsecret", "hypershift"];
    api.finalize(&path, &adapters, 3).await;
    for _ in 0..3 {
        assert_eq!(brief(&watch.next().await), "MODIFIED aaa");
    }
    assert_eq!(brief(&watch.next().await), "DELETED aaa");
    assert!(!api.has(&path).await);
}

#[tokio::test]
async fn the_default_list_leaves_out_what_is_deleted() {
    let instance = Instance::spawn().await;
    let api = &instance.api;
    let mut active = instance.watch("/clusters").await;
    let path = api.cluster("aaa").await;
    api.deleted(&path).await;
    force(api, &path).await;
    api.cluster("bbb").await;
    assert_eq!(
        active.changes(3).await,
        ["ADDED aaa", "DELETED aaa", "ADDED bbb"]
    );
}

#[tokio::test]
async fn lists_of_a_parent_and_of_all_kinds_are_watched() {
    let instance = Instance::spawn().await;
    let api = &instance.api;
    let (one, other) = (api.cluster("one").await, api.cluster("other").await);
    let mut nested = instance.watch(&format!("{one}/nodepools")).await;
    let mut flat = instance.watch("/nodepools").await;
    let mut all = instance.watch("/resources").await;
    let mut of_kind = instance.watch("/resources?kind=Plain").await;
    api.nodepool(&other, "xxx").await;
    api.nodepool(&one, "yyy").await;
    api.make("/plains", "Plain", "zzz").await;
    assert_eq!(nested.changes(1).await, ["ADDED yyy"]);
    assert_eq!(flat.changes(2).await, ["ADDED xxx", "ADDED yyy"]);
    assert_eq!(
        all.changes(3).await,
        ["ADDED xxx", "ADDED yyy", "ADDED zzz"]
    );
    assert_eq!(of_kind.changes(1).await, ["ADDED zzz"]);
    // A deletion of a parent, with its children.
    api.deleted(&one).await;
    assert_eq!(nested.changes(1).await, ["DELETED yyy"]);
}

#[tokio::test]
async fn a_search_that_begins_or_ceases_to_match_adds_and_removes() {
    let instance = Instance::spawn().await;
    let api = &instance.api;
    let search = "search=labels.shard%20%3D%20'1'&fields=name,labels";
    let mut watch = instance.watch(&format!("/clusters?{search}")).await;
    let path = api.cluster("aaa").await;
    for shard in ["1", "1", "2", "1"] {
        let labels = json!({"labels": {"shard": shard, "n": shard}, "spec": {"s": shard}});
        assert_eq!(api.patch(&path, labels).await.status, 200);
    }
    api.patch(&path, json!({"spec": {"s": "x"}})).await;
    let (added, deleted) = (watch.change().await, watch.change().await);
    assert_eq!(brief(&added), "ADDED aaa");
    let members: Vec<_> = added["object"].as_object().unwrap().keys().collect();
    assert_eq!(members, ["id", "labels", "name"]);
    assert_eq!(brief(&deleted), "DELETED aaa");
    // Its last state in the list.
    assert_eq!(deleted["object"]["labels"]["shard"], "1");
    assert_eq!(watch.changes(2).await, ["ADDED aaa", "MODIFIED aaa"]);
    for search in [
        "status.conditions.Reconciled.last_updated_time%20%3E%20'2026-01-01T00:00:00Z'",
        "name%20%3D",
    ] {
        let refused = api
            .get(&format!("/clusters?watch=true&search={search}"))
            .await;
        assert_eq!(refused.status, 400, "{search}: {}", refused.body);
    }
}

#[tokio::test]
async fn simultaneous_reference_changes_are_complete_events() {
    let instance = Instance::spawn().await;
    let api = &instance.api;
    let target = api.made("/plains", "Plain", "t").await;
    let link = |id: &str| json!({"peer": [{"kind": "Plain", "id": id}]});
    let filter = format!("ref_type=peer&ref_target_id={}", target.id());
    let mut linked = instance.watch(&format!("/linkeds?{filter}")).await;
    let mut all = instance.watch("/linkeds").await;
    let mut plain = instance.watch("/plains").await;
    let body = json!({"kind": "Linked", "name": "a", "spec": {}, "references": link(target.id())});
    let made = api.post("/linkeds", body).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let path = format!("/linkeds/{}", made.id());
    assert_eq!(all.change().await["object"], made.body);
    let without = api.patch(&path, json!({"references": {"peer": []}})).await;
    assert_eq!(without.status, 200, "{}", without.body);
    assert_eq!(all.change().await["object"], without.body);
    let again = api
        .patch(&path, json!({"references": link(target.id())}))
        .await;
    assert_eq!(all.change().await["object"], again.body);
    api.deleted(&path).await;
    let deleted = all.change().await;
    assert_eq!(deleted["type"], "DELETED");
    assert_eq!(deleted["object"], again.body);
    assert_eq!(
        linked.changes(4).await,
        ["ADDED a", "DELETED a", "ADDED a", "DELETED a"]
    );
    // Nothing works on it: it is removed at once.
    api.deleted(&format!("/plains/{}", target.id())).await;
    let event = plain.change().await;
    assert_eq!(event["type"], "DELETED");
    assert_eq!(event["object"], target.body);
}

#[tokio::test]
async fn the_present_state_comes_first() {
    let instance = Instance::spawn().await;
    let api = &instance.api;
    for n in 0..130 {
        api.make("/plains", "Plain", &format!("p{n}")).await;
    }
    let mut watch = instance.watch("/plains?initial=true").await;
    let mut names = Vec::new();
    for n in (0..130).rev() {
        let event = watch.next().await;
        assert_eq!(brief(&event), format!("ADDED p{n}"));
        assert_eq!(event["position"], Value::Null);
        names.push(event);
    }
    watch.bookmark().await;
    api.make("/plains", "Plain", "later").await;
    assert_eq!(brief(&watch.next().await), "ADDED later");
    let mut empty = instance.watch("/clusters?initial=true").await;
    empty.bookmark().await;
}

#[tokio::test]
async fn event_streams_have_ids_and_are_never_compressed() {
    let instance = Instance::spawn().await;
    let headers = [("accept", "text/event-stream"), ("accept-encoding", "gzip")];
    let mut watch = instance.watch_with(&headers, "/plains").await;
    let head = watch.response.headers().clone();
    assert_eq!(head["content-type"], "text/event-stream");
    assert!(!head.contains_key("content-encoding"), "{head:?}");
    let position = head["hyperfleet-position"].to_str().unwrap().to_owned();
    instance.api.make("/plains", "Plain", "a").await;
    let mut text = String::new();
    while !text.contains("ADDED") || !text.ends_with("\n\n") {
        let chunk = watch.response.chunk().await.unwrap().unwrap();
        text += std::str::from_utf8(&chunk).unwrap();
    }
    let mut blocks = text.split("\n\n");
    let bookmark = format!(
        "event: BOOKMARK\nid: {position}\ndata: {{\"position\":\"{position}\",\"type\":\"BOOKMARK\"}}"
    );
    assert_eq!(blocks.next(), Some(bookmark.as_str()));
    let lines: Vec<_> = blocks.next().unwrap().lines().collect();
    assert_eq!(lines[0], "event: ADDED");
    let data: Value = serde_json::from_str(lines[2].strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!(
        lines[1],
        format!("id: {}", data["position"].as_str().unwrap())
    );
    assert_eq!(brief(&data), "ADDED a");
}

#[tokio::test]
async fn changes_by_other_programs_are_events() {
    let instance = Instance::spawn().await;
    let api = &instance.api;
    let mut watch = instance.watch("/plains").await;
    api.make("/plains", "Plain", "a").await;
    let mut connection = api.database.connect().await;
    for sql in [
        "INSERT INTO resources (id, kind, name, generation, created_at, updated_at, created_by, updated_by, spec)
         VALUES (gen_random_uuid(), 'Plain', 'b', 1, now(), now(), 'x', 'x', '{}')",
        "UPDATE resources SET spec = '{\"by\": \"hand\"}', generation = 2, revision = revision + 1 WHERE name = 'a'",
        "UPDATE resources SET labels = '{\"x\": \"y\"}', revision = revision + 1 WHERE name = 'a'",
        "DELETE FROM resources WHERE name = 'a'",
    ] {
        sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    }
    assert_eq!(watch.changes(2).await, ["ADDED a", "ADDED b"]);
    let spec = watch.change().await;
    assert_eq!(spec["object"]["spec"], json!({"by": "hand"}));
    assert_eq!(spec["object"]["labels"], json!({}));
    assert_eq!(watch.change().await["object"]["labels"], json!({"x": "y"}));
    let deleted = watch.change().await;
    assert_eq!(deleted["type"], "DELETED");
    assert_eq!(deleted["object"]["labels"], json!({"x": "y"}));
}

#[tokio::test]
async fn an_answer_without_a_body_names_the_position_too() {
    let instance = Instance::spawn().await;
    drop(instance.watch("/plains").await);
    let path = instance.api.make("/plains", "Plain", "a").await;
    let answer = instance.api.get(&path).await;
    assert!(answer.header("hyperfleet-position").is_some());
    let headers = [("if-none-match", answer.header("etag").unwrap())];
    let known = instance
        .api
        .send_with(&headers, "GET", &path, &Value::Null)
        .await;
    assert_eq!(known.status, 304);
    assert!(known.header("hyperfleet-position").is_some());
}

#[tokio::test]
async fn a_watch_that_includes_deletions_counts_as_a_list_that_does() {
    let instance = Instance::spawn().await;
    let hides = || instance.service.hides_finalizing("Plain");
    drop(instance.watch("/plains").await);
    drop(instance.watch("/linkeds?includeDeleted=true").await);
    assert!(hides());
    drop(instance.watch("/plains?includeDeleted=true").await);
    assert!(!hides());
}
