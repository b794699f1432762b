//! The database is restarted while clients write.

use std::sync::{Arc, mpsc};

use hyperfleet::domain::entity_config;
use hyperfleet_devkit::{Durability, PrivatePostgres};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::oneshot;

use super::load::Load;
use super::program::Program;
use super::{until, until_alone};
use crate::support::{TestApi, TestDatabase, assert_sound, store};

/// A server whose data is kept, on a thread that lives as long as it.
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
                    let server = PrivatePostgres::start(&path, Durability::Kept).unwrap();
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
        let file = self.folder.path().join("data/postmaster.pid");
        let pid = std::fs::read_to_string(file).unwrap();
        let pid = pid.lines().next().unwrap().parse().unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), Signal::QUIT).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_outlives_the_database_and_the_service_needs_no_restart() {
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
    until_alone(&mut direct).await;
    assert_sound(&mut direct, &entity_config::built_in()).await;
    drop(direct);
    server.order(Order::Stop).await;
}

#[tokio::test]
async fn connections_that_idled_while_the_database_restarted_cost_no_later_request() {
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
    assert!(program.ended().await.success(), "{}", program.said());
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
