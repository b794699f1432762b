//! The schema of tenants under a program that knows none, and resources that change hands.

use sqlx::AssertSqlSafe;
use sqlx::postgres::PgConnection;

use super::kinds;
use crate::support::{ACME, BETA, TestApi, TestDatabase, Walls};

const TENANCY: [&str; 3] = [
    "20261121133000_tenancy.sql",
    "20261121133001_audit_tenancy.sql",
    "20261121133002_audit_of_tenant.sql",
];

/// Statements of the program before, as its connections have prepared them.
const LIST: &str = "SELECT total.count AS total, e.* FROM (SELECT count(*) FROM audit WHERE true) total
    LEFT JOIN (SELECT * FROM audit WHERE true ORDER BY sequence DESC LIMIT $1) e ON true ORDER BY e.sequence DESC";
const CREATE: &str = "WITH made AS (
        INSERT INTO resources (id, kind, name, spec, generation, created_at, created_by, updated_at, updated_by)
        VALUES (gen_random_uuid(), 'Cluster', $1, '{}', 1, now(), 'a', now(), 'a') RETURNING id
    )
    INSERT INTO audit (at, actor, request_id, action, kind, resource_id, name, generation_after)
    SELECT now(), 'a', 'r', 'create', 'Cluster', id, $1, 1 FROM made";
const EXPIRE: &str =
    "DELETE FROM audit WHERE sequence IN (SELECT sequence FROM audit WHERE name = $1)";

async fn apply(connection: &mut PgConnection, file: &str) {
    let path = format!("{}/migrations/{file}", env!("CARGO_MANIFEST_DIR"));
    let sql = std::fs::read_to_string(path).unwrap();
    let applied = sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection).await;
    applied.unwrap();
}

/// Creates a resource and lists the trail; gives how long that is.
async fn work(connection: &mut PgConnection, name: &str) -> usize {
    let create = sqlx::query(CREATE).bind(name).execute(&mut *connection);
    assert_eq!(create.await.unwrap().rows_affected(), 1);
    let list = sqlx::query(LIST).bind(100_i64).fetch_all(connection).await;
    list.unwrap().len()
}

#[tokio::test]
async fn the_program_before_goes_on_with_what_it_has_prepared() {
    let database = TestDatabase::create_empty().await;
    let mut migrating = database.connect().await;
    let folder = format!("{}/migrations", env!("CARGO_MANIFEST_DIR"));
    let files = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<String> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .filter(|file| &**file < TENANCY[0])
        .collect();
    files.sort();
    for file in &files {
        apply(&mut migrating, file).await;
    }
    let mut before = database.connect().await;
    assert_eq!(work(&mut before, "one").await, 1);
    assert_eq!(work(&mut before, "two").await, 2);
    for (number, file) in (3..).zip(TENANCY) {
        apply(&mut migrating, file).await;
        assert_eq!(work(&mut before, file).await, number);
    }
    let retention = "SELECT set_config('hyperfleet.audit_retention', 'on', false)";
    sqlx::query(retention).execute(&mut before).await.unwrap();
    let expired = sqlx::query(EXPIRE).bind("one").execute(&mut before).await;
    assert_eq!(expired.unwrap().rows_affected(), 1);
    assert_eq!(work(&mut before, "last").await, 5);
}

#[tokio::test]
async fn a_resource_that_changes_hands_is_counted_where_it_is() {
    let before = TestApi::spawn_with(&kinds()).await;
    for name in ["one", "two", "three"] {
        before.cluster(name).await;
    }
    let registry = hyperfleet::domain::entity_config::registry(&kinds()).unwrap();
    let database = TestDatabase::at(before.database.options());
    let api = TestApi::again_for(registry, database, Walls::Up);
    let (acme, beta) = (api.speaking(ACME), api.speaking(BETA));
    let mut connection = api.database.connect().await;
    let mut give = async |sql: &'static str| {
        let given = sqlx::query(sql).execute(&mut connection).await.unwrap();
        let mut totals = Vec::new();
        for api in [&acme, &beta, &before] {
            let list = api.get("/clusters").await;
            assert_eq!(list.body["total"], list.items().len());
            totals.push(list.items().len());
        }
        (given.rows_affected(), totals)
    };
    let to_acme = "UPDATE resources SET tenancy = '{\"org\": \"acme\"}' WHERE name <> 'three'";
    assert_eq!(give(to_acme).await, (2, vec![2, 0, 3]));
    assert_eq!(give(to_acme).await, (2, vec![2, 0, 3]));
    let to_beta = "UPDATE resources SET tenancy = '{\"org\": \"beta\"}' WHERE name <> 'one'";
    assert_eq!(give(to_beta).await, (2, vec![1, 2, 3]));
    let to_nobody = "UPDATE resources SET tenancy = '{}'";
    assert_eq!(give(to_nobody).await, (3, vec![0, 0, 3]));
}
