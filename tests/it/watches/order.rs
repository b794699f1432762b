//! Transactions commit in another order than they draw positions: watchers wait, and miss nothing. Transactions that have
//! nothing to do with resources hold nobody back.

use std::time::{Duration, Instant};

use sqlx::Connection as _;
use sqlx::postgres::PgConnection;

use super::client::{Instance, brief};
use crate::support::TestDatabase;

async fn run(connection: &mut PgConnection, sql: &'static str) {
    sqlx::raw_sql(sql).execute(connection).await.unwrap();
}

const INSERT: &str = "INSERT INTO resources (id, kind, name, generation, created_at, updated_at, created_by, updated_by, spec)
    VALUES (gen_random_uuid(), 'Plain', 'early', 1, now(), now(), 'x', 'x', '{}')";

#[tokio::test]
async fn a_position_that_is_committed_late_comes_first() {
    let instance = Instance::spawn().await;
    let (api, other) = (&instance.api, instance.another());
    let mut watches = [
        instance.watch("/plains").await,
        other.watch("/plains").await,
    ];
    for watch in &mut watches {
        watch.bookmark().await;
    }
    let mut early = api.database.connect().await;
    run(&mut early, "BEGIN").await;
    run(&mut early, INSERT).await;
    // This one draws a later position, and is committed before.
    api.make("/plains", "Plain", "late").await;
    let list = api.get("/plains").await;
    assert_eq!(list.items().len(), 1);
    let from_list = list.headers["hyperfleet-position"]
        .to_str()
        .unwrap()
        .to_owned();
    for watch in &mut watches {
        let waits = tokio::time::timeout(Duration::from_millis(500), watch.change()).await;
        assert!(waits.is_err(), "{waits:?}");
    }
    run(&mut early, "COMMIT").await;
    for watch in &mut watches {
        assert_eq!(watch.changes(2).await, ["ADDED early", "ADDED late"]);
    }
    // A watch from the list of the moment between misses neither.
    let mut resumed = instance
        .watch(&format!("/plains?position={from_list}"))
        .await;
    assert_eq!(resumed.changes(2).await, ["ADDED early", "ADDED late"]);
}

#[tokio::test]
async fn a_position_that_is_rolled_back_is_not_waited_for_any_longer() {
    let instance = Instance::spawn().await;
    let api = &instance.api;
    let mut watch = instance.watch("/plains").await;
    let mut early = api.database.connect().await;
    run(&mut early, "BEGIN").await;
    run(&mut early, INSERT).await;
    api.make("/plains", "Plain", "late").await;
    run(&mut early, "ROLLBACK").await;
    assert_eq!(watch.changes(1).await, ["ADDED late"]);
}

#[tokio::test]
async fn open_transactions_elsewhere_hold_nobody_back() {
    let instance = Instance::spawn().await;
    let api = &instance.api;
    let mut watch = instance.watch("/plains").await;
    watch.bookmark().await;
    // Another database of the same server, with a transaction that has written.
    let elsewhere = TestDatabase::create_empty().await;
    let mut writer = elsewhere.connect().await;
    run(
        &mut writer,
        "BEGIN; CREATE TABLE t (n int); INSERT INTO t VALUES (1)",
    )
    .await;
    // A dump of this database.
    let mut dump = api.database.connect().await;
    run(
        &mut dump,
        "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM resources; SELECT count(*) FROM changes",
    )
    .await;
    // A transaction of this database that writes something else.
    let mut other = api.database.connect().await;
    run(
        &mut other,
        "BEGIN; CREATE TABLE unrelated (n int); SELECT pg_current_xact_id()",
    )
    .await;
    let since = Instant::now();
    api.make("/plains", "Plain", "a").await;
    assert_eq!(brief(&watch.next().await), "ADDED a");
    assert!(
        since.elapsed() < Duration::from_secs(1),
        "{:?}",
        since.elapsed()
    );
    for connection in [writer, dump, other] {
        connection.close().await.unwrap();
    }
}
