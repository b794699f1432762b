//! A database whose processes all stand still: every request is answered by one deadline.

use std::time::{Duration, Instant};

use hyperfleet_domain::entity_config;
use hyperfleet_storage::{ConnectionLifetime, Settings, Store};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::restart::{Order, Server};
use super::{assert_unavailable, until};
use crate::support::{Answer, TestApi};

/// How long a statement may take.
const STATEMENT: Duration = Duration::from_secs(1);
/// How long an answer may take: the statement's time, and five seconds.
const BOUND: Duration = Duration::from_secs(6);
/// What a busy machine adds.
const MARGIN: Duration = Duration::from_secs(3);

/// Processes that are stopped where they are, until this is dropped.
struct Frozen(Vec<Pid>);

impl Frozen {
    /// A process and its children, of which there are no new ones from then on.
    fn with_children(parent: Pid) -> Self {
        kill_process(parent, Signal::STOP).unwrap();
        let mut all = Self(vec![parent]);
        for entry in std::fs::read_dir("/proc").unwrap() {
            let stat = std::fs::read_to_string(entry.unwrap().path().join("stat"));
            let Some((pid, parent_pid)) = stat.ok().and_then(|stat| family(&stat)) else {
                continue;
            };
            if parent_pid == parent.as_raw_nonzero().get() {
                let pid = Pid::from_raw(pid).unwrap();
                all.0.push(pid);
                kill_process(pid, Signal::STOP).unwrap();
            }
        }
        assert!(all.0.len() > 4, "PostgreSQL has more processes");
        all
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        for pid in &self.0 {
            let _ = kill_process(*pid, Signal::CONT);
        }
    }
}

/// The number of a process, and of its parent.
fn family(stat: &str) -> Option<(i32, i32)> {
    let (head, rest) = stat.rsplit_once(')')?;
    let pid = head.split(' ').next()?.parse().ok()?;
    Some((pid, rest.split(' ').nth(2)?.parse().ok()?))
}

async fn timed(answer: impl Future<Output = Answer>) -> (Answer, Duration) {
    let since = Instant::now();
    (answer.await, since.elapsed())
}

#[tokio::test]
async fn requests_meet_their_deadline_while_the_database_is_frozen() {
    let server = Server::new();
    let database = server.start_migrated().await;
    let store = Store::new(Settings {
        connect: database.options(),
        connections_max: 4,
        acquire_seconds_max: 5,
        statement_milliseconds_max: u64::try_from(STATEMENT.as_millis()).unwrap(),
        lifetime: ConnectionLifetime::default(),
    });
    let registry = entity_config::registry(&entity_config::built_in()).unwrap();
    let api = TestApi::spawn_on(registry, database, store.share(1), false);
    let cluster = api.cluster("abc").await;
    assert_eq!(api.get(&cluster).await.status, 200);
    let frozen = Frozen::with_children(server.process());
    let new = json!({"kind": "Cluster", "name": "def", "spec": {}});
    // More than there are connections: some wait for those that others wait with.
    let answers = futures_util::future::join_all([0, 1].map(async |_| {
        let answers = tokio::join!(
            timed(api.get(&cluster)),
            timed(api.get("/clusters")),
            timed(api.post("/clusters", new.clone())),
            timed(api.send("PATCH", &cluster, json!({"spec": {"a": 1}}))),
            timed(api.report(&cluster, "dns", 1, &[])),
            timed(api.delete(&cluster)),
        );
        let (read, list, made, patched, reported, deleted) = answers;
        [read, list, made, patched, reported, deleted]
    }));
    for (answer, took) in answers.await.into_iter().flatten() {
        assert_unavailable(&answer, "frozen");
        assert!(took < BOUND + MARGIN, "{took:?}");
    }
    drop(frozen);
    until("it serves again", async || {
        api.get(&cluster).await.status == 200
    })
    .await;
    server.order(Order::Stop).await;
}
