//! A lock that another transaction does not give back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hyperfleet_domain::entity_config;
use hyperfleet_storage::{ConnectionLifetime, Settings, Store};
use serde_json::json;
use tokio::task::JoinHandle;

use super::{assert_requests_succeed, hold_row, until};
use crate::support::{Answer, TestApi, TestDatabase, WAITING};

const HELD: &str = "another transaction holds what the request needs: send it again later";

#[tokio::test]
async fn a_client_that_waits_for_a_lock_in_vain_learns_that() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("held").await;
    let holder = hold_row(&api.database, &cluster).await;
    let answer = api.patch(&cluster, json!({"spec": {"size": 1}})).await;
    assert_eq!(answer.problem(), (503, "SVC-001"), "{}", answer.body);
    assert_eq!(answer.detail(), HELD);
    let wait = answer.header("retry-after").expect("Retry-After");
    assert!(wait.parse::<u32>().unwrap() > 0);
    drop(holder);
    let answer = api.patch(&cluster, json!({"spec": {"size": 1}})).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
}

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
async fn change_held(api: &TestApi, held: &str, number: usize) -> Answer {
    let (text, spec) = (number.to_string(), json!({"spec": {"size": number}}));
    let key = [("Idempotency-Key", text.as_str())];
    match number % 6 {
        0 => api.patch(held, spec).await,
        1 => api.report(held, "adapter", 1, &[]).await,
        2 | 3 => api.delete(held).await,
        4 => api.send_with(&key, "PATCH", held, &spec).await,
        _ => {
            let tried = format!("{held}?dryRun=true");
            api.patch(&tried, spec).await
        }
    }
}

#[tokio::test]
async fn writes_to_locked_rows_block_no_other_resource() {
    let statement_time = Duration::from_secs(8);
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
            while !is_over.load(Ordering::SeqCst) {
                let answer = change_held(&api, &held, number).await;
                assert_eq!(
                    answer.problem(),
                    (503, "SVC-001"),
                    "{number}: {}",
                    answer.body
                );
            }
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
    // One of the four connections may wait for the rows.
    assert!(api.count(WAITING).await <= 1);
    // A row that is held for a moment is waited for, although the lane is full.
    let briefly = hold_row(&api.database, &other).await;
    let waiting = api.delete(&other);
    let release = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        drop(briefly);
    };
    let (answer, ()) = tokio::join!(waiting, release);
    assert_eq!(answer.status, 202, "{}", answer.body);
    is_over.store(true, Ordering::SeqCst);
    for client in clients {
        client.await.unwrap();
    }
    assert!(slowest < statement_time, "{slowest:?}");
    drop(holders);
    let answer = api.patch(&alone, json!({"spec": {"size": 100}})).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(api.delete(&parent).await.status, 202);
}

/// A change of a resource, by another client.
fn patching(api: &Arc<TestApi>, path: &str) -> JoinHandle<Answer> {
    let (api, path) = (api.clone(), path.to_owned());
    tokio::spawn(async move { api.patch(&path, json!({"spec": {"size": 1}})).await })
}

/// Connections of the service that wait for nothing.
const IDLE: &str = "SELECT coalesce(sum(pid), 0) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'hyperfleet-api' AND state = 'idle'";

#[tokio::test]
async fn requests_that_time_out_close_no_other_connection() {
    // A request ends after eight seconds.
    let (api, store) = service(10, Duration::from_secs(3)).await;
    let held = api.cluster("held").await;
    let holder = hold_row(&api.database, &held).await;
    // Each of the first two has the place for three seconds, the time of a statement. The last one has it for less: its own
    // time is up.
    let patches = [(); 3].map(|()| patching(&api, &held));
    for waiting in [2, 0] {
        until("they wait", async || {
            api.count(WAITING).await == 1 && store.connections().changes_waiting == waiting
        })
        .await;
    }
    let idle = api.count(IDLE).await;
    assert!(idle > 0, "nothing is idle");
    for patch in patches {
        let answer = patch.await.unwrap();
        assert_eq!(answer.problem(), (503, "SVC-001"), "{}", answer.body);
    }
    until(
        "the server has noticed that the last one is gone",
        async || api.count(WAITING).await == 0,
    )
    .await;
    assert_eq!(api.count(IDLE).await, idle);
    drop(holder);
    let answer = api.patch(&held, json!({"spec": {"size": 1}})).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
}
