//! Clients that go away in the middle of what they asked for.

use std::collections::BTreeMap;
use std::sync::Arc;

use flate2::{Compress, Compression, FlushCompress, Status};
use hyperfleet_domain::entity_config;
use hyperfleet_storage::{ConnectionLifetime, Settings, Store};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::program::Program;
use super::{hold_row, until};
use crate::support::{
    Problem as _, Random, TestApi, TestDatabase, Then, WAITING, assert_sound, http_client, sum,
};

const CONNECTIONS: usize = 3;

async fn spawn() -> TestApi {
    let database = TestDatabase::create().await;
    let store = Store::new(Settings {
        connect: database.options(),
        connections_max: CONNECTIONS,
        acquire_seconds_max: 20,
        statement_milliseconds_max: 60_000,
        lifetime: ConnectionLifetime::default(),
    });
    let registry = entity_config::registry(&entity_config::built_in()).unwrap();
    TestApi::spawn_on(registry, database, store, false)
}

/// The connection over which a request was sent.
async fn sent(api: &TestApi, method: &str, path: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(api.address()).await.unwrap();
    let length = body.len();
    let request = format!(
        "{method} /api/hyperfleet/v1{path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// Sends a request and does not wait for the answer.
async fn send_and_leave(api: &TestApi, method: &str, path: &str, body: &str, yields: usize) {
    let _stream = sent(api, method, path, body).await;
    // Some leave before the server has looked, others while it works.
    for _ in 0..yields {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leaving_clients_do_not_affect_other_requests() {
    let api = Arc::new(spawn().await);
    let mut clusters = Vec::new();
    for number in 0..8 {
        clusters.push(api.cluster(&format!("cluster-{number}")).await);
    }
    let doomed = api.cluster("doomed").await;
    let leavers: Vec<_> = (0..4_u64)
        .map(|worker| {
            let (api, clusters, doomed) = (api.clone(), clusters.clone(), doomed.clone());
            tokio::spawn(async move {
                let mut random = Random::seeded(worker);
                for number in 0..100 {
                    let cluster = &clusters[random.below(clusters.len())];
                    let name = format!("left-{worker}-{number}");
                    let new = json!({"kind": "Cluster", "name": name, "spec": {}}).to_string();
                    let change = json!({"spec": {"number": number}}).to_string();
                    let pool = json!({"kind": "NodePool", "name": format!("p{worker}-{number}"), "spec": {}}).to_string();
                    let (method, path, body) = match random.below(6) {
                        0 => ("POST", "/clusters".to_owned(), new),
                        1 => ("PATCH", cluster.clone(), change),
                        2 => ("GET", cluster.clone(), String::new()),
                        3 => ("GET", "/clusters".to_owned(), String::new()),
                        4 => ("POST", format!("{cluster}/nodepools"), pool),
                        _ => ("DELETE", doomed.clone(), String::new()),
                    };
                    send_and_leave(&api, method, &path, &body, random.below(400)).await;
                }
            })
        })
        .collect();
    // Meanwhile everybody else gets what they ask for.
    let mut rounds = 0;
    while rounds < 3 || leavers.iter().any(|leaver| !leaver.is_finished()) {
        for cluster in &clusters {
            let found = api.get(cluster).await;
            assert_eq!(found.status, 200, "{}", found.body);
            assert!(
                cluster.ends_with(found.id()),
                "{cluster} was answered with {}",
                found.id()
            );
        }
        rounds += 1;
    }
    for leaver in leavers {
        leaver.await.unwrap();
    }
    let mut direct = api.database.connect().await;
    let busy = "SELECT count(*) FROM pg_stat_activity
                WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle'";
    until("all is quiet", async || {
        let query = sqlx::query_scalar::<_, i64>(busy);
        query.fetch_one(&mut direct).await.unwrap() == 0
    })
    .await;
    assert_sound(&mut direct, &entity_config::built_in()).await;
}

#[tokio::test]
async fn clients_that_leave_while_waiting_free_a_connection() {
    let api = spawn().await;
    let held = api.cluster("held").await;
    let free = api.cluster("free").await;
    let mut holder = hold_row(&api.database, &held).await;
    let mut direct = api.database.connect().await;
    // More of them than there are connections.
    for number in 0..CONNECTIONS * 3 {
        let stream = sent(&api, "DELETE", &held, "").await;
        until("the request waits", async || {
            let query = sqlx::query_scalar::<_, i64>(WAITING);
            query.fetch_one(&mut direct).await.unwrap() > 0
        })
        .await;
        drop(stream);
        assert_eq!(api.get(&free).await.status, 200, "{number}");
    }
    sqlx::raw_sql("ROLLBACK")
        .execute(&mut holder)
        .await
        .unwrap();
    until("nobody waits", async || {
        let query = sqlx::query_scalar::<_, i64>(WAITING);
        query.fetch_one(&mut direct).await.unwrap() == 0
    })
    .await;
    assert_eq!(api.delete(&held).await.status, 202);
    assert_sound(&mut direct, &entity_config::built_in()).await;
}

/// The changes of one action that the program has counted.
async fn counted(metrics: &str, action: &str) -> i64 {
    let url = format!("http://{metrics}/metrics");
    let answer = http_client().get(url).send().await.unwrap();
    let text = answer.text().await.unwrap();
    let name = "hyperfleet_api_audit_entries_total";
    #[expect(clippy::cast_possible_truncation, reason = "a count")]
    let count = sum(&text, name, &[("action", action)]) as i64;
    count
}

#[tokio::test]
async fn a_change_is_atomic_when_its_client_disconnects() {
    let database = TestDatabase::create().await;
    let mut program = Program::serve(&database);
    let metrics = program.address("metrics").await;
    let api = program.serving(database).await;
    let mut direct = api.database.connect().await;
    let busy = "SELECT count(*) FROM pg_stat_activity
                WHERE datname = current_database() AND pid <> pg_backend_pid()
                  AND backend_type = 'client backend' AND state <> 'idle'";
    let mut in_trail = BTreeMap::from([("patch", 0), ("delete", 0)]);
    for number in 0..6 {
        for (method, action, body) in [
            ("PATCH", "patch", r#"{"spec": {"a": 1}}"#),
            ("DELETE", "delete", ""),
        ] {
            let cluster = api.cluster(&format!("left-{action}-{number}")).await;
            let mut holder = hold_row(&api.database, &cluster).await;
            let stream = sent(&api, method, &cluster, body).await;
            until("the change waits", async || api.count(WAITING).await == 1).await;
            drop(stream);
            let is_noticed = number % 3 == 0;
            if is_noticed {
                until("the server ends it", async || api.count(WAITING).await == 0).await;
            }
            let rollback = sqlx::raw_sql("ROLLBACK").execute(&mut holder).await;
            rollback.unwrap();
            until("all is quiet", async || api.count(busy).await == 0).await;
            let found = api.get(&cluster).await;
            let id = found.id();
            let trail = format!("/audit?resource_id={id}&action={action}");
            let entries = api.get(&trail).await.body["total"].as_i64().unwrap();
            let what = format!("{method} {number}: {}", found.body);
            assert_eq!(found.body["generation"], 1 + entries, "{what}");
            assert_eq!(
                found.body["spec"] != json!({}),
                action == "patch" && entries == 1,
                "{what}"
            );
            assert_eq!(
                found.body["deleted_by"].is_string(),
                action == "delete" && entries == 1,
                "{what}"
            );
            assert!(!(is_noticed && entries > 0), "{what}");
            *in_trail.get_mut(action).unwrap() += entries;
            let counted = counted(&metrics, action).await;
            assert!(counted <= in_trail[action], "{what}: {counted} counted");
        }
    }
    let before = (
        counted(&metrics, "patch").await,
        counted(&metrics, "delete").await,
    );
    let cluster = api.cluster("stayed").await;
    let patched = api.patch(&cluster, json!({"spec": {"a": 1}})).await;
    assert_eq!(
        (patched.status, api.delete(&cluster).await.status),
        (200, 202)
    );
    let after = (
        counted(&metrics, "patch").await,
        counted(&metrics, "delete").await,
    );
    assert_eq!(after, (before.0 + 1, before.1 + 1));
    assert_sound(&mut direct, &entity_config::built_in()).await;
}

#[tokio::test]
async fn who_speaks_no_http_does_not_fill_the_log() {
    let database = TestDatabase::create().await;
    let mut program = Program::serve(&database);
    let api = program.serving(database).await;
    for garbage in [
        &b"GET / HTTP/1.1\r\nbad header\x00: y\r\n\r\n"[..],
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /%00\xff HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\ncontent-length: x\r\n\r\n",
    ] {
        let answer = api.send_raw(garbage, Then::Finish).await;
        let status = answer.map_or(400, |answer| answer.status);
        assert_eq!(status, 400, "{garbage:?}");
    }
    assert_eq!(api.get("/clusters").await.status, 200);
    let said = program.output();
    assert!(!said.contains("ERROR") && !said.contains("WARN"), "{said}");
}

const MEBIBYTE: usize = 1024 * 1024;

/// A mebibyte of blanks, packed so that it can be repeated: to pack 200 of them takes half a minute in a debug build.
fn deflated_blanks() -> Vec<u8> {
    let mut bytes = Vec::with_capacity(MEBIBYTE);
    let mut deflate = Compress::new(Compression::best(), false);
    let status = deflate.compress_vec(&vec![b' '; MEBIBYTE], &mut bytes, FlushCompress::Full);
    assert!(matches!(status, Ok(Status::Ok)), "{status:?}");
    bytes
}

#[tokio::test]
async fn a_body_that_unpacks_to_200_mebibytes_takes_no_memory() {
    let database = TestDatabase::create().await;
    let mut program = Program::serve(&database);
    let api = program.serving(database).await;
    let before = program.memory_peak();
    let blanks = deflated_blanks();
    for (coding, head) in [
        ("X-Gzip", &b"\x1f\x8b\x08\0\0\0\0\0\0\xff"[..]),
        ("Deflate", b"\x78\x9c"),
    ] {
        let bomb = [head, &blanks.repeat(200)].concat();
        assert!(bomb.len() < MEBIBYTE, "{coding}: {}", bomb.len());
        let headers = format!("Content-Encoding: {coding}\r\n");
        let path = "/api/hyperfleet/v1/clusters";
        let answer = api.request_raw("POST", path, &headers, &bomb).await;
        let answer = answer.expect("an answer");
        assert_eq!((answer.status, answer.code()), (413, "LMT-002"), "{coding}");
    }
    let grown = program.memory_peak() - before;
    assert!(grown < 64 * 1024, "{grown} KiB more");
}
