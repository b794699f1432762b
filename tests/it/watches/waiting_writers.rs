//! Changes that wait for a row hold back no watcher: they write nothing before they have the row.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sqlx::Connection as _;

use super::client::{Instance, brief};
use crate::support::{WAITING, until};

/// While another transaction holds a cluster, a change of it waits, and a watcher sees what happens to others.
async fn watchers_see_others(method: &str, below: &str, body: Value, status: u16) {
    let instance = Instance::spawn().await;
    let api = &instance.api;
    let held = api.cluster("held").await;
    let path = format!("{held}{below}");
    let mut watch = instance.watch("/plains").await;
    watch.bookmark().await;
    let mut holder = api.database.connect().await;
    let locking = "BEGIN; SELECT FROM resources WHERE name = 'held' FOR UPDATE";
    sqlx::raw_sql(locking).execute(&mut holder).await.unwrap();
    let (answer, ()) = tokio::join!(api.send(method, &path, body), async {
        until("the change waits", async || api.count(WAITING).await == 1).await;
        let since = Instant::now();
        api.make("/plains", "Plain", "a").await;
        assert_eq!(brief(&watch.next().await), "ADDED a");
        let waited = since.elapsed();
        assert!(
            waited < Duration::from_secs(2),
            "{method} {path}: {waited:?}"
        );
        assert_eq!(api.count(WAITING).await, 1, "{method} {path} still waits");
        holder.close().await.unwrap();
    });
    assert_eq!(answer.status, status, "{method} {path}: {}", answer.body);
}

#[tokio::test]
async fn a_patch_that_waits() {
    let body = json!({"spec": {"n": 1}});
    watchers_see_others("PATCH", "", body.clone(), 200).await;
    watchers_see_others("PATCH", "?dryRun=true", body, 200).await;
}

#[tokio::test]
async fn a_deletion_that_waits() {
    watchers_see_others("DELETE", "", Value::Null, 202).await;
    watchers_see_others("DELETE", "?dryRun=true", Value::Null, 202).await;
}

#[tokio::test]
async fn a_report_that_waits() {
    let report = json!({
        "adapter": "dns",
        "observed_generation": 1,
        "observed_time": "2026-01-01T10:00:00Z",
        "conditions": [
            {"type": "Applied", "status": "True"},
            {"type": "Available", "status": "True"},
            {"type": "Health", "status": "True"},
        ],
    });
    watchers_see_others("PUT", "/statuses", report.clone(), 201).await;
    watchers_see_others("PUT", "/statuses?dryRun=true", report, 201).await;
}

#[tokio::test]
async fn a_new_child_that_waits_for_its_parent() {
    let child = json!({"kind": "NodePool", "name": "workers", "spec": {}});
    watchers_see_others("POST", "/nodepools", child.clone(), 201).await;
    watchers_see_others("POST", "/nodepools?dryRun=true", child, 201).await;
}
