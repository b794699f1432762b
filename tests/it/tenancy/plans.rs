//! One tenant among many is served by indexes: no statement reads what all of them have.

use serde_json::{Value, json};
use sqlx::Connection as _;
use sqlx::postgres::PgConnection;

use super::kinds;
use crate::support::{TestApi, Walls, until};

/// So many tenants, each with so many clusters; every tenth cluster of every tenth tenant is finalizing.
const TENANTS: i32 = 200;
const CLUSTERS: i32 = 100;

const SEED: &str = "
    INSERT INTO resources (id, created_at, updated_at, generation, kind, name, created_by, updated_by,
                           tenancy, labels, conditions, spec, deleted_at, deleted_by)
    SELECT gen_random_uuid(), t.created_at + n * interval '1 ms', t.updated_at, t.generation, t.kind,
           'many-' || n, t.created_by, t.updated_by,
           jsonb_build_object('org', 'org-' || o), jsonb_build_object('shard', (n % 10)::text), t.conditions,
           t.spec, d.at, CASE WHEN d.at IS NULL THEN NULL ELSE 'nobody' END
    FROM resources t, generate_series(1, $1) o, generate_series(1, $2) n
    CROSS JOIN LATERAL (SELECT CASE WHEN o % 10 = 0 AND n % 10 = 0 THEN now() END AS at) d
    WHERE t.name = 'template'";

const TRAIL: &str = "
    INSERT INTO audit_entries (at, actor, request_id, action, kind, resource_id, name, generation_after, tenancy)
    SELECT created_at, created_by, 'seed', 'create', kind, id, name, 1, tenancy FROM resources
    WHERE name <> 'template'";

/// How often tables were scanned, and how often each index was used.
async fn scans(connection: &mut PgConnection) -> (Vec<(String, i64)>, Vec<(String, i64)>) {
    let tables = "SELECT relname::text, seq_scan FROM pg_stat_user_tables
                  WHERE relname IN ('audit_entries', 'resources') ORDER BY 1";
    let indexes = "SELECT indexrelname::text, idx_scan FROM pg_stat_user_indexes
                   WHERE relname IN ('audit_entries', 'resources', 'tenant_resource_counts') ORDER BY 1";
    let tables = sqlx::query_as(tables).fetch_all(&mut *connection).await;
    let indexes = sqlx::query_as(indexes).fetch_all(connection).await;
    (tables.unwrap(), indexes.unwrap())
}

async fn with_many_tenants() -> (TestApi, PgConnection) {
    let api = TestApi::spawn_for(&kinds(), Walls::Up).await;
    let tenant = api.speaking(&[("x-org", "org-20")]);
    tenant.cluster("template").await;
    let mut connection = api.database.connect().await;
    for (sql, binds) in [(SEED, vec![TENANTS, CLUSTERS]), (TRAIL, vec![])] {
        let mut query = sqlx::query(sql);
        for bind in binds {
            query = query.bind(bind);
        }
        query.execute(&mut connection).await.unwrap();
    }
    for table in [
        "VACUUM ANALYZE resources",
        "VACUUM ANALYZE audit_entries",
        "VACUUM ANALYZE tenant_resource_counts",
    ] {
        let analyze = sqlx::raw_sql(table);
        analyze.execute(&mut connection).await.unwrap();
    }
    // Its end tells the counters what it has read.
    connection.close().await.unwrap();
    let connection = tenant.database.connect().await;
    (tenant, connection)
}

/// Everything that a tenant asks for, again and again: after five times the server keeps a plan.
async fn ask_for_everything(api: &TestApi, round: usize) {
    let list = api.get("/clusters?size=50").await;
    let token = list.body["continue"].as_str().unwrap().to_owned();
    let clusters = 1 + CLUSTERS - CLUSTERS / 10;
    let every = 1 + CLUSTERS;
    for (path, total) in [
        ("/clusters".to_owned(), clusters),
        (format!("/clusters?size=50&continue={token}"), clusters),
        ("/clusters?page=2&size=50".to_owned(), clusters),
        ("/clusters?includeDeleted=true".to_owned(), every),
        ("/resources?kind=Cluster&size=1".to_owned(), clusters),
        ("/clusters?search=name%3D'many-7'".to_owned(), 1),
        ("/clusters?search=labels.shard%3D'7'&size=1".to_owned(), 10),
        (
            "/clusters?search=generation%3D1&size=1".to_owned(),
            clusters,
        ),
    ] {
        let answer = api.get(&path).await;
        assert_eq!(answer.body["total"], total, "{path}: {}", answer.body);
    }
    // Some more each round.
    for path in ["/resources", "/resources?includeDeleted=true", "/audit"] {
        let total = api.get(path).await.body["total"].as_i64().unwrap();
        assert!(total >= i64::from(clusters), "{path}: {total}");
    }
    let id = list.column("id")[0].to_owned();
    let path = format!("/clusters/{id}");
    let trail = api.get(&format!("/audit?resource_id={id}")).await;
    assert_ne!(trail.body["total"], 0);
    assert_eq!(api.get(&path).await.status, 200);
    let pool = api.nodepool(&path, &format!("pool-{round}")).await;
    assert_eq!(api.get(&pool).await.status, 200);
    assert_eq!(api.get(&format!("{path}/nodepools")).await.status, 200);
    assert_eq!(api.report(&pool, "dns", 1, &[]).await.status, 201);
    let link = super::addon(&format!("addon-{round}"), &id);
    let addon = api.post("/addons", link).await;
    let filter = format!("/addons?ref_type=cluster&ref_target_id={id}");
    assert_ne!(api.get(&filter).await.body["total"], 0);
    let addon = format!("/addons/{}", addon.id());
    let labels = json!({"labels": {"a": "b"}});
    assert_eq!(api.patch(&addon, labels).await.status, 200);
    api.deleted(&addon).await;
    api.finalize(&addon, &["dns"], 3).await;
    assert_eq!(api.send("GET", &addon, Value::Null).await.status, 404);
}

#[tokio::test]
async fn requests_of_one_of_many_tenants_scan_no_table() {
    let (api, mut connection) = with_many_tenants().await;
    let mut before = scans(&mut connection).await;
    // Reads of the seeding are counted with a delay.
    until("the counters stand still", async || {
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        let earlier = std::mem::replace(&mut before, scans(&mut connection).await);
        before == earlier
    })
    .await;
    for round in 0..12 {
        ask_for_everything(&api, round).await;
    }
    let mut unused = vec![
        "audit_tenant",
        "resources_finalizing_of_tenant",
        "resources_newest_of_tenant",
        "resources_newest_of_tenant_kind",
        "tenant_resource_counts_pkey",
    ];
    let mut round = 12;
    let mut tables = Vec::new();
    until("the database tells of its scans", async || {
        // It does so once a second, when there is something to do.
        ask_for_everything(&api, round).await;
        round += 1;
        let (table_scans, indexes) = scans(&mut connection).await;
        tables = table_scans;
        let used = |name: &str| {
            let pairs = before.1.iter().zip(&indexes);
            pairs.filter(|(_, a)| a.0 == name).any(|(b, a)| b.1 < a.1)
        };
        unused.retain(|name| !used(name));
        unused.is_empty()
    })
    .await;
    assert_eq!(tables, before.0, "a table was scanned");
}
