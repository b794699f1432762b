//! Clients that write, and remember what was acknowledged.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::{assert_unavailable, until};
use crate::support::TestApi;

const WRITERS: usize = 6;
/// Between two requests of a client: without it they take both processors from the other tests.
pub(super) const PAUSE: Duration = Duration::from_millis(25);
/// What readers ask for, each one of them again and again.
const READS: [&str; 4] = [
    "/clusters?size=3",
    "/nodepools?size=3",
    "/clusters?size=3&search=status.conditions.Reconciled%3D%27False%27",
    "/audit?size=3",
];

/// The acknowledged state of one cluster.
#[derive(Debug, Clone)]
pub(super) struct Acknowledged {
    path: String,
    patches: i64,
    is_reported: bool,
    is_deleted: bool,
}

/// What the writers share.
pub(super) struct Load {
    pub(super) api: TestApi,
    is_over: AtomicBool,
    is_mortal: bool,
    acknowledged: AtomicU64,
    refused: AtomicU64,
    reads: AtomicU64,
}

/// How a write ended.
enum Written {
    Acknowledged(Value),
    /// With a problem that says to try again.
    Refused,
    /// The service is gone.
    Vanished,
}

impl Acknowledged {
    /// Checks that everything is still there.
    pub(super) async fn assert_there(&self, api: &TestApi) {
        let found = api.get(&self.path).await;
        assert_eq!(found.status, 200, "{self:?} is gone");
        let least = 1 + self.patches + i64::from(self.is_deleted);
        let generation = found.body["generation"].as_i64().unwrap();
        assert!(generation >= least, "{self:?}: {}", found.body);
        assert!(
            !self.is_deleted || found.body["deleted_time"].is_string(),
            "{self:?}"
        );
        let reports = api.get(&format!("{}/statuses", self.path)).await;
        assert!(!self.is_reported || reports.body["total"] == 1, "{self:?}");
    }
}

impl Load {
    /// On a service that has to stay.
    pub(super) fn on(api: TestApi) -> Self {
        Self {
            api,
            is_over: AtomicBool::new(false),
            is_mortal: false,
            acknowledged: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            reads: AtomicU64::new(0),
        }
    }

    /// On a service that is going to be killed.
    pub(super) fn on_mortal(api: TestApi) -> Self {
        Self {
            is_mortal: true,
            ..Self::on(api)
        }
    }

    pub(super) fn start(self: &Arc<Self>) -> Vec<JoinHandle<Vec<Acknowledged>>> {
        let writers = (0..WRITERS).map(|writer| {
            let load = self.clone();
            tokio::spawn(async move { load.run(writer).await })
        });
        writers.collect()
    }

    /// With clients that read besides, none of whose requests may fail.
    pub(super) fn start_with_readers(self: &Arc<Self>) -> Vec<JoinHandle<Vec<Acknowledged>>> {
        let mut clients = self.start();
        clients.extend(READS.map(|path| {
            let load = self.clone();
            tokio::spawn(async move {
                while !load.is_over.load(Ordering::SeqCst) {
                    let answer = load.api.get(path).await;
                    assert_eq!(answer.status, 200, "{path}: {}", answer.body);
                    load.reads.fetch_add(1, Ordering::SeqCst);
                    sleep(PAUSE).await;
                }
                Vec::new()
            })
        }));
        clients
    }

    /// Lets the clients come to an end; gives what they know.
    pub(super) async fn end(
        &self,
        clients: Vec<JoinHandle<Vec<Acknowledged>>>,
    ) -> Vec<Acknowledged> {
        self.is_over.store(true, Ordering::SeqCst);
        let mut known = Vec::new();
        for client in clients {
            known.extend(client.await.unwrap());
        }
        known
    }

    async fn write(&self, method: &str, path: &str, body: Value) -> Written {
        sleep(PAUSE).await;
        let Some(answer) = self.api.try_send(method, path, &body).await else {
            assert!(self.is_mortal, "{method} {path}: the connection was closed");
            self.is_over.store(true, Ordering::SeqCst);
            return Written::Vanished;
        };
        if answer.status < 300 {
            self.acknowledged.fetch_add(1, Ordering::SeqCst);
            return Written::Acknowledged(answer.body);
        }
        assert_unavailable(&answer, &format!("{method} {path}"));
        self.refused.fetch_add(1, Ordering::SeqCst);
        Written::Refused
    }

    /// Lives of clusters, one after the other.
    async fn run(&self, writer: usize) -> Vec<Acknowledged> {
        let mut all = Vec::new();
        for number in 0.. {
            if self.is_over.load(Ordering::SeqCst) {
                break;
            }
            let body =
                json!({"kind": "Cluster", "name": format!("w{writer}-{number}"), "spec": {}});
            if let Written::Acknowledged(made) = self.write("POST", "/clusters", body).await {
                all.push(
                    self.live(format!("/clusters/{}", made["id"].as_str().unwrap()))
                        .await,
                );
            }
        }
        all
    }

    async fn live(&self, path: String) -> Acknowledged {
        let is_taken = async |method, path: &str, body| {
            matches!(
                self.write(method, path, body).await,
                Written::Acknowledged(_)
            )
        };
        let mut patches = 0;
        for patch in 0..3 {
            let body = json!({"spec": {"patch": patch}});
            patches += i64::from(is_taken("PATCH", &path, body).await);
        }
        let conditions = ["Available", "Applied", "Health"];
        let conditions = conditions.map(|kind| json!({"type": kind, "status": "True"}));
        let report = json!({"adapter": "dns", "observed_generation": 1, "conditions": conditions});
        Acknowledged {
            patches,
            is_reported: is_taken("PUT", &format!("{path}/statuses"), report).await,
            is_deleted: is_taken("DELETE", &path, Value::Null).await,
            path,
        }
    }

    /// How many writes were taken.
    pub(super) fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::SeqCst)
    }

    /// How many reads were answered.
    pub(super) fn reads(&self) -> u64 {
        self.reads.load(Ordering::SeqCst)
    }

    /// How many writes were not taken.
    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Ordering::SeqCst)
    }

    /// Waits for so many more writes to be taken.
    pub(super) async fn until_acknowledged(&self, more: u64) {
        let goal = self.acknowledged() + more;
        until("more writes are taken", async || {
            self.acknowledged() >= goal
        })
        .await;
    }

    /// Waits for a write to be refused.
    pub(super) async fn until_refused(&self) {
        let before = self.refused.load(Ordering::SeqCst);
        until("a write is refused", async || {
            self.refused.load(Ordering::SeqCst) > before
        })
        .await;
    }
}
