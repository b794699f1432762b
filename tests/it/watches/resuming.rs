//! Watches that break off and go on.

use serde_json::json;

use super::client::{Instance, brief, force};
use crate::support::{Proxy, TestDatabase, store_of};

/// Twelve changes of several kinds.
async fn changes(instance: &Instance) {
    let api = &instance.api;
    for name in ["aaa", "bbb"] {
        let path = api.cluster(name).await;
        api.patch(&path, json!({"labels": {"of": name}})).await;
        api.patch(&path, json!({"spec": {"x": 1}})).await;
        assert_eq!(api.report(&path, "dns", 3, &[]).await.status, 201);
        api.deleted(&path).await;
        force(api, &path).await;
    }
}

#[tokio::test]
async fn a_watch_goes_on_after_each_event_as_if_it_had_not_broken_off() {
    let instance = Instance::spawn().await;
    let mut unbroken = instance.watch("/clusters?includeDeleted=true").await;
    let mut positions = vec![unbroken.bookmark().await];
    changes(&instance).await;
    let mut events = Vec::new();
    for _ in 0..12 {
        events.push(unbroken.next().await);
        positions.push(unbroken.position.clone().unwrap());
    }
    let other = instance.another();
    for (count, position) in positions.iter().enumerate() {
        for (place, instance) in [&instance, &other].into_iter().enumerate() {
            let mut resumed = if place == 0 {
                let path = format!("/clusters?includeDeleted=true&position={position}");
                instance.watch(&path).await
            } else {
                let headers = [("last-event-id", position.as_str())];
                let path = "/clusters?includeDeleted=true&initial=true";
                instance.watch_with(&headers, path).await
            };
            for event in &events[count..] {
                assert_eq!(resumed.change().await, *event, "after {count}");
            }
        }
    }
}

#[tokio::test]
async fn a_list_names_where_a_watch_of_it_begins() {
    let instance = Instance::spawn().await;
    let api = &instance.api;
    let path = api.make("/plains", "Plain", "a").await;
    let mut watch = instance.watch("/plains").await;
    watch.bookmark().await;
    let position = |answer: &crate::support::Answer| {
        answer.headers["hyperfleet-position"]
            .to_str()
            .unwrap()
            .to_owned()
    };
    let (list, one) = (api.get("/plains").await, api.get(&path).await);
    api.make("/plains", "Plain", "b").await;
    for position in [position(&list), position(&one)] {
        let mut watch = instance
            .watch(&format!("/plains?position={position}"))
            .await;
        let mut event = watch.change().await;
        // The position may be a little older than the answer.
        if brief(&event) == "ADDED a" {
            event = watch.change().await;
        }
        assert_eq!(brief(&event), "ADDED b");
    }
}

#[tokio::test]
async fn positions_that_are_gone_or_never_were_are_refused() {
    let instance = Instance::spawn().await;
    let api = &instance.api;
    let mut watch = instance.watch("/plains").await;
    let start = watch.bookmark().await;
    for name in ["a", "b", "c"] {
        api.make("/plains", "Plain", name).await;
    }
    watch.changes(2).await;
    let second = watch.position.clone().unwrap();
    let mut connection = api.database.connect().await;
    // As retention does.
    sqlx::raw_sql(
        "DELETE FROM changes WHERE position <= 2; INSERT INTO changes_removed VALUES (true, 2, now())",
    )
    .execute(&mut connection)
    .await
    .unwrap();
    let mut resumed = instance.watch(&format!("/plains?position={second}")).await;
    assert_eq!(resumed.changes(1).await, ["ADDED c"]);
    crate::support::until("the instance knows what was removed", async || {
        let url = format!("{}/plains?watch=true&position={start}", api.base);
        // The answer does not end if it is a watch.
        api.client.get(url).send().await.unwrap().status() == 410
    })
    .await;
    for position in [start.as_str(), "0-9999", "7-3"] {
        let refused = api
            .get(&format!("/plains?watch=true&position={position}"))
            .await;
        assert_eq!(refused.status, 410, "{position}: {}", refused.body);
        assert_eq!(refused.body["code"], "HYPERFLEET-WCH-001");
    }
    let refused = api.get("/plains?watch=true&position=7").await;
    assert_eq!(refused.status, 400, "{}", refused.body);
    // A restore ends every watch.
    sqlx::raw_sql("SELECT begin_audit_era()")
        .execute(&mut connection)
        .await
        .unwrap();
    let error = resumed.change().await;
    assert_eq!(error["type"], "ERROR");
    assert_eq!(error["object"]["code"], "HYPERFLEET-WCH-001");
    assert!(resumed.try_next().await.is_none());
}

#[tokio::test]
async fn watches_outlive_their_connection_to_the_database() {
    let database = TestDatabase::create().await;
    let proxy = Proxy::start(database.options());
    let store = store_of(proxy.options(database.options()), 4);
    let instance = Instance::spawn_on(database, store, |_| {});
    let api = &instance.api;
    let mut watch = instance.watch("/plains").await;
    watch.bookmark().await;
    let mut admin = api.database.connect().await;
    for name in ["a", "b", "c"] {
        sqlx::raw_sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE datname = current_database() AND pid <> pg_backend_pid()",
        )
        .execute(&mut admin)
        .await
        .unwrap();
        api.make("/plains", "Plain", name).await;
        assert_eq!(brief(&watch.next().await), format!("ADDED {name}"));
    }
}

#[tokio::test]
async fn a_watch_continues_at_an_instance_that_has_just_started() {
    let instance = Instance::spawn().await;
    let mut watch = instance.watch("/plains").await;
    let position = watch.bookmark().await;
    instance.api.make("/plains", "Plain", "a").await;
    let next = instance.another();
    drop(instance);
    let mut resumed = next.watch(&format!("/plains?position={position}")).await;
    assert_eq!(resumed.changes(1).await, ["ADDED a"]);
}
