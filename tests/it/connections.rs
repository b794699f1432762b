//! How long connections to the database stay open.

use std::net::TcpListener;
use std::time::Duration;

use hyperfleet_storage::{ConnectionLifetime, Error, Settings, Store, Turn};
use sqlx::postgres::PgConnectOptions;

use crate::support::{TestDatabase, until};

fn store(database: &TestDatabase, lifetime: ConnectionLifetime) -> Store {
    Store::new(Settings {
        connect: database.options(),
        connections_max: 8,
        acquire_seconds_max: 20,
        statement_milliseconds_max: 30_000,
        lifetime,
    })
}

/// Uses so many connections at a time; gives the server's processes that there are then, in order.
async fn used(database: &TestDatabase, store: &Store, count: usize) -> Vec<i32> {
    let mut sessions = Vec::new();
    for _ in 0..count {
        sessions.push(store.session().await.unwrap());
    }
    for session in &mut sessions {
        session.db().migrations().await.unwrap();
    }
    let processes = "SELECT pid FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = 'hyperfleet-api' ORDER BY pid";
    let mut connection = database.connect().await;
    let processes = sqlx::query_scalar(processes).fetch_all(&mut connection);
    processes.await.unwrap()
}

#[tokio::test]
async fn connections_stay_open_between_uses() {
    let database = TestDatabase::create().await;
    let store = store(&database, ConnectionLifetime::default());
    let first = used(&database, &store, 3).await;
    store.trim();
    assert_eq!(used(&database, &store, 3).await, first);
    assert_eq!(store.connections().open, 3);
}

#[tokio::test]
async fn no_more_idle_connections_stay_open_than_allowed() {
    let database = TestDatabase::create().await;
    let keep = ConnectionLifetime {
        idle_max: Some(2),
        ..ConnectionLifetime::default()
    };
    let store = store(&database, keep);
    used(&database, &store, 5).await;
    assert_eq!(store.connections().open, 5);
    store.trim();
    assert_eq!(store.connections().open, 2);
}

/// The server's processes, the one that was used last first.
async fn by_use(database: &TestDatabase) -> Vec<i32> {
    let processes = "SELECT pid FROM pg_stat_activity WHERE datname = current_database()
         AND application_name = 'hyperfleet-api' ORDER BY query_start DESC";
    let mut connection = database.connect().await;
    let processes = sqlx::query_scalar(processes).fetch_all(&mut connection);
    processes.await.unwrap()
}

#[tokio::test]
async fn the_most_recently_used_connections_stay_open() {
    let database = TestDatabase::create().await;
    let keep = ConnectionLifetime {
        idle_max: Some(2),
        ..ConnectionLifetime::default()
    };
    let store = store(&database, keep);
    used(&database, &store, 5).await;
    for count in [3, 1] {
        used(&database, &store, count).await;
        let before = by_use(&database).await;
        store.trim();
        until("the others are gone", async || {
            by_use(&database).await == before[..2]
        })
        .await;
    }
}

#[tokio::test]
async fn the_number_of_idle_connections_holds_over_all_threads() {
    let database = TestDatabase::create().await;
    for (idle_max, expected) in [(8, 6), (6, 6), (5, 5), (1, 1), (0, 0)] {
        let keep = ConnectionLifetime {
            idle_max: Some(idle_max),
            ..ConnectionLifetime::default()
        };
        let store = store(&database, keep);
        for share in [store.share(2), store.share(2)] {
            used(&database, &share, 3).await;
        }
        assert_eq!(store.connections().open, 6);
        store.trim();
        assert_eq!(store.connections().open, expected, "{idle_max}");
    }
}

#[tokio::test]
async fn only_unused_connections_are_closed_after_their_time() {
    let database = TestDatabase::create().await;
    let keep = ConnectionLifetime {
        idle_time: Some(Duration::from_millis(50)),
        ..ConnectionLifetime::default()
    };
    let store = store(&database, keep);
    let mut session = store.session().await.unwrap();
    used(&database, &store, 2).await;
    until("the idle ones are closed", async || {
        store.trim();
        store.connections().open == 1
    })
    .await;
    session.db().migrations().await.unwrap();
}

#[tokio::test]
async fn old_ones_are_replaced() {
    let database = TestDatabase::create().await;
    let keep = ConnectionLifetime {
        lifetime: Some(Duration::from_millis(50)),
        ..ConnectionLifetime::default()
    };
    let store = store(&database, keep);
    let first = used(&database, &store, 1).await;
    until("another connection answers", async || {
        used(&database, &store, 1).await != first
    })
    .await;
    assert_eq!(store.connections().open, 1);
}

/// Stores of a thread with so many connections, for whose turn and connections a second is waited.
fn thread(connect: &PgConnectOptions, connections_max: usize) -> Store {
    let store = Store::new(Settings {
        connect: connect.clone(),
        connections_max,
        acquire_seconds_max: 1,
        statement_milliseconds_max: 30_000,
        lifetime: ConnectionLifetime::default(),
    });
    store.share(1)
}

#[tokio::test]
async fn slow_statements_leave_a_connection_for_the_others() {
    let database = TestDatabase::create().await;
    for (connections, expected) in [(2, 1), (3, 1), (4, 1), (5, 1), (6, 2), (8, 2), (9, 3)] {
        let store = thread(&database.options(), connections);
        let mut slow = Vec::new();
        let refused = loop {
            match store.slow_session().await {
                Ok(session) => slow.push(session),
                Err(error) => break error,
            }
        };
        assert!(matches!(refused, Error::TooSlow { .. }), "{refused}");
        assert_eq!(slow.len(), expected, "{connections}");
        store.session().await.unwrap();
        drop(slow.pop());
        store.slow_session().await.unwrap();
    }
}

#[tokio::test]
async fn changes_of_held_rows_leave_a_connection_for_the_others() {
    let database = TestDatabase::create().await;
    for (connections, expected) in [(2, 1), (3, 1), (4, 1), (6, 1), (8, 2)] {
        let store = thread(&database.options(), connections);
        let mut open = Vec::new();
        let refused = loop {
            match store.begin_change(Turn::InLane).await {
                Ok(tx) => open.push(tx),
                Err(error) => break error,
            }
        };
        assert!(matches!(refused, Error::Contended { .. }), "{refused}");
        assert_eq!(open.len(), expected, "{connections}");
        drop(store.session().await.unwrap());
        open.pop().unwrap().roll_back().await;
        store
            .begin_change(Turn::InLane)
            .await
            .unwrap()
            .roll_back()
            .await;
    }
}

#[tokio::test]
async fn slow_statements_that_wait_for_their_turn_are_counted() {
    let database = TestDatabase::create().await;
    let store = thread(&database.options(), 2);
    let session = store.slow_session().await.unwrap();
    let waiting = [(); 3].map(|()| {
        let store = store.clone();
        tokio::spawn(async move { store.slow_session().await.is_ok() })
    });
    until("they wait", async || {
        store.connections().searches_waiting == 3
    })
    .await;
    assert_eq!(store.connections().waiting, 0);
    drop(session);
    for one in waiting {
        assert!(one.await.unwrap());
    }
    assert_eq!(store.connections().searches_waiting, 0);
}

#[tokio::test]
async fn without_a_connection_the_database_is_blamed() {
    // Takes connections, by the system's hand, and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://nobody@{}/nothing", silent.local_addr().unwrap());
    let store = thread(&url.parse().unwrap(), 4);
    let all = [(); 4].map(|()| {
        let store = store.clone();
        tokio::spawn(async move { store.slow_session().await.err() })
    });
    for one in all {
        let error = one.await.unwrap().unwrap();
        assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    }
}
