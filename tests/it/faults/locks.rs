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

/// A service with four connections: one reads, and one of the other three may wait for held rows.
async fn service(acquire_seconds_max: u64, statement_time: Duration) -> (Arc<TestApi>, Store) {
    let database = TestDatabase::create().await;
    let store = Store::new(Settings {
        connect: database.options(),
        connections_max: 4,
        acquire_seconds_max,
        statement_milliseconds_max: u64::try_from(statement_time.as_millis()).unwrap(),
        lifetime: ConnectionLifetime::default(),
    });
    let registry = entity_config::registry(&entity_config::built_in()).unwrap();
    let api = TestApi::spawn_on(registry, database, store.clone(), false);
    (Arc::new(api), store)
}

/// A change of a held resource, of one of all sorts: of the row alone, with its descendants, with a key, and tried only.
async fn change_held(api: &TestApi, held: &str, number: usize) -> u16 {
    let (text, spec) = (number.to_string(), json!({"spec": {"size": number}}));
    let key = [("Idempotency-Key", text.as_str())];
    let answer = match number % 6 {
        0 => api.patch(held, spec).await,
        1 => api.report(held, "adapter", 1, &[]).await,
        2 | 3 => api.delete(held).await,
        4 => api.send_with(&key, "PATCH", held, &spec).await,
        _ => {
            let tried = format!("{held}?dryRun=true");
            api.patch(&tried, spec).await
        }
    };
    answer.status
}

#[tokio::test]
async fn a_flood_of_changes_of_held_rows_refuses_no_request_for_another_resource() {
    let statement_time = Duration::from_secs(4);
    let (api, store) = service(2, statement_time).await;
    let (alone, parent) = (api.cluster("alone").await, api.cluster("parent").await);
    api.nodepool(&parent, "child").await;
    let other = api.cluster("other").await;
    let holders = [
        hold_row(&api.database, &alone).await,
        hold_row(&api.database, &parent).await,
    ];
    let is_over = Arc::new(AtomicBool::new(false));
    let clients = (0..48).map(|number| {
        let (api, is_over) = (api.clone(), is_over.clone());
        let held = if number % 12 < 6 { &alone } else { &parent }.clone();
        tokio::spawn(async move {
            let mut statuses = BTreeSet::new();
            while !is_over.load(Ordering::SeqCst) {
                statuses.insert(change_held(&api, &held, number).await);
            }
            statuses
        })
    });
    let clients: Vec<_> = clients.collect();
    until("changes wait for the rows", async || {
        api.count(WAITING).await > 0 && store.connections().changes_waiting > 0
    })
    .await;
    let mut slowest = Duration::ZERO;
    for number in 0..15 {
        let since = Instant::now();
        assert_requests_succeed(&api, &other, number).await;
        slowest = slowest.max(since.elapsed());
    }
    is_over.store(true, Ordering::SeqCst);
    for client in clients {
        assert_eq!(client.await.unwrap(), BTreeSet::from([503]));
    }
    assert!(slowest < statement_time, "{slowest:?}");
    drop(holders);
    let answer = api.patch(&alone, json!({"spec": {"size": 100}})).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(api.delete(&parent).await.status, 202);
}

/// Connections of the service that wait for nothing.
const IDLE: &str = "SELECT coalesce(sum(pid), 0) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'hyperfleet-api' AND state = 'idle'";

#[tokio::test]
async fn requests_that_wait_out_their_time_close_no_connection_of_others() {
    // A request ends after seven seconds.
    let (api, store) = service(10, Duration::from_secs(2)).await;
    let (alone, parent) = (api.cluster("alone").await, api.cluster("parent").await);
    let child = api.nodepool(&parent, "child").await;
    let holder = hold_row(&api.database, &alone).await;
    let of_parent = hold_row(&api.database, &parent).await;
    let of_child = hold_row(&api.database, &child).await;
    let change = |path: &str, is_deletion: bool| {
        let (api, path) = (api.clone(), path.to_owned());
        tokio::spawn(async move {
            if is_deletion {
                api.delete(&path).await
            } else {
                api.patch(&path, json!({"spec": {"size": 1}})).await
            }
        })
    };
    // The first two hold the place for two seconds each, by the time of a statement. The third then waits for the parent
    // and, once that is free, for the child until its own time is up, before that of its statement.
    let mut waiting = Vec::new();
    for (number, (path, is_deletion)) in [(&alone, false), (&alone, false), (&parent, true)]
        .into_iter()
        .enumerate()
    {
        waiting.push(change(path, is_deletion));
        until("it waits", async || {
            api.count(WAITING).await == 1 && store.connections().changes_waiting == number
        })
        .await;
    }
    until("the last one has the place", async || {
        store.connections().changes_waiting == 0
    })
    .await;
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let idle = api.count(IDLE).await;
    assert!(idle > 0, "nothing is idle");
    drop(of_parent);
    for waiting in waiting {
        let answer = waiting.await.unwrap();
        assert_eq!(answer.problem(), (503, "SVC-001"), "{}", answer.body);
    }
    assert_eq!(api.count(IDLE).await, idle);
    drop((holder, of_child));
    assert_eq!(api.delete(&parent).await.status, 202);
}
