//! The list that a watch begins with, if it is long and searched.

use sqlx::Connection as _;
use std::time::Duration;

use super::client::{Instance, brief};
use crate::support::until;

/// Copies of the only resource, one each millisecond. Every other one has a label.
const COPIES: &str = "INSERT INTO resources (id, kind, name, spec, labels, conditions, generation, created_at, created_by,
                            updated_at, updated_by)
     SELECT gen_random_uuid(), kind, name || n, spec,
            CASE n % 2 WHEN 0 THEN '{\"even\": \"yes\"}'::jsonb ELSE '{}'::jsonb END, conditions, 1,
            created_at + n * interval '1 ms', created_by, updated_at, updated_by
     FROM resources, generate_series(1, 8000) n";
const ENTRIES_READ: &str =
    "SELECT sum(idx_tup_read)::bigint FROM pg_stat_user_indexes WHERE relname = 'resources'";
/// A few entries for each of the 8,001 resources. If each page found all rows of the search, there would be 4,000 for each of
/// more than forty pages.
const ENTRIES_MAX: i64 = 10 * 8_001;

#[tokio::test]
async fn a_long_list_of_a_search_comes_first_and_reads_each_resource_a_few_times() {
    let instance = Instance::spawn().await;
    let api = &instance.api;
    api.make("/plains", "Plain", "p").await;
    let mut connection = api.database.connect().await;
    for sql in [COPIES, "VACUUM ANALYZE resources"] {
        let done = sqlx::raw_sql(sql).execute(&mut connection).await;
        done.unwrap();
    }
    connection.close().await.unwrap();
    let mut before = api.count(ENTRIES_READ).await;
    until("the counters stand still", async || {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let earlier = std::mem::replace(&mut before, api.count(ENTRIES_READ).await);
        before == earlier
    })
    .await;
    let mut watch = instance
        .watch("/plains?initial=true&search=labels.even%3D'yes'")
        .await;
    for n in (1..=4_000).rev() {
        assert_eq!(brief(&watch.next().await), format!("ADDED p{}", 2 * n));
    }
    watch.bookmark().await;
    until("the counters are published", async || {
        api.count(ENTRIES_READ).await > before + 4_000
    })
    .await;
    let entries = api.count(ENTRIES_READ).await - before;
    assert!(entries <= ENTRIES_MAX, "{entries}");
}
