//! A lock that another transaction does not give back.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hyperfleet::domain::entity_config;
use hyperfleet::storage::postgres::{ConnectionLifetime, Settings, Store};
use serde_json::json;

use super::{assert_requests_succeed, hold_row, until};
use crate::support::{TestApi, TestDatabase};

/// For every later connection.
const IMPATIENT: &str = "DO $$ BEGIN
    EXECUTE format('ALTER DATABASE %I SET lock_timeout = 100', current_database());
END $$";

#[tokio::test]
async fn a_client_that_waits_for_a_lock_in_vain_learns_that() {
    let database = TestDatabase::create().await;
    let mut other = database.connect().await;
    sqlx::raw_sql(IMPATIENT).execute(&mut other).await.unwrap();
    let registry = entity_config::registry(&entity_config::built_in()).unwrap();
    let store = database.store();
    let api = TestApi::spawn_on(registry, database, store, false);
    let cluster = api.cluster("held").await;
    let hold = "BEGIN; SELECT FROM resources FOR UPDATE";
    sqlx::raw_sql(hold).execute(&mut other).await.unwrap();
    let answer = api.patch(&cluster, json!({"spec": {"size": 1}})).await;
    assert_eq!(answer.problem(), (503, "SVC-001"), "{}", answer.body);
    assert_eq!(
        answer.detail(),
        "another transaction holds what the request needs: send it again later"
    );
    let wait = answer.header("retry-after").expect("Retry-After");
    assert!(wait.parse::<u32>().unwrap() > 0);
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
    let answer = api.patch(&cluster, json!({"spec": {"size": 1}})).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
}

/// Changes of a row that wait in the database until it is free.
const WAITING: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'";

#[tokio::test]
async fn a_flood_of_changes_of_a_held_row_refuses_no_request_for_another_resource() {
    let database = TestDatabase::create().await;
    let statement_time = Duration::from_secs(4);
    let store = Store::new(Settings {
        connect: database.options(),
        connections_max: 4,
        acquire_seconds_max: 2,
        statement_milliseconds_max: 4_000,
        lifetime: ConnectionLifetime::default(),
    });
    let registry = entity_config::registry(&entity_config::built_in()).unwrap();
    let api = TestApi::spawn_on(registry, database, store.clone(), false);
    let api = Arc::new(api);
    let (held, other) = (api.cluster("held").await, api.cluster("other").await);
    let holder = hold_row(&api.database, &held).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let clients = (0..24).map(|number| {
        let (api, is_over, held) = (api.clone(), is_over.clone(), held.clone());
        tokio::spawn(async move {
            let mut statuses = BTreeSet::new();
            while !is_over.load(Ordering::SeqCst) {
                let spec = json!({"spec": {"size": number}});
                let answer = if number % 2 == 0 {
                    api.patch(&held, spec).await
                } else {
                    api.report(&held, "adapter", 1, &[]).await
                };
                statuses.insert(answer.status);
            }
            statuses
        })
    });
    let clients: Vec<_> = clients.collect();
    until("changes wait for the row", async || {
        api.count(WAITING).await > 0 && store.connections().changes_waiting > 0
    })
    .await;
    let mut slowest = Duration::ZERO;
    for number in 0..15 {
        let since = Instant::now();
        assert_requests_succeed(&api, &other, number).await;
        slowest = slowest.max(since.elapsed());
    }
    // One of the four connections may wait for the row.
    assert!(api.count(WAITING).await <= 1);
    is_over.store(true, Ordering::SeqCst);
    for client in clients {
        assert_eq!(client.await.unwrap(), BTreeSet::from([503]));
    }
    assert!(slowest < statement_time, "{slowest:?}");
    drop(holder);
    let answer = api.patch(&held, json!({"spec": {"size": 100}})).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
}
