//! Bursts that are larger than what a group of watchers keeps.

use futures_util::future::join_all;
use sqlx::Connection as _;

use super::client::Instance;
use crate::support::until;

const WATCHERS: usize = 40;

/// Twenty resources of 200 kB, in one transaction.
const BURST: &str = "INSERT INTO resources (id, kind, name, generation, created_at, updated_at, created_by, updated_by, spec)
    SELECT gen_random_uuid(), 'Plain', 'p' || n, 1, now(), now(), 'x', 'x', jsonb_build_object('text', repeat('x', 200000))
    FROM generate_series(1, 20) n";

/// Each read looks for the later changes of each resource. If each watcher read for itself, there were ten times as many.
const SCANS_MAX: i64 = 2_000;

/// Scans of the table by connections that have ended.
const SCANS: &str = "SELECT seq_scan + idx_scan FROM pg_stat_user_tables WHERE relname = 'changes'";

#[tokio::test]
async fn a_burst_is_read_once_for_all_watchers() {
    let instance = Instance::spawn().await;
    let api = &instance.api;
    let mut watches = join_all((0..WATCHERS).map(|_| instance.watch("/plains?fields=name"))).await;
    for watch in &mut watches {
        watch.bookmark().await;
    }
    let mut writer = api.database.connect().await;
    sqlx::raw_sql(BURST).execute(&mut writer).await.unwrap();
    let seen = join_all(watches.iter_mut().map(|watch| watch.changes(20))).await;
    let expected: Vec<_> = (1..=20).map(|n| format!("ADDED p{n}")).collect();
    for seen in seen {
        assert_eq!(seen, expected);
    }
    // The counts of connections are complete once they have ended.
    writer.close().await.unwrap();
    let mut connection = api.database.connect().await;
    let others = "SELECT pid FROM pg_stat_activity
        WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()";
    let others: Vec<i32> = sqlx::query_scalar(others)
        .fetch_all(&mut connection)
        .await
        .unwrap();
    let end = "SELECT pg_terminate_backend(pid) FROM unnest($1) pid";
    let end = sqlx::query(end).bind(&others);
    end.execute(&mut connection).await.unwrap();
    let left = "SELECT count(*) FROM pg_stat_activity WHERE pid = ANY($1)";
    until("they have ended", async || {
        let left = sqlx::query_scalar::<_, i64>(left).bind(&others);
        left.fetch_one(&mut connection).await.unwrap() == 0
    })
    .await;
    let scans: i64 = sqlx::query_scalar(SCANS)
        .fetch_one(&mut connection)
        .await
        .unwrap();
    println!("{scans} scans for {WATCHERS} watchers");
    assert!((1..SCANS_MAX).contains(&scans), "{scans}");
}
