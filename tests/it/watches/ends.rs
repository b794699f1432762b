//! Watches that end, and those that are refused.

use std::time::Duration;

use serde_json::json;

use hyperfleet_server_kit::http::{Admission, Gate, Limits, WATCHER_BYTES_MIN};

use crate::support::{ACME_WEB, BETA, SYSTEM, TestDatabase, Walls, rest, tenancy};

use super::client::{Instance, brief, service_of};

#[tokio::test]
async fn a_client_that_reads_late_misses_nothing() {
    const COUNT: usize = 60;
    let instance = Instance::spawn().await;
    let api = &instance.api;
    let mut late = instance.watch("/plains").await;
    let mut prompt = instance.watch("/plains?fields=name").await;
    let text = "x".repeat(200_000);
    for n in 0..COUNT {
        let body =
            serde_json::json!({"kind": "Plain", "name": format!("p{n}"), "spec": {"text": text}});
        assert_eq!(api.post("/plains", body).await.status, 201);
        // By now every change has been dispatched, and the kernel buffers only some of them for the slow client.
        assert_eq!(prompt.changes(1).await, [format!("ADDED p{n}")]);
    }
    for n in 0..COUNT {
        assert_eq!(late.changes(1).await, [format!("ADDED p{n}")]);
    }
}

#[tokio::test]
async fn a_slow_client_is_disconnected_and_resumes() {
    const COUNT: usize = 60;
    let database = TestDatabase::create().await;
    let service = service_of(database.store());
    let service = service.ending_slow_watches_after(Duration::from_millis(200));
    let instance = Instance::spawn_serving(service, database, |_| {});
    let api = &instance.api;
    let mut slow = instance.watch("/plains").await;
    let mut prompt = instance.watch("/plains?fields=name").await;
    let text = "x".repeat(200_000);
    for n in 0..COUNT {
        let body = json!({"kind": "Plain", "name": format!("p{n}"), "spec": {"text": text}});
        assert_eq!(api.post("/plains", body).await.status, 201);
        // Dispatched: the slow client has received the first ones.
        assert_eq!(prompt.changes(1).await, [format!("ADDED p{n}")]);
    }
    let mut seen = Vec::new();
    let end = loop {
        let event = slow.next().await;
        match event["type"].as_str() {
            Some("ERROR") => break event,
            Some("BOOKMARK") => {}
            _ => seen.push(brief(&event)),
        }
        assert!(seen.len() < COUNT, "it was never sent away");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(end["object"]["code"], "HYPERFLEET-WCH-002", "{end}");
    assert_eq!(slow.try_next().await, None);
    let rest = format!("/plains?position={}", slow.position.unwrap());
    let mut resumed = instance.watch(&rest).await;
    seen.extend(resumed.changes(COUNT - seen.len()).await);
    let all: Vec<_> = (0..COUNT).map(|n| format!("ADDED p{n}")).collect();
    assert_eq!(seen, all);
}

/// RFC 9110, section 9.3.2: the response to HEAD has no body, so nothing may wait for the end of it.
#[tokio::test]
async fn head_of_a_watch_ends_and_takes_no_place() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let instance = Instance::spawn_on(database, store, |api| {
        let one_watcher = Limits {
            buffered_bytes_max: 4 * WATCHER_BYTES_MIN,
            ..Limits::default()
        };
        api.admission = Admission::new(Gate::serving(), &one_watcher);
    });
    let path = "/api/hyperfleet/v1/plains";
    let head = |query: &str| format!("HEAD {path}?{query} HTTP/1.1\r\nHost: x\r\n\r\n");
    let heads = [head("watch=true"), head("watch=true&initial=true")].concat();
    let list = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let mut stream = instance
        .api
        .begin(&format!("{}{list}", heads.repeat(3)))
        .await;
    let answers = String::from_utf8(rest(&mut stream).await).unwrap();
    assert_eq!(answers.matches("200 OK").count(), 7, "{answers}");
    assert_eq!(
        answers
            .matches("content-type: application/x-ndjson")
            .count(),
        6,
        "{answers}"
    );
    assert!(answers.ends_with('}'), "{answers}");
    // The next request is read before the response is written: nothing of a body may come in between.
    let bodies: Vec<_> = answers.split("\r\n\r\n").collect();
    assert!(
        bodies[1..6]
            .iter()
            .all(|next| next.starts_with("HTTP/1.1 200")),
        "{answers}"
    );
    instance.watch("/plains").await.bookmark().await;
}

