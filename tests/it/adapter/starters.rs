//! The programs of `examples/adapters` do what an adapter has to do.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hyperfleet::domain::entity_config::EntityConfig;
use hyperfleet_server_kit::clock::Clock;
use hyperfleet_testkit::RunningProgram;
use serde_json::json;
use tokio::task::JoinSet;

use super::until_reconciled;
use crate::support::{TestApi, child, root, until};

fn kinds() -> [EntityConfig; 2] {
    [
        root("Cluster", "clusters", &["starter"]),
        child(
            "Cluster",
            "cascade",
            root("NodePool", "nodepools", &["starter"]),
        ),
    ]
}

/// Clusters that exist when it starts, one that fails until it is changed, and one that is deleted with its node pool.
async fn works(mut program: Command) {
    let mut tasks = JoinSet::new();
    let api = TestApi::spawn_watchable(&kinds(), &mut tasks).await;
    api.clock.set(Clock::system().now());
    let mut clusters = Vec::new();
    for number in 0..40 {
        let name = format!("cluster-{number}");
        clusters.push(api.make("/clusters", "Cluster", &name).await);
    }
    let pool = api
        .make(&format!("{}/nodepools", clusters[0]), "NodePool", "pool")
        .await;
    let host = api.base.split("/api/").next().unwrap();
    program.args(["clusters", "nodepools"]).env("API", host);
    program.stdin(Stdio::null());
    let _running = RunningProgram::start(program);
    for resource in clusters.iter().chain([&pool]) {
        until_reconciled(&api, resource).await;
    }
    let failing = json!({"spec": {"demo": {"fail": true}}});
    api.patch(&clusters[1], failing).await;
    until("the failure is reported", async || {
        let explained = api.get(&format!("{}/explain", clusters[1])).await.body;
        explained["adapters"][0]["condition"]["reason"] == "DemoFailure"
    })
    .await;
    api.patch(&clusters[1], json!({"spec": {}})).await;
    until_reconciled(&api, &clusters[1]).await;
    api.deleted(&clusters[0]).await;
    until("both are gone", async || {
        !api.has(&clusters[0]).await && !api.has(&pool).await
    })
    .await;
}

#[tokio::test]
async fn the_starter_in_python_works() {
    let mut program = Command::new("python3");
    program.arg("examples/adapters/python/adapter.py");
    works(program).await;
}

#[tokio::test]
async fn the_starter_in_rust_works() {
    // Cargo builds examples with the tests, in a folder beside theirs.
    let test = std::env::current_exe().unwrap();
    let built = test
        .ancestors()
        .nth(2)
        .map(|folder| folder.join("examples/starter"));
    works(Command::new(built.unwrap())).await;
}

#[tokio::test]
async fn the_starter_in_go_works() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = built_by_go(folder.path()) else {
        return;
    };
    works(Command::new(program)).await;
}

/// The starter in Go; `None`, and a message, where Go is missing and not required.
fn built_by_go(folder: &Path) -> Option<PathBuf> {
    let program = folder.join("starter");
    let built = Command::new("go")
        .args(["build", "-o"])
        .arg(&program)
        .arg("main.go")
        .current_dir("examples/adapters/go")
        .status();
    match built {
        Ok(status) => {
            assert!(status.success());
            Some(program)
        }
        Err(error) => {
            let required = ["CI", "CLIENTS_REQUIRED"].map(std::env::var_os);
            assert!(required.iter().all(Option::is_none), "go: {error}");
            println!("SKIPPED: go cannot run: {error}");
            None
        }
    }
}
