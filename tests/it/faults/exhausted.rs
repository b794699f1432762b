//! No connection to the database is available: every client gets 503, after one wait at most.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyperfleet_domain::entity_config;
use hyperfleet_storage::{ConnectionLifetime, Settings, Store};
use serde_json::{Value, json};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, Connection as _};
use tokio::time::sleep;

use super::assert_unavailable;
use crate::support::{TestApi, TestDatabase, until};

/// How long a connection is waited for: twice as long must be told from once on a busy machine.
const WAIT: Duration = Duration::from_secs(4);

/// A server that connects as a user of its own.
fn spawn(database: TestDatabase, connect: PgConnectOptions) -> Arc<TestApi> {
    let store = Store::new(Settings {
        connect,
        connections_max: 4,
        acquire_seconds_max: WAIT.as_secs(),
        statement_milliseconds_max: 30_000,
        lifetime: ConnectionLifetime::default(),
    });
    let registry = entity_config::registry(&entity_config::built_in()).unwrap();
    Arc::new(TestApi::spawn_on(registry, database, store, false))
}

/// Sends a request that must be refused within one wait.
async fn refused(api: &TestApi, method: &str, path: &str, body: Value) {
    let since = Instant::now();
    assert_unavailable(&api.send(method, path, body).await, method);
    let took = since.elapsed();
    assert!(took < WAIT * 7 / 4, "{method} {path} took {took:?}");
}

const CLUSTER: &str = "/clusters/019b7868-8e00-7000-8000-000000000001";

#[tokio::test]
async fn a_connection_that_does_not_come_about_is_waited_for_once() {
    // Takes connections, by the system's hand, and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://nobody@{}/nothing", silent.local_addr().unwrap());
    let options: PgConnectOptions = url.parse().unwrap();
    let api = spawn(TestDatabase::at(options.clone()), options);
    let new = json!({"kind": "Cluster", "name": "abc", "spec": {}});
    let mut all = Vec::new();
    // Some come while others wait already: they do not wait for the others' wait to end as well.
    for number in 0..12 {
        let (api, new) = (api.clone(), new.clone());
        all.push(tokio::spawn(async move {
            sleep(WAIT * number / 8).await;
            refused(&api, "GET", CLUSTER, Value::Null).await;
            if number == 0 {
                refused(&api, "GET", "/clusters", Value::Null).await;
                refused(&api, "PATCH", CLUSTER, json!({"spec": {}})).await;
                refused(&api, "POST", "/clusters", new).await;
            }
        }));
    }
    for one in all {
        one.await.unwrap();
    }
}

#[tokio::test]
async fn a_full_postgresql_is_reported_and_recovered_from() {
    let database = TestDatabase::create().await;
    let mut admin = database.connect().await;
    let name = database.options().get_database().unwrap().to_owned();
    // Superusers are let in beyond any limit: the service must be another user.
    let role = format!("{name}_limited");
    let run = |sql: String| AssertSqlSafe(sql);
    let make = format!(
        "CREATE ROLE {role} LOGIN PASSWORD 'limited' CONNECTION LIMIT 1;
         GRANT ALL ON ALL TABLES IN SCHEMA public TO {role};
         GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {role}"
    );
    sqlx::raw_sql(run(make)).execute(&mut admin).await.unwrap();
    let limited = database.options().username(&role).password("limited");
    let holder = PgConnection::connect_with(&limited).await.unwrap();
    let api = spawn(database, limited);
    let since = Instant::now();
    for _ in 0..3 {
        refused(&api, "GET", CLUSTER, Value::Null).await;
        refused(&api, "GET", "/clusters", Value::Null).await;
        refused(&api, "PATCH", CLUSTER, json!({"spec": {}})).await;
        refused(&api, "PUT", &format!("{CLUSTER}/statuses"), report()).await;
    }
    assert!(since.elapsed() < WAIT, "{:?}", since.elapsed());
    holder.close().await.unwrap();
    until("the connection is free", async || {
        api.send("GET", CLUSTER, Value::Null).await.status == 404
    })
    .await;
    // The one connection is the reads' now, and there is none for anything else; unless it came free between the two
    // ways in which the last read asked for one. Then it is everybody's.
    let list = api.send("GET", "/clusters", Value::Null).await;
    if list.status != 200 {
        assert_unavailable(&list, "GET /clusters");
    }
    assert_eq!(api.send("GET", CLUSTER, Value::Null).await.status, 404);
    let remove = format!("DROP OWNED BY {role}; DROP ROLE {role}");
    let removed = sqlx::raw_sql(run(remove)).execute(&mut admin).await;
    removed.unwrap();
}

fn report() -> Value {
    let condition = |kind: &str| json!({"type": kind, "status": "True"});
    let conditions = ["Available", "Applied", "Health"].map(condition);
    json!({"adapter": "dns", "observed_generation": 1, "conditions": conditions})
}
