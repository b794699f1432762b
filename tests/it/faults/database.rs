//! A database that is slow, full, or not what it should be.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hyperfleet_domain::entity_config;
use hyperfleet_storage::{ConnectionLifetime, Settings, Store};
use serde_json::json;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _};

use super::searches::{large_text, slow_pattern};
use super::{assert_unavailable, hold_resources, hold_row, until};
use crate::support::{Problem as _, TestApi, TestDatabase, WAITING};

async fn spawn(
    connections_max: usize,
    acquire_seconds_max: u64,
    statement_milliseconds_max: u64,
) -> Arc<TestApi> {
    let database = TestDatabase::create().await;
    let store = Store::new(Settings {
        connect: database.options(),
        connections_max,
        acquire_seconds_max,
        statement_milliseconds_max,
        lifetime: ConnectionLifetime::default(),
    });
    let registry = entity_config::registry(&entity_config::built_in()).unwrap();
    Arc::new(TestApi::spawn_on(registry, database, store, false))
}

#[tokio::test]
async fn without_a_free_connection_a_request_gets_retry_after() {
    let api = spawn(1, 1, 30_000).await;
    let cluster = api.cluster("abc").await;
    let mut holder = hold_resources(&api.database).await;
    let read = tokio::spawn({
        let (api, cluster) = (api.clone(), cluster.clone());
        async move { api.get(&cluster).await }
    });
    until("the read waits for the table", async || {
        api.count(WAITING).await == 1
    })
    .await;
    let since = Instant::now();
    assert_unavailable(&api.get(&cluster).await, "GET");
    assert_unavailable(&api.delete(&cluster).await, "DELETE");
    assert!(
        since.elapsed() < Duration::from_secs(10),
        "{:?}",
        since.elapsed()
    );
    sqlx::raw_sql("COMMIT").execute(&mut holder).await.unwrap();
    assert_eq!(read.await.unwrap().status, 200);
    assert_eq!(api.delete(&cluster).await.status, 202);
}

#[tokio::test]
async fn a_statement_over_its_timeout_is_cancelled() {
    let api = spawn(2, 20, 1_000).await;
    let cluster = api.cluster("abc").await;
    let pool = api.nodepool(&cluster, "pool").await;
    let mut holder = hold_row(&api.database, &cluster).await;
    let change = json!({"spec": {"a": 1}});
    assert_unavailable(&api.patch(&cluster, change.clone()).await, "PATCH");
    assert_unavailable(&api.report(&cluster, "dns", 1, &[]).await, "PUT");
    assert_unavailable(&api.delete(&cluster).await, "DELETE");
    let new = json!({"kind": "NodePool", "name": "other", "spec": {}});
    assert_unavailable(
        &api.post(&format!("{cluster}/nodepools"), new).await,
        "POST",
    );
    assert_eq!(api.get(&pool).await.status, 200);
    sqlx::raw_sql("ROLLBACK")
        .execute(&mut holder)
        .await
        .unwrap();
    let found = api.get(&cluster).await;
    assert_eq!(found.body["generation"], 1);
    assert_eq!(
        api.get(&format!("{cluster}/statuses")).await.body["total"],
        0
    );
    assert_eq!(api.patch(&cluster, change).await.status, 200);
}

