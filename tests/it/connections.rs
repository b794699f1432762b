//! How long connections to the database are kept.

use std::time::Duration;

use hyperfleet::storage::postgres::{Keep, Settings, Store};

use crate::support::{TestDatabase, until};

fn store(database: &TestDatabase, keep: Keep) -> Store {
    Store::new(Settings {
        connect: database.options(),
        connections_max: 8,
        acquire_seconds_max: 20,
        statement_milliseconds_max: 30_000,
        keep,
    })
}

/// Uses so many connections at a time; gives the server's processes that there are then, in order.
async fn used(database: &TestDatabase, store: &Store, count: usize) -> Vec<i32> {
    let mut sessions = Vec::new();
    for _ in 0..count {
        sessions.push(store.session().await.unwrap());
    }
    for session in &mut sessions {
        session.db().schema_status().await.unwrap();
    }
    let processes = "SELECT pid FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = 'hyperfleet-api' ORDER BY pid";
    let mut connection = database.connect().await;
    let processes = sqlx::query_scalar(processes).fetch_all(&mut connection);
    processes.await.unwrap()
}

#[tokio::test]
async fn connections_are_kept_between_uses() {
    let database = TestDatabase::create().await;
    let store = store(&database, Keep::default());
    let first = used(&database, &store, 3).await;
    store.trim();
    assert_eq!(used(&database, &store, 3).await, first);
    assert_eq!(store.connections().open, 3);
}

#[tokio::test]
async fn no_more_idle_ones_are_kept_than_may_be() {
    let database = TestDatabase::create().await;
    let keep = Keep {
        idle_max: Some(2),
        ..Keep::default()
    };
    let store = store(&database, keep);
    used(&database, &store, 5).await;
    assert_eq!(store.connections().open, 5);
    store.trim();
    assert_eq!(store.connections().open, 2);
}

#[tokio::test]
async fn what_nobody_needs_is_closed_after_its_time_and_what_is_used_is_not() {
    let database = TestDatabase::create().await;
    let keep = Keep {
        idle_time: Some(Duration::from_millis(50)),
        ..Keep::default()
    };
    let store = store(&database, keep);
    let mut session = store.session().await.unwrap();
    used(&database, &store, 2).await;
    until("the idle ones are closed", async || {
        store.trim();
        store.connections().open == 1
    })
    .await;
    session.db().schema_status().await.unwrap();
}

#[tokio::test]
async fn old_ones_are_replaced() {
    let database = TestDatabase::create().await;
    let keep = Keep {
        lifetime: Some(Duration::from_millis(50)),
        ..Keep::default()
    };
    let store = store(&database, keep);
    let first = used(&database, &store, 1).await;
    until("another connection answers", async || {
        used(&database, &store, 1).await != first
    })
    .await;
    assert_eq!(store.connections().open, 1);
}
