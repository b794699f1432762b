//! What becomes of requests when something breaks: all or nothing, an honest answer, and service
//! again as soon as what broke is whole.

mod attempts;
mod balancer;
mod clients;
mod connections;
mod crowds;
mod cut;
mod database;
mod dev;
mod exhausted;
mod fleet;
mod frozen;
mod healthcheck;
mod killed;
mod large_pages;
mod listeners;
mod load;
mod locks;
mod logs;
mod migrations;
mod ordinary_role;
mod outgoing_traces;
mod pooler;
pub(crate) mod program;
mod proxies;
mod read_only;
mod restart;
mod rolling;
mod rules;
mod schemas;
mod searches;
mod secure_traces;
mod shutdown;
mod silent;
mod stalled;
mod startup;
mod tenancy;
mod tls;
mod tls_clients;
pub(crate) mod tokens;
mod traces;
mod unconnectable;
mod unsuitable;
mod upgrade;
mod variables;

use serde_json::json;
use sqlx::postgres::PgConnection;

use crate::support::{Answer, Problem as _, TestApi, TestDatabase, until};

/// Checks that the answer only asks the client to try again later.
#[track_caller]
fn assert_unavailable(answer: &Answer, what: &str) {
    assert_eq!(answer.status, 503, "{what}: {}", answer.body);
    assert_eq!(answer.code(), "SVC-001", "{what}");
    assert_eq!(answer.detail(), "Database connection unavailable", "{what}");
    let wait = answer.header("retry-after").expect("Retry-After");
    assert!(wait.parse::<u32>().unwrap() > 0, "{what}");
}

/// Sends one request of each usual sort: about this cluster, or about one that it makes. `number` is another one each time.
async fn assert_requests_succeed(api: &TestApi, cluster: &str, number: usize) {
    let adapter = format!("adapter-{number}");
    let answer = api.report(cluster, &adapter, 1, &[]).await;
    assert_eq!(answer.status, 201, "report {number}: {}", answer.body);
    let answer = api.get(&format!("{cluster}?fields=name")).await;
    assert_eq!(answer.status, 200, "read {number}: {}", answer.body);
    let answer = api.get("/clusters?size=3&fields=name").await;
    assert_eq!(answer.status, 200, "list {number}: {}", answer.body);
    let labels = json!({"labels": {"round": number.to_string()}});
    let answer = api.patch(cluster, labels).await;
    assert_eq!(answer.status, 200, "patch {number}: {}", answer.body);
    let new = json!({"kind": "Cluster", "name": format!("new-{number}"), "spec": {}});
    let answer = api.post("/clusters", new).await;
    assert_eq!(answer.status, 201, "create {number}: {}", answer.body);
    let answer = api.delete(&format!("/clusters/{}", answer.id())).await;
    assert_eq!(answer.status, 202, "delete {number}: {}", answer.body);
}

/// Waits until no other client is connected: everything in progress has ended.
async fn until_only_client(connection: &mut PgConnection) {
    let others = "SELECT count(*) FROM pg_stat_activity
                  WHERE datname = current_database() AND pid <> pg_backend_pid()";
    until("nobody else is connected", async || {
        let query = sqlx::query_scalar::<_, i64>(others);
        query.fetch_one(&mut *connection).await.unwrap() == 0
    })
    .await;
}

/// Everything that is stored, as text.
async fn contents(connection: &mut PgConnection) -> String {
    let everything = "SELECT concat(
        (SELECT jsonb_agg(to_jsonb(r) ORDER BY r.id) FROM resources r),
        (SELECT jsonb_agg(to_jsonb(r) ORDER BY r.resource_id, r.adapter) FROM adapter_reports r),
        (SELECT jsonb_agg(to_jsonb(a) ORDER BY a.sequence) FROM audit_entries a),
        (SELECT jsonb_object_agg(kind, total) FROM
            (SELECT kind, sum(count) AS total FROM resource_counts GROUP BY kind) c))";
    let query = sqlx::query_scalar(everything);
    query.fetch_one(connection).await.unwrap()
}

/// An open transaction that holds the table of resources. Requests wait for it until the time of a statement is up;
/// for a single row they wait four seconds.
pub(crate) async fn hold_resources(database: &TestDatabase) -> PgConnection {
    let mut holder = database.connect().await;
    let hold = "BEGIN; LOCK TABLE resources";
    sqlx::raw_sql(hold).execute(&mut holder).await.unwrap();
    holder
}

/// An open transaction that holds a resource's row, as a stuck client would.
pub(crate) async fn hold_row(database: &TestDatabase, path: &str) -> PgConnection {
    let id: uuid::Uuid = path.rsplit('/').next().unwrap().parse().unwrap();
    let mut holder = database.connect().await;
    sqlx::raw_sql("BEGIN").execute(&mut holder).await.unwrap();
    sqlx::query("SELECT FROM resources WHERE id = $1 FOR UPDATE")
        .bind(id)
        .execute(&mut holder)
        .await
        .unwrap();
    holder
}