#[tokio::test]
async fn an_internal_error_does_not_expose_its_cause() {
    let api = spawn(2, 20, 20_000).await;
    let cluster = api.cluster("abc").await;
    let mut direct = api.database.connect().await;
    for (table, method, path, body) in [
        ("resources", "GET", cluster.clone(), json!(null)),
        ("resources", "GET", "/clusters".into(), json!(null)),
        ("resources", "DELETE", cluster.clone(), json!(null)),
        (
            "adapter_reports",
            "GET",
            format!("{cluster}/statuses"),
            json!(null),
        ),
        ("audit_entries", "GET", "/audit".into(), json!(null)),
        (
            "audit_entries",
            "POST",
            "/clusters".into(),
            json!({"kind": "Cluster", "name": "def", "spec": {}}),
        ),
        (
            "audit_entries",
            "PATCH",
            cluster.clone(),
            json!({"spec": {"a": 1}}),
        ),
        ("audit_entries", "DELETE", cluster.clone(), json!(null)),
        ("leases", "GET", "/leases/dns".into(), json!(null)),
        (
            "leases",
            "PUT",
            "/leases/dns".into(),
            json!({"holder": "a", "duration_seconds": 1}),
        ),
        (
            "leases",
            "DELETE",
            "/leases/dns?holder=a".into(),
            json!(null),
        ),
    ] {
        let rename =
            |from: String, to: String| AssertSqlSafe(format!("ALTER TABLE {from} RENAME TO {to}"));
        let hidden = format!("hidden_{table}");
        let hide = rename(table.to_owned(), hidden.clone());
        sqlx::raw_sql(hide).execute(&mut direct).await.unwrap();
        let answer = api.send(method, &path, body).await;
        sqlx::raw_sql(rename(hidden, table.to_owned()))
            .execute(&mut direct)
            .await
            .unwrap();
        let what = format!("{method} {path} without {table}: {}", answer.body);
        assert_eq!((answer.status, answer.code()), (500, "INT-001"), "{what}");
        assert_eq!(answer.detail(), "Unspecified error", "{what}");
        let shown = String::from_utf8_lossy(&answer.bytes).to_lowercase();
        for word in [
            "relation", "sql", "postgres", "audit_", "cannot", "exist", "column",
        ] {
            assert!(!shown.contains(word), "{word} in {what}");
        }
    }
    // Nothing of it was kept, and the connections are as good as before.
    let found = api.get(&cluster).await;
    assert_eq!((found.status, &found.body["generation"]), (200, &json!(1)));
    assert!(found.body.get("deleted_time").is_none());
    assert_eq!(api.get("/clusters").await.body["total"], 1);
    assert_eq!(api.get("/audit").await.body["total"], 1);
}

#[tokio::test]
async fn a_full_database_is_unavailable_until_it_has_room() {
    let database = TestDatabase::create().await;
    let elsewhere = database.options().database("postgres");
    let mut elsewhere = PgConnection::connect_with(&elsewhere).await.unwrap();
    let name = database.options().get_database().unwrap().to_owned();
    let allow = |is_allowed: bool| {
        AssertSqlSafe(format!(
            "ALTER DATABASE {name} ALLOW_CONNECTIONS {is_allowed}"
        ))
    };
    sqlx::raw_sql(allow(false))
        .execute(&mut elsewhere)
        .await
        .unwrap();
    let store = database.store();
    let registry = entity_config::registry(&entity_config::built_in()).unwrap();
    let api = TestApi::spawn_on(registry, database, store, false);
    assert_unavailable(&api.get("/clusters").await, "no connections");
    sqlx::raw_sql(allow(true))
        .execute(&mut elsewhere)
        .await
        .unwrap();
    assert_eq!(api.get("/clusters").await.status, 200);
}

#[tokio::test]
async fn a_slow_search_is_a_timeout_and_not_an_outage() {
    let api = spawn(2, 5, 100).await;
    let spec = json!({"text": large_text()});
    for number in 0..4 {
        let body = json!({"kind": "Cluster", "name": format!("big-{number}"), "spec": spec});
        // On a busy machine this may take longer than statements have here.
        until("it is stored", async || {
            api.post("/clusters", body.clone()).await.status == 201
        })
        .await;
    }
    let pattern = slow_pattern();
    let answer = api
        .get(&format!("/clusters?search=spec.text%20like%20'{pattern}'"))
        .await;
    assert_eq!(answer.problem(), (504, "SVC-002"), "{}", answer.body);
    assert_eq!(
        answer.detail(),
        "the list takes too long: narrow it down, or try again later"
    );
    // So may this.
    until("the database is there", async || {
        api.get("/clusters?size=1").await.status == 200
    })
    .await;
}
