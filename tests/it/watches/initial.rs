//! The list that a watch begins with, if it is searched, and long or few of many.

use sqlx::Connection as _;

use super::client::{Instance, brief};
use crate::support::{still, until};

/// Copies of the only resource, one each millisecond. Every other one is even, and a hundred are in each shard.
const COPIES: &str = "INSERT INTO resources (id, kind, name, spec, labels, conditions, generation, created_at, created_by,
                            updated_at, updated_by)
     SELECT gen_random_uuid(), kind, name || n, spec,
            jsonb_build_object('even', (n % 2 = 0)::text, 'shard', (n % 80)::text), conditions, 1,
            created_at + n * interval '1 ms', created_by, updated_at, updated_by
     FROM resources, generate_series(1, 8000) n";
const ENTRIES_READ: &str =
    "SELECT sum(idx_tup_read)::bigint FROM pg_stat_user_indexes WHERE relname = 'resources'";

/// With 8,000 copies of a resource, and counters of the index entries that were read before.
async fn copied() -> (Instance, i64) {
    let instance = Instance::spawn().await;
    let api = &instance.api;
    api.make("/plains", "Plain", "p").await;
    let mut connection = api.database.connect().await;
    for sql in [COPIES, "VACUUM ANALYZE resources"] {
        let done = sqlx::raw_sql(sql).execute(&mut connection).await;
        done.unwrap();
    }
    connection.close().await.unwrap();
    let before = still(async || api.count(ENTRIES_READ).await).await;
    (instance, before)
}

/// The number of index entries that were read for the list of a watch. Its search finds every `step`th copy.
async fn entries_read(search: &str, step: usize) -> i64 {
    let (instance, before) = copied().await;
    let path = format!("/plains?initial=true&search={search}");
    let mut watch = instance.watch(&path).await;
    for n in (1..=8_000).rev().step_by(step) {
        assert_eq!(brief(&watch.next().await), format!("ADDED p{n}"));
    }
    watch.bookmark().await;
    let listed = i64::try_from(8_000 / step).unwrap();
    until("the counters are published", async || {
        instance.api.count(ENTRIES_READ).await >= before + listed
    })
    .await;
    instance.api.count(ENTRIES_READ).await - before
}

/// A few entries for each of the 8,001 resources. If each page found all rows of the search, there would be 4,000 for each of
/// more than forty pages.
#[tokio::test]
async fn a_long_list_of_a_search_reads_each_resource_a_few_times() {
    let entries = entries_read("labels.even%3D'true'", 2).await;
    assert!(entries <= 10 * 8_001, "{entries}");
}

/// A hundred entries for each of a few pages, and not 8,001 resources.
#[tokio::test]
async fn few_resources_of_many_are_found_without_the_others() {
    let entries = entries_read("labels.shard%3D'0'", 80).await;
    assert!(entries <= 4_000, "{entries}");
}
