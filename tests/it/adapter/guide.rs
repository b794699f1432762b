//! The adapter that the guide shows does what the guide says.

use std::process::{Child, Command, Stdio};

use hyperfleet_server_kit::clock::Clock;
use serde_json::json;

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

#[tokio::test]
async fn the_adapter_in_python_works() {
    let api = TestApi::spawn_with(&[root("Cluster", "clusters", &["notes"])]).await;
    api.clock.set(Clock::system().now());
    let mut clusters = Vec::new();
    for number in 0..120 {
        let name = format!("cluster-{number}");
        clusters.push(api.make("/clusters", "Cluster", &name).await);
    }
    let folder = tempfile::tempdir().unwrap();
    let host = api.base.split("/api/").next().unwrap();
    let python = Command::new("python3")
        .args(["-c", &script()])
        .arg(folder.path())
        .envs([("API", host), ("POLL", "0.05")])
        .stdin(Stdio::null())
        .spawn();
    let _running = Running(python.expect("python3"));
    for cluster in &clusters {
        until_reconciled(&api, cluster).await;
    }
    let id = clusters[0].rsplit('/').next().unwrap();
    let file = folder.path().join(id);
    api.patch(&clusters[0], json!({"spec": {"size": 3}})).await;
    until("the change is written", async || {
        std::fs::read_to_string(&file).unwrap_or_default() == r#"{"size": 3}"#
    })
    .await;
    until_reconciled(&api, &clusters[0]).await;
    api.deleted(&clusters[0]).await;
    until("it is gone", async || !api.has(&clusters[0]).await).await;
    assert!(!file.exists());
}