#[tokio::test]
async fn expired_changes_are_gone_and_resources_are_not() {
    let instance = Instance::spawn().await;
    let api = &instance.api;
    let mut watch = instance.watch("/plains").await;
    let start = watch.bookmark().await;
    api.make("/plains", "Plain", "a").await;
    api.clock.advance(3600);
    api.make("/plains", "Plain", "b").await;
    watch.changes(1).await;
    let first = watch.position.clone().unwrap();
    watch.changes(1).await;
    let before = api.clock.now() - chrono::TimeDelta::minutes(30);
    assert_eq!(instance.service.expire_changes(before).await.unwrap(), 1);
    assert_eq!(instance.service.expire_changes(before).await.unwrap(), 0);
    let mut resumed = instance.watch(&format!("/plains?position={first}")).await;
    assert_eq!(resumed.changes(1).await, ["ADDED b"]);
    let next = instance.another();
    let mut others = next.watch("/plains").await;
    others.bookmark().await;
    let refused = next
        .api
        .get(&format!("/plains?watch=true&position={start}"))
        .await;
    assert_eq!(refused.status, 410, "{}", refused.body);
    let mut initial = instance.watch("/plains?initial=true").await;
    assert_eq!(initial.changes(2).await, ["ADDED b", "ADDED a"]);
}

#[tokio::test]
async fn tenants_see_their_own_changes() {
    let instance = Instance::spawn_for(tenancy(Walls::Up)).await;
    let mut acme = instance.watch_with(ACME_WEB, "/clusters").await;
    let mut beta = instance.watch_with(BETA, "/clusters?initial=true").await;
    let mut system = instance.watch_with(SYSTEM, "/resources").await;
    let make = async |tenant, name: &str| {
        let body = serde_json::json!({"kind": "Cluster", "name": name, "spec": {}});
        let made = instance
            .api
            .send_with(tenant, "POST", "/clusters", &body)
            .await;
        assert_eq!(made.status, 201, "{}", made.body);
        made.id().to_owned()
    };
    let moved = make(ACME_WEB, "one").await;
    make(BETA, "two").await;
    assert_eq!(acme.changes(1).await, ["ADDED one"]);
    assert_eq!(beta.changes(1).await, ["ADDED two"]);
    assert_eq!(system.changes(2).await, ["ADDED one", "ADDED two"]);
    // An operator assigns a resource to another tenant.
    let mut connection = instance.api.database.connect().await;
    sqlx::query(
        "UPDATE resources SET tenancy = (SELECT tenancy FROM resources WHERE name = 'two') WHERE id = $1::uuid",
    )
    .bind(&moved)
    .execute(&mut connection)
    .await
    .unwrap();
    assert_eq!(acme.changes(1).await, ["DELETED one"]);
    assert_eq!(beta.changes(1).await, ["ADDED one"]);
    assert_eq!(system.changes(1).await, ["MODIFIED one"]);
    let path = format!("/clusters/{moved}/nodepools?watch=true");
    let hidden = instance
        .api
        .send_with(ACME_WEB, "GET", &path, &serde_json::Value::Null)
        .await;
    assert_eq!(hidden.status, 404, "{}", hidden.body);
}

#[tokio::test]
async fn errors_of_a_watch_are_responses() {
    let instance = Instance::spawn().await;
    let api = &instance.api;
    for (path, status) in [
        ("/clusters?watch=maybe", 400),
        ("/clusters?watch=true&initial=maybe", 400),
        ("/clusters?watch=true&initial=true&position=0-0", 400),
        ("/clusters?watch=true&fields=nothing", 400),
        ("/resources?watch=true&kind=Nothing", 400),
        (
            "/clusters/019b7868-8e00-7000-8000-000000000001/nodepools?watch=true",
            404,
        ),
        ("/clusters/x/nodepools?watch=true", 404),
    ] {
        let refused = api.get(path).await;
        assert_eq!(refused.status, status, "{path}: {}", refused.body);
    }
}
