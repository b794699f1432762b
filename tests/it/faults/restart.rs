//! The database is restarted while clients write.

use std::sync::{Arc, mpsc};

use hyperfleet::domain::entity_config;
use hyperfleet_devkit::{Durability, PrivatePostgres};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::sync::oneshot;

use super::load::Load;
use super::until_alone;
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
