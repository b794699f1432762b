//! Sessions that may not write, as those that a failover leaves behind: made while the server was a
//! standby, or read-only for maintenance, and kept although it is not any more.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use hyperfleet_domain::entity_config;
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;
use sqlx::postgres::PgConnection;

use super::assert_unavailable;
use crate::support::{Answer, TestApi, TestDatabase, assert_sound, linked, root};

/// More than there are connections, so that all of them are used.
const AT_ONCE: usize = 16;

/// Says what sessions from now on may do; those that there are stay as they are.
async fn set(connection: &mut PgConnection, database: &TestDatabase, is_read_only: bool) {
    let name = database.options().get_database().unwrap().to_owned();
    let sql = format!("ALTER DATABASE {name} SET default_transaction_read_only = {is_read_only}");
    let set = sqlx::raw_sql(AssertSqlSafe(sql));
    set.execute(connection).await.unwrap();
}

/// The sessions of the service that have been asked for something.
async fn sessions(connection: &mut PgConnection) -> BTreeSet<i32> {
    let pids = "SELECT pid FROM pg_stat_activity
                WHERE datname = current_database() AND application_name = 'hyperfleet-api'";
    let pids = sqlx::query_scalar(pids).fetch_all(connection).await;
    pids.unwrap().into_iter().collect()
}

/// Creates clusters of these names at once.
async fn create(api: &TestApi, name: &str) -> Vec<Answer> {
    let requests = (0..AT_ONCE).map(|number| {
        let name = format!("{name}-{number}");
        api.post(
            "/clusters",
            json!({"kind": "Cluster", "name": name, "spec": {}}),
        )
    });
    join_all(requests).await
}

async fn lists(api: &TestApi) {
    for answer in join_all((0..AT_ONCE).map(|_| api.get("/clusters"))).await {
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn read_only_sessions_are_replaced_at_the_first_write() {
    let database = TestDatabase::create().await;
    let mut direct = database.connect().await;
    let registry = entity_config::registry(&entity_config::built_in()).unwrap();
    let store = database.store();
    let api = TestApi::spawn_on(registry, database, store, false);
    let cluster = api.cluster("before").await;
    assert_eq!(api.report(&cluster, "dns", 1, &[]).await.status, 201);
    // What was there before the switch is given up, so that all sessions are of the standby.
    let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
               WHERE datname = current_database() AND pid <> pg_backend_pid()";
    set(&mut direct, &api.database, true).await;
    sqlx::query(end).execute(&mut direct).await.unwrap();
    // The first of each thread finds its connections gone.
    for _ in 0..AT_ONCE {
        api.get("/clusters").await;
        api.get(&cluster).await;
    }
    lists(&api).await;
    for answer in create(&api, "standby").await {
        assert_unavailable(&answer, "POST");
    }
    let change = json!({"labels": {"a": "b"}});
    for (method, body) in [("PATCH", change), ("DELETE", Value::Null)] {
        let answer = api.send(method, &cluster, body).await;
        assert_unavailable(&answer, method);
    }
    lists(&api).await;
    let of_standby = sessions(&mut direct).await;
    assert!(!of_standby.is_empty());
    set(&mut direct, &api.database, false).await;
    // Now it may be written to; the sessions at hand do not know that yet.
    let mut refused = 0;
    for round in 0.. {
        let answers = create(&api, &format!("after-{round}")).await;
        let (taken, not): (Vec<_>, Vec<_>) = answers.iter().partition(|a| a.status == 201);
        for answer in not {
            assert_unavailable(answer, "POST");
            refused += 1;
        }
        if taken.len() == AT_ONCE {
            break;
        }
        // Each write that is refused takes a session along, and all that idle beside it.
        assert!(refused <= of_standby.len(), "{refused} of {of_standby:?}");
    }
    for answer in create(&api, "later").await {
        assert_eq!(answer.status, 201, "{}", answer.body);
    }
    assert_eq!(api.get(&cluster).await.body["generation"], 1);
    assert_sound(&mut direct, &entity_config::built_in()).await;
}

/// Requests that are transactions roll back after the refusal, which succeeds on such a server, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_gives_up_a_session_that_may_only_read() {
    let database = TestDatabase::create().await;
    let mut direct = database.connect().await;
    let mut kinds = entity_config::built_in();
    kinds.push(linked(
        &[("peer", "Cluster", 0, 3)],
        root("Linked", "linkeds", &[]),
    ));
    let registry = entity_config::registry(&kinds).unwrap();
    let store = database.store();
    let api = TestApi::spawn_on(registry, database, store, false);
    let cluster = api.cluster("before").await;
    let free = api.cluster("free").await;
    let deleted = api.cluster("deleted").await;
    api.deleted(&deleted).await;
    let linked = api.make("/linkeds", "Linked", "linked").await;
    let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
               WHERE datname = current_database() AND pid <> pg_backend_pid()";
    let id = cluster.rsplit('/').next().unwrap();
    let references = json!({"references": {"peer": [{"id": id, "kind": "Cluster"}]}});
    let new = json!({"kind": "Cluster", "name": "keyed", "spec": {}});
    let lease = json!({"holder": "a", "duration_seconds": 60});
    let requests = [
        ("PUT", "/leases/dns", lease, None),
        ("POST", "/clusters", new, Some("a-key")),
        ("PATCH", &linked, references, None),
        ("DELETE", &format!("{free}?dryRun=true"), Value::Null, None),
        (
            "POST",
            &format!("{deleted}/force-delete"),
            json!({"reason": "stuck"}),
            None,
        ),
    ];
    for (method, path, body, key) in requests {
        let send = async || {
            let mut request = api
                .client
                .request(method.parse().unwrap(), format!("{}{path}", api.base));
            if let Some(key) = key {
                request = request.header("idempotency-key", key);
            }
            if !body.is_null() {
                request = request.body(body.to_string());
            }
            Answer::of(request.send().await.unwrap()).await
        };
        set(&mut direct, &api.database, true).await;
        sqlx::query(end).execute(&mut direct).await.unwrap();
        let mut refused = 0;
        while refused < 3 {
            let answer = send().await;
            assert_unavailable(&answer, path);
            refused += 1;
        }
        set(&mut direct, &api.database, false).await;
        // The session at hand may not write yet; it is given up with the next refusal.
        let mut answer = send().await;
        if answer.status == 503 {
            answer = send().await;
        }
        assert!(answer.status < 300, "{method} {path}: {}", answer.body);
    }
    assert_sound(&mut direct, &kinds).await;
}
