//! Dry runs beside writers.

use std::sync::Arc;

use futures_util::future::join_all;
use hyperfleet_domain::entity_config;
use serde_json::json;
use sqlx::Connection as _;

use super::{NONE, Rehearsal, dry_run};

/// Every other request is a dry run of the same create or patch: one real create succeeds, and each patch counts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dry_runs_do_not_disturb_writers() {
    let rehearsal = Arc::new(Rehearsal::of(entity_config::built_in()).await);
    let api = &rehearsal.api;
    let shared = api.cluster("shared").await;
    for round in 0..8 {
        let name = format!("name-{round}");
        let creates = (0..8).map(async |number| {
            let body = json!({"kind": "Cluster", "name": name, "spec": {}});
            if number % 2 == 0 {
                let dry = dry_run(api, (&[], "POST", "/clusters", &body)).await;
                assert!([201, 409].contains(&dry.status), "{}", dry.body);
                return 0;
            }
            let real = api.post("/clusters", body).await;
            assert!([201, 409].contains(&real.status), "{}", real.body);
            usize::from(real.status == 201)
        });
        let made: usize = join_all(creates).await.into_iter().sum();
        assert_eq!(made, 1, "{name}");
        let patches = (0..8).map(async |number| {
            let body = json!({"spec": {"round": round, "number": number}});
            if number % 2 == 0 {
                let delete = dry_run(api, (&[], "DELETE", &shared, &NONE)).await;
                assert_eq!(delete.status, 202, "{}", delete.body);
                let patch = dry_run(api, (&[], "PATCH", &shared, &body)).await;
                assert_eq!(patch.status, 200, "{}", patch.body);
            } else {
                assert_eq!(api.patch(&shared, body).await.status, 200);
            }
        });
        join_all(patches).await;
        let read = api.get(&shared).await;
        assert_eq!(read.body["generation"], 1 + 4 * (round + 1));
    }
    rehearsal.assert_sound().await;
}

#[tokio::test]
async fn a_dry_run_leaves_no_lock_and_no_open_transaction() {
    let rehearsal = Rehearsal::of(entity_config::built_in()).await;
    let path = rehearsal.api.cluster("one").await;
    let dry = dry_run(&rehearsal.api, (&[], "DELETE", &path, &NONE)).await;
    assert_eq!(dry.status, 202);
    let mut connection = rehearsal.api.database.connect().await;
    let open: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL",
    )
    .fetch_one(&mut connection)
    .await
    .unwrap();
    assert_eq!(open, 0);
    let lock = "SELECT 1 FROM resources FOR UPDATE NOWAIT";
    sqlx::query(lock).fetch_all(&mut connection).await.unwrap();
}

/// A dry run waits for a lock as the request would, but not for long.
#[tokio::test]
async fn a_dry_run_that_waits_for_a_lock_is_sent_away() {
    let rehearsal = Rehearsal::of(entity_config::built_in()).await;
    let path = rehearsal.api.cluster("one").await;
    let mut connection = rehearsal.api.database.connect().await;
    let mut busy = connection.begin().await.unwrap();
    let lock = "SELECT FROM resources FOR UPDATE";
    sqlx::query(lock).fetch_all(&mut *busy).await.unwrap();
    let dry = dry_run(&rehearsal.api, (&[], "DELETE", &path, &NONE)).await;
    assert_eq!(dry.problem(), (503, "SVC-001"), "{}", dry.body);
    busy.rollback().await.unwrap();
    let dry = dry_run(&rehearsal.api, (&[], "DELETE", &path, &NONE)).await;
    assert_eq!(dry.status, 202);
}

/// A report does not wait for changes of owners, unless it completes a deletion; a discarded one waits for nothing.
#[tokio::test]
async fn a_dry_run_of_a_report_locks_no_more_than_the_report() {
    let rehearsal = Rehearsal::of(entity_config::built_in()).await;
    let api = &rehearsal.api;
    let cluster = api.cluster("one").await;
    let pool = api.nodepool(&cluster, "workers").await;
    let mut connection = api.database.connect().await;
    for (locked, generation, status) in [("Cluster", 1, 201), ("NodePool", 2, 200)] {
        let mut busy = connection.begin().await.unwrap();
        let lock = "SELECT FROM resources WHERE kind = $1 FOR NO KEY UPDATE";
        sqlx::query(lock)
            .bind(locked)
            .fetch_all(&mut *busy)
            .await
            .unwrap();
        let conditions = ["Available", "Applied", "Health"];
        let conditions = conditions.map(|kind| json!({"type": kind, "status": "True"}));
        let report = json!({
            "adapter": "hypershift", "observed_generation": generation, "observed_time": api.clock.now(),
            "conditions": conditions,
        });
        let path = format!("{pool}/statuses");
        let dry = dry_run(api, (&[], "PUT", &path, &report)).await;
        assert_eq!(dry.status, status, "{locked}: {}", dry.body);
        busy.rollback().await.unwrap();
    }
}
