//! What pollers search for is found by an index, not by reading the list.

use serde_json::json;
use sqlx::postgres::PgConnection;

use super::names;
use crate::support::{TestApi, still, until};

/// So many clusters, in a hundred shards; one in a thousand is not reconciled, stale, changed since
/// it was last reconciled, and new to its state.
const CLUSTERS: i32 = 20_000;

const SEED: &str = r#"
    INSERT INTO resources (id, created_at, updated_at, generation, kind, name, created_by, updated_by,
                           labels, conditions, spec)
    SELECT gen_random_uuid(), t.created_at + n * interval '1 ms', t.updated_at, t.generation, t.kind,
           'many-' || n, t.created_by, t.updated_by,
           jsonb_build_object('shard', (n % 100)::text, 'env', 'prod'),
           jsonb_build_array(
               jsonb_build_object('type', 'Reconciled', 'observed_generation', 1,
                   'status', CASE WHEN n % 1000 = 3 THEN 'False' ELSE 'True' END,
                   'created_time', t.created_at,
                   'last_updated_time', to_char(t.created_at + CASE WHEN n % 1000 = 3 THEN 0 ELSE n END
                       * interval '1 s', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
                   'last_transition_time', to_char(t.created_at + CASE WHEN n % 1000 = 3 THEN 90000 ELSE 0 END
                       * interval '1 s', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')),
               jsonb_build_object('type', 'LastKnownReconciled', 'status', 'True',
                   'observed_generation', CASE WHEN n % 1000 = 3 THEN 1 ELSE 2 END,
                   'created_time', t.created_at, 'last_updated_time', t.created_at,
                   'last_transition_time', t.created_at)),
           t.spec
    FROM resources t, generate_series(1, $1) n WHERE t.name = 'template'"#;

/// How often the table was scanned, and each of its indexes used.
async fn scans(connection: &mut PgConnection) -> (i64, Vec<(String, i64)>) {
    let table_scans = "SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 'resources'";
    let indexes = "SELECT indexrelname::text, idx_scan FROM pg_stat_user_indexes
                   WHERE relname = 'resources' ORDER BY 1";
    let table_scans = sqlx::query_scalar(table_scans)
        .fetch_one(&mut *connection)
        .await;
    let indexes = sqlx::query_as(indexes).fetch_all(connection).await;
    (table_scans.unwrap(), indexes.unwrap())
}

async fn with_many_clusters() -> (TestApi, PgConnection) {
    let api = TestApi::spawn().await;
    let body = json!({"kind": "Cluster", "name": "template", "spec": {}});
    assert_eq!(api.post("/clusters", body).await.status, 201);
    let mut connection = api.database.connect().await;
    let seed = sqlx::query(SEED).bind(CLUSTERS);
    seed.execute(&mut connection).await.unwrap();
    let analyze = sqlx::raw_sql("VACUUM ANALYZE resources");
    analyze.execute(&mut connection).await.unwrap();
    // A connection reports its scans at most once a second; those of the seed must not count as scans of a search.
    let report = sqlx::raw_sql("SELECT pg_stat_force_next_flush()");
    report.execute(&mut connection).await.unwrap();
    (api, connection)
}

#[tokio::test]
async fn a_list_is_continued_without_passing_what_came_before() {
    const COUNTERS: &str =
        "SELECT max(seq_scan), sum(i.idx_scan)::bigint, sum(idx_tup_read)::bigint
        FROM pg_stat_user_tables t JOIN pg_stat_user_indexes i USING (relid)
        WHERE indexrelname LIKE 'resources_newest%'";
    let (api, mut connection) = with_many_clusters().await;
    let middle = api.get("/clusters?page=100&size=100").await;
    let token = middle.body["continue"].as_str().unwrap().to_owned();
    let mut counters = async || -> (i64, i64, i64) {
        let counters = sqlx::query_as(COUNTERS).fetch_one(&mut connection).await;
        counters.unwrap()
    };
    // Earlier reads are counted with a delay.
    let before = still(async || {
        api.get("/audit?size=1").await;
        counters().await
    })
    .await;
    let mut after = before;
    let mut pages = 0;
    until("the counters tell of the continued page", async || {
        let list = format!("/clusters?size=100&continue={token}");
        let continued = api.get(&list).await;
        assert_eq!(continued.items().len(), 100, "{}", continued.body);
        pages += 1;
        after = counters().await;
        after.1 > before.1
    })
    .await;
    assert_eq!(after.0, before.0, "a continued page scans the table");
    let read = after.2 - before.2;
    assert!(read <= 101 * pages, "{read} entries for {pages} pages");
}

#[tokio::test]
async fn what_pollers_ask_is_answered_by_an_index() {
    let (api, mut connection) = with_many_clusters().await;
    let rare = usize::try_from(CLUSTERS / 1000).unwrap();
    let (table_scans_before, before) = scans(&mut connection).await;
    for (text, count) in [
        // The template is not reconciled, either, but in no shard.
        (
            "status.conditions.Reconciled = 'False' and labels.shard = '3'",
            rare,
        ),
        (
            "status.conditions.Reconciled in ('False', 'Unknown')",
            rare + 1,
        ),
        (
            "status.conditions.Reconciled.last_updated_time < '2026-01-01T10:00:01Z'",
            rare + 1,
        ),
        (
            "status.conditions.Reconciled.last_transition_time > '2026-01-01T12:00:00Z'",
            rare,
        ),
        (
            "status.conditions.LastKnownReconciled.observed_generation < 2 and labels.env = 'prod'",
            rare,
        ),
        ("labels.shard = '77' and name like 'many-1977%'", 2),
        ("labels.shard in ('77', '78') and generation > 1", 0),
        ("name = 'many-77'", 1),
        ("name in ('many-77', 'many-78')", 2),
        ("name like 'many-1234%'", 11),
        ("id = '0190a6f0-1c2b-7def-8123-456789abcdef'", 0),
    ] {
        assert_eq!(names(&api, "/clusters", text).await.len(), count, "{text}");
    }
    let used = |after: &[(String, i64)], name: &str| {
        let pairs = before.iter().zip(after);
        pairs.filter(|(_, a)| a.0 == name).any(|(b, a)| b.1 < a.1)
    };
    let mut unused = INDEXES.to_vec();
    let mut table_scans = table_scans_before;
    until("the database tells of its scans", async || {
        // It does so once a second, when there is something to do.
        api.get("/audit?size=1").await;
        let (count, after) = scans(&mut connection).await;
        table_scans = count;
        unused.retain(|index| !used(&after, index));
        unused.is_empty()
    })
    .await;
    assert_eq!(table_scans, table_scans_before, "a search scans the table");
}

const INDEXES: [&str; 6] = [
    "resources_labels_and_states",
    "resources_last_known_generation",
    "resources_name",
    "resources_pkey",
    "resources_reconciled_transition",
    "resources_reconciled_updated",
];
