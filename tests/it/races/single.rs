//! Many writers of one resource.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use serde_json::{Value, json};

use super::Busy;
use crate::support::TestApi;

const AUDITED: &str =
    "SELECT count(*) FROM audit_entries WHERE resource_id = $1 AND action = 'delete'";
const PATCHES: &str =
    "SELECT count(*) FROM audit_entries WHERE resource_id = $1 AND action = 'patch'";

/// A report that says when it was made, and so in its data.
fn report(api: &TestApi, adapter: &str, number: i64, available: &str) -> Value {
    let condition = |kind, status| json!({"type": kind, "status": status});
    json!({
        "adapter": adapter,
        "observed_generation": 1,
        "observed_time": api.clock.now() + TimeDelta::seconds(number),
        "conditions": [condition("Available", available), condition("Applied", "True"), condition("Health", "True")],
        "data": {"number": number},
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_report_of_64_adapters_is_lost() {
    let busy = Busy::spawn().await;
    let path = format!("{}/statuses", busy.api.cluster("abc").await);
    let required = ["validation", "dns", "pullsecret", "hypershift"];
    let others = (4..64).map(|number| format!("adapter-{number}"));
    let adapters: Vec<_> = required
        .map(str::to_owned)
        .into_iter()
        .chain(others)
        .collect();
    let requests = adapters.iter().cloned().map(|adapter| {
        let (api, path) = (busy.api.clone(), path.clone());
        async move {
            for number in 1..=5 {
                // Up and down, and up in the end.
                let available = if number % 2 == 1 { "True" } else { "False" };
                let answer = api
                    .put(&path, report(&api, &adapter, number, available))
                    .await;
                assert_eq!(answer.status, 201, "{}", answer.body);
                assert_eq!(answer.body["data"]["number"], number);
            }
        }
    });
    busy.at_once(requests).await;
    let stored = busy.api.get(&format!("{path}?size=100")).await;
    let items = stored.body["items"].as_array().unwrap();
    let found: BTreeSet<_> = items
        .iter()
        .map(|item| item["adapter"].as_str().unwrap())
        .collect();
    assert_eq!(found, adapters.iter().map(String::as_str).collect());
    assert!(
        items.iter().all(|item| item["data"]["number"] == 5),
        "{items:?}"
    );
    let cluster = busy.api.get(path.trim_end_matches("/statuses")).await;
    assert_eq!(
        cluster.condition("Reconciled")["status"],
        "True",
        "{}",
        cluster.body
    );
    assert_eq!(
        cluster.body["status"]["conditions"]
            .as_array()
            .unwrap()
            .len(),
        6
    );
    busy.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_of_64_patches_counts_once() {
    let busy = Busy::spawn().await;
    let path = busy.api.cluster("abc").await;
    let requests = (0..64).map(|number| {
        let (api, path) = (busy.api.clone(), path.clone());
        async move { api.patch(&path, json!({"spec": {"number": number}})).await }
    });
    let answers = busy.at_once(requests).await;
    let mut generations = BTreeSet::new();
    for answer in &answers {
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert!(generations.insert(answer.body["generation"].as_i64().unwrap()));
    }
    assert_eq!(generations, (2..=65).collect());
    let last = answers.iter().find(|a| a.body["generation"] == 65).unwrap();
    let found = busy.api.get(&path).await;
    assert_eq!(found.body["spec"], last.body["spec"]);
    assert_eq!(found.body["generation"], 65);
    assert_eq!(busy.count(PATCHES, &path).await, 64);
    busy.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_equal_patches_one_changes_something() {
    let busy = Busy::spawn().await;
    let path = busy.api.cluster("abc").await;
    let requests = (0..32).map(|_| {
        let (api, path) = (busy.api.clone(), path.clone());
        async move { api.patch(&path, json!({"labels": {"a": "b"}})).await }
    });
    for answer in busy.at_once(requests).await {
        assert_eq!(
            (answer.status, &answer.body["generation"]),
            (200, &json!(2))
        );
    }
    assert_eq!(busy.count(PATCHES, &path).await, 1);
    busy.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn reports_and_patches_of_one_resource_do_not_undo_each_other() {
    let busy = Busy::spawn().await;
    let cluster = busy.api.cluster("abc").await;
    let requests = (0..48).map(|number| {
        let (api, cluster) = (busy.api.clone(), cluster.clone());
        async move {
            if number % 3 == 0 {
                let answer = api
                    .patch(&cluster, json!({"spec": {"number": number}}))
                    .await;
                assert_eq!(answer.status, 200, "{}", answer.body);
            } else {
                let path = format!("{cluster}/statuses");
                let body = report(&api, &format!("adapter-{number}"), 0, "True");
                assert_eq!(api.put(&path, body).await.status, 201);
            }
        }
    });
    busy.at_once(requests).await;
    assert_eq!(busy.api.get(&cluster).await.body["generation"], 17);
    let stored = busy.api.get(&format!("{cluster}/statuses")).await;
    assert_eq!(stored.body["total"], 32);
    busy.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_32_deletes_the_first_counts() {
    let busy = Busy::spawn().await;
    let cluster = busy.api.cluster("abc").await;
    let mut pools = Vec::new();
    for name in ["one", "two", "three"] {
        pools.push(busy.api.nodepool(&cluster, name).await);
    }
    let requests = (0..32).map(|_| {
        let (api, cluster) = (busy.api.clone(), cluster.clone());
        async move {
            // No two at the same time.
            api.clock.advance(1);
            api.delete(&cluster).await
        }
    });
    let answers = busy.at_once(requests).await;
    let time = answers[0].body["deleted_time"].clone();
    assert!(time.is_string());
    for answer in answers {
        assert_eq!(
            (answer.status, &answer.body["generation"]),
            (202, &json!(2))
        );
        assert_eq!(answer.body["deleted_time"], time);
    }
    assert_eq!(busy.count(AUDITED, &cluster).await, 1);
    for pool in pools {
        let found = busy.api.get(&pool).await;
        assert_eq!(
            (&found.body["generation"], &found.body["deleted_time"]),
            (&json!(2), &time)
        );
        assert_eq!(busy.count(AUDITED, &pool).await, 1);
    }
    busy.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_name_is_taken_once_however_many_want_it() {
    let busy = Busy::spawn().await;
    let cluster = busy.api.cluster("owner").await;
    for (path, kind) in [
        ("/clusters".to_owned(), "Cluster"),
        (format!("{cluster}/nodepools"), "NodePool"),
    ] {
        let requests = (0..32).map(|_| {
            let (api, path) = (busy.api.clone(), path.clone());
            async move {
                api.post(&path, json!({"kind": kind, "name": "wanted", "spec": {}}))
                    .await
            }
        });
        let answers = busy.at_once(requests).await;
        let made = answers.iter().filter(|answer| answer.status == 201).count();
        assert_eq!(made, 1);
        for answer in answers.iter().filter(|answer| answer.status != 201) {
            assert_eq!(answer.problem(), (409, "CNF-001"), "{}", answer.body);
        }
    }
    busy.assert_sound().await;
}
