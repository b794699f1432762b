//! An owner of nearly all resources, to which nearly all links lead, makes nothing slower for others.

use std::time::Duration;

use sqlx::Connection as _;
use sqlx::postgres::PgConnection;

use crate::support::{TestApi, until};

/// More rows than the planner reads one by one without a reason.
const CHILDREN: i32 = 20_000;
/// After five times the server keeps a plan.
const DELETIONS: usize = 12;
const ADAPTERS: &[&str] = &["validation", "dns", "pullsecret", "hypershift"];

const CROWD: &str = "
    INSERT INTO resources (id, owner_id, created_at, updated_at, generation, kind, name, created_by, updated_by, spec)
    SELECT gen_random_uuid(), t.id, t.created_at, t.updated_at, 1, 'NodePool', 'pool-' || n, 'a', 'a', '{}'
    FROM resources t, generate_series(1, $1) n WHERE t.name = 'crowded'";
const LINKS: &str = "
    INSERT INTO resource_references (source_id, target_id, ref_type, target_kind)
    SELECT id, owner_id, 'next', 'Cluster' FROM resources WHERE owner_id IS NOT NULL AND $1 > 0";

/// How often each table was scanned.
const TABLE_SCANS: &str = "SELECT relname::text, seq_scan FROM pg_stat_user_tables
    WHERE relname IN ('resources', 'resource_references') ORDER BY 1";
/// How often the indexes were read that dependents are found by.
const BY_INDEX: &str = "SELECT min(idx_scan) FROM pg_stat_user_indexes
    WHERE indexrelname IN ('resources_newest_of_owner', 'resource_references_target')";

async fn table_scans(connection: &mut PgConnection) -> Vec<(String, i64)> {
    let counters = sqlx::query_as(TABLE_SCANS).fetch_all(connection).await;
    counters.unwrap()
}

#[tokio::test]
async fn deletions_beside_a_crowded_owner_scan_no_table() {
    let api = TestApi::spawn().await;
    api.cluster("crowded").await;
    let mut connection = api.database.connect().await;
    for sql in [CROWD, LINKS] {
        let query = sqlx::query(sql).bind(CHILDREN);
        query.execute(&mut connection).await.unwrap();
    }
    for sql in [
        "VACUUM ANALYZE resources",
        "VACUUM ANALYZE resource_references",
    ] {
        sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    }
    // Its end tells the counters what it has read.
    connection.close().await.unwrap();
    let mut connection = api.database.connect().await;
    let mut before = table_scans(&mut connection).await;
    // They are sent with a delay.
    until("the counters stand still", async || {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let earlier = std::mem::replace(&mut before, table_scans(&mut connection).await);
        before == earlier
    })
    .await;
    let used = api.count(BY_INDEX).await;
    for number in 0..DELETIONS {
        let cluster = api.cluster(&format!("alone-{number}")).await;
        api.deleted(&cluster).await;
        // With the last report it is removed, once it is seen to have no children.
        api.finalize(&cluster, ADAPTERS, 2).await;
        assert!(!api.has(&cluster).await);
    }
    let least = i64::try_from(DELETIONS).unwrap();
    until("the database has counted its scans", async || {
        // It does so once a second, when there is something to do.
        let cluster = api.cluster("another").await;
        api.deleted(&cluster).await;
        api.finalize(&cluster, ADAPTERS, 2).await;
        api.count(BY_INDEX).await >= used + least
    })
    .await;
    assert_eq!(table_scans(&mut connection).await, before);
}
