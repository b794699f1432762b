//! The database is restarted while clients write.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use hyperfleet_devkit::{Durability, PrivatePostgres};
use hyperfleet_domain::entity_config;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::oneshot;

use super::load::{Load, PAUSE};
use super::program::Program;
use super::{assert_unavailable, until, until_only_client};
use crate::support::{TestApi, TestDatabase, assert_sound, store};

/// A server with persistent data, on a thread that lives as long as the server.
pub(super) struct Server {
    folder: TempDir,
    orders: mpsc::Sender<(Order, oneshot::Sender<String>)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Start,
    Stop,
}

impl Server {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_owned();
        let (orders, received) = mpsc::channel::<(Order, oneshot::Sender<String>)>();
        std::thread::spawn(move || {
            let mut running: Option<PrivatePostgres> = None;
            while let Ok((order, done)) = received.recv() {
                if let Some(server) = running.take() {
                    server.stop().unwrap();
                }
                let mut url = String::new();
                if order == Order::Start {
                    let server = PrivatePostgres::start(&path, Durability::Persistent).unwrap();
                    url = server.url("postgres");
                    running = Some(server);
                }
                done.send(url).unwrap();
            }
        });
        Self { folder, orders }
    }

    pub(super) async fn order(&self, order: Order) -> String {
        let (done, url) = oneshot::channel();
        self.orders.send((order, done)).unwrap();
        url.await.unwrap()
    }

    /// Ends it as a crash would: without a word, without writing anything down.
    fn crash(&self) {
        kill_process(self.process(), Signal::QUIT).unwrap();
    }

    /// Its first process.
    pub(super) fn process(&self) -> Pid {
        let file = self.folder.path().join("data/postmaster.pid");
        let pid = std::fs::read_to_string(file).unwrap();
        let pid = pid.lines().next().unwrap().parse().unwrap();
        Pid::from_raw(pid).unwrap()
    }

    /// Starts it, with the schema.
    pub(super) async fn start_migrated(&self) -> TestDatabase {
        let url = self.order(Order::Start).await;
        let database = TestDatabase::at(url.parse().unwrap());
        let store = store(database.options());
        store.migrate(Duration::ZERO).await.unwrap();
        store.close();
        database
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_writes_outlive_a_restart_of_the_database() {
    let server = Server::new();
    let url = server.order(Order::Start).await;
    let database = TestDatabase::at(url.parse().unwrap());
    let store = store(database.options());
    store.migrate(std::time::Duration::ZERO).await.unwrap();
    let registry = entity_config::registry(&entity_config::built_in()).unwrap();
    let api = TestApi::spawn_on(registry, database, store.clone(), false);
    let load = Arc::new(Load::on(api));
    let writers = load.start();
    load.until_acknowledged(60).await;
    server.order(Order::Stop).await;
    load.until_refused().await;
    server.order(Order::Start).await;
    load.until_acknowledged(60).await;
    server.crash();
    load.until_refused().await;
    server.order(Order::Start).await;
    load.until_acknowledged(60).await;
    let known = load.end(writers).await;
    assert!(known.len() > 20, "{}", known.len());
    for known in known {
        known.assert_there(&load.api).await;
    }
    store.close();
    let mut direct = load.api.database.connect().await;
    until_only_client(&mut direct).await;
    assert_sound(&mut direct, &entity_config::built_in()).await;
    drop(direct);
    server.order(Order::Stop).await;
}

#[tokio::test]
async fn connections_idle_over_a_restart_fail_no_request() {
    let server = Server::new();
    let url = server.order(Order::Start).await;
    let database = TestDatabase::at(url.parse().unwrap());
    store(database.options())
        .migrate(std::time::Duration::ZERO)
        .await
        .unwrap();
    let settings = "{health: {port: 0, shutdown_delay: 0s}, metrics: {port: 0}}";
    let mut program = Program::serve_with(&database, settings, &[]);
    let api = program.serving(database).await;
    // Every thread has a connection that idles then.
    assert_eq!(created(&api, "before").await, [201; 16]);
    server.order(Order::Stop).await;
    server.order(Order::Start).await;
    // Nobody has asked for anything since, but the probe.
    let probes =
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'hyperfleet-api-probe'";
    let mut direct = api.database.connect().await;
    until("the probe is back", async || {
        let query = sqlx::query_scalar::<_, i64>(probes);
        query.fetch_one(&mut direct).await.unwrap() == 1
    })
    .await;
    drop(direct);
    assert_eq!(created(&api, "after").await, [201; 16]);
    program.signal(Signal::TERM);
    assert!(program.ended().await.success(), "{}", program.output());
    server.order(Order::Stop).await;
}

/// The answers to sixteen creations at once.
async fn created(api: &TestApi, prefix: &str) -> Vec<u16> {
    let posts = (0..16).map(|number| {
        let name = format!("{prefix}-{number}");
        api.post(
            "/clusters",
            json!({"kind": "Cluster", "name": name, "spec": {}}),
        )
    });
    let answers = futures_util::future::join_all(posts).await;
    answers.iter().map(|answer| answer.status).collect()
}

/// A server on a database that is restarted.
fn on(database: TestDatabase) -> TestApi {
    let registry = entity_config::registry(&entity_config::built_in()).unwrap();
    let store = store(database.options()).share(1);
    TestApi::spawn_on(registry, database, store, false)
}

#[tokio::test]
async fn connections_that_ended_with_the_database_refuse_no_request() {
    let server = Server::new();
    let api = on(server.start_migrated().await);
    let cluster = api.cluster("abc").await;
    for round in 0..3 {
        // All connections of the service idle when the database ends.
        let paths = [cluster.as_str(), "/clusters"].repeat(4);
        let fill = paths.iter().map(async |path| api.get(path).await.status);
        assert_eq!(futures_util::future::join_all(fill).await, [200; 8]);
        if round == 1 {
            server.crash();
        } else {
            server.order(Order::Stop).await;
        }
        server.order(Order::Start).await;
        let new =
            |name: &str| json!({"kind": "Cluster", "name": format!("{name}-{round}"), "spec": {}});
        let answers = tokio::join!(
            api.get(&cluster),
            api.get("/clusters"),
            api.post("/clusters", new("a")),
            api.send("PATCH", &cluster, json!({"spec": {"round": round}})),
            api.report(&cluster, "dns", 1, &[]),
            api.post("/clusters", new("b")),
        );
        let (read, list, one, patched, reported, other) = answers;
        let statuses = [read, list, one, patched, reported, other].map(|answer| answer.status);
        assert_eq!(statuses, [200, 200, 201, 200, 201, 201], "round {round}");
    }
    server.order(Order::Stop).await;
}

/// Clients that note when they sent what was answered 503.
struct Clients {
    api: TestApi,
    refused: Mutex<Vec<Instant>>,
    is_over: AtomicBool,
}

impl Clients {
    async fn send(&self, method: &str, path: &str, body: Value) -> Option<Value> {
        tokio::time::sleep(PAUSE).await;
        let since = Instant::now();
        let answer = self.api.send(method, path, body).await;
        if answer.status < 300 {
            return Some(answer.body);
        }
        assert_unavailable(&answer, &format!("{method} {path}"));
        self.refused.lock().unwrap().push(since);
        None
    }

    async fn run(&self, client: usize) {
        for number in 0.. {
            if self.is_over.load(Ordering::SeqCst) {
                return;
            }
            let name = format!("c{client}-{number}");
            let new = json!({"kind": "Cluster", "name": name, "spec": {}});
            if let Some(made) = self.send("POST", "/clusters", new).await {
                let path = format!("/clusters/{}", made["id"].as_str().unwrap());
                let change = json!({"spec": {"a": number}});
                self.send("PATCH", &path, change).await;
                self.send("GET", &path, Value::Null).await;
                self.send("DELETE", &path, Value::Null).await;
            }
            self.send("GET", "/clusters?size=3", Value::Null).await;
        }
    }

    fn refused_since(&self, moment: Instant) -> usize {
        let refused = self.refused.lock().unwrap();
        refused.iter().filter(|sent| **sent >= moment).count()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_fails_once_a_restarted_database_accepts() {
    let server = Server::new();
    let clients = Arc::new(Clients {
        api: on(server.start_migrated().await),
        refused: Mutex::default(),
        is_over: AtomicBool::new(false),
    });
    let running: Vec<_> = (0..6)
        .map(|client| {
            let clients = clients.clone();
            tokio::spawn(async move { clients.run(client).await })
        })
        .collect();
    for _ in 0..4 {
        tokio::time::sleep(Duration::from_millis(500)).await;
        server.order(Order::Stop).await;
        server.order(Order::Start).await;
        let accepts = Instant::now();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(clients.refused_since(accepts), 0);
    }
    clients.is_over.store(true, Ordering::SeqCst);
    for client in running {
        client.await.unwrap();
    }
    server.order(Order::Stop).await;
}
