//! The adapter that the guide shows does what the guide says.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use hyperfleet::domain::entity_config::EntityConfig;
use hyperfleet_server_kit::clock::Clock;
use serde_json::json;
use tokio::task::JoinSet;

use super::until_reconciled;
use crate::support::{TestApi, root, until};

/// The first block of Python on the page.
fn script() -> String {
    let page = std::fs::read_to_string("docs/guides/write-an-adapter.md").unwrap();
    let (_, rest) = page.split_once("```python\n").unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The adapter, which polls with this pause in seconds.
fn start(api: &TestApi, folder: &Path, poll: &str) -> Running {
    let host = api.base.split("/api/").next().unwrap();
    let python = Command::new("python3")
        .args(["-c", &script()])
        .arg(folder)
        .envs([("API", host), ("POLL", poll)])
        .stdin(Stdio::null())
        .spawn();
    Running(python.expect("python3"))
}

/// Clusters that exist when it starts, one that changes, and one that is deleted.
async fn works(api: &TestApi, poll: &str) {
    api.clock.set(Clock::system().now());
    let mut clusters = Vec::new();
    for number in 0..120 {
        let name = format!("cluster-{number}");
        clusters.push(api.make("/clusters", "Cluster", &name).await);
    }
    let folder = tempfile::tempdir().unwrap();
    let _running = start(api, folder.path(), poll);
    for cluster in &clusters {
        until_reconciled(api, cluster).await;
    }
    let id = clusters[0].rsplit('/').next().unwrap();
    let file = folder.path().join(id);
    api.patch(&clusters[0], json!({"spec": {"size": 3}})).await;
    until("the change is written", async || {
        std::fs::read_to_string(&file).unwrap_or_default() == r#"{"size": 3}"#
    })
    .await;
    until_reconciled(api, &clusters[0]).await;
    api.deleted(&clusters[0]).await;
    until("it is gone", async || !api.has(&clusters[0]).await).await;
    assert!(!file.exists());
}

fn kinds() -> [EntityConfig; 1] {
    [root("Cluster", "clusters", &["notes"])]
}

#[tokio::test]
async fn the_adapter_in_python_polls_a_service_without_watch() {
    let api = TestApi::spawn_with(&kinds()).await;
    works(&api, "0.05").await;
}

#[tokio::test]
async fn the_adapter_in_python_watches() {
    let mut tasks = JoinSet::new();
    let api = TestApi::spawn_watchable(&kinds(), &mut tasks).await;
    until("lists name a position", async || {
        let list = api.get("/clusters").await;
        list.headers.contains_key("hyperfleet-position")
    })
    .await;
    works(&api, "3600").await;
}
