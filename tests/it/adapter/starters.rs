//! The programs of `examples/adapters` do what an adapter has to do.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hyperfleet_domain::entity_config::EntityConfig;
use hyperfleet_server_kit::clock::Clock;
use hyperfleet_testkit::RunningProgram;
use rustix::process::Signal;
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
        let adapter = &explained["adapters"][0];
        adapter["state"] == "failing" && adapter["condition"]["message"] == "spec.demo.fail is true"
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

/// Of two copies, the first one works until it is stopped, and then the second. Each has a name of its own, so that
/// reports show which copy works.
async fn copies_take_turns(mut program: impl FnMut() -> Command) {
    let mut tasks = JoinSet::new();
    let api = TestApi::spawn_watchable(&[root("Cluster", "clusters", &[])], &mut tasks).await;
    api.clock.set(Clock::system().now());
    let host = api.base.split("/api/").next().unwrap();
    let mut start = |name: &str| {
        let mut program = program();
        program.arg("clusters").stdin(Stdio::null());
        program
            .env("API", host)
            .env("NAME", name)
            .env("LEASE", "copies");
        RunningProgram::start(program)
    };
    let cluster = api.made("/clusters", "Cluster", "cluster").await;
    let cluster = format!("/clusters/{}", cluster.body["id"].as_str().unwrap());
    let reporters = async || {
        let reports = api.get(&format!("{cluster}/statuses")).await;
        let reporters = reports.column("adapter");
        reporters
            .into_iter()
            .map(ToOwned::to_owned)
            .collect::<Vec<_>>()
    };
    let first = start("first");
    until("the first copy works", async || {
        reporters().await == ["first"]
    })
    .await;
    let mut second = start("second");
    let waits = |said: &str| said.contains("another copy").then_some(());
    second.until_found("the second copy waits", waits).await;
    let changed = api.patch(&cluster, json!({"spec": {"size": 2}})).await;
    assert_eq!(changed.status, 200);
    until("the first copy has reported on the change", async || {
        let reports = api.get(&format!("{cluster}/statuses")).await;
        reports.body["items"][0]["observed_generation"] == 2
    })
    .await;
    assert_eq!(reporters().await, ["first"]);
    first.signal(Signal::TERM);
    until("the second copy works", async || {
        reporters().await == ["first", "second"]
    })
    .await;
    assert!(first.output().contains("lease"), "{}", first.output());
}

#[tokio::test]
async fn the_starter_in_python_works() {
    works(python()).await;
}

#[tokio::test]
async fn copies_of_the_starter_in_python_take_turns() {
    copies_take_turns(python).await;
}

fn python() -> Command {
    let mut program = Command::new("python3");
    program.arg("examples/adapters/python/adapter.py");
    program
}

#[tokio::test]
async fn the_starter_in_rust_works() {
    works(rust()).await;
}

#[tokio::test]
async fn copies_of_the_starter_in_rust_take_turns() {
    copies_take_turns(rust).await;
}

#[tokio::test]
async fn the_starter_in_rust_shows_metrics() {
    let mut tasks = JoinSet::new();
    let api = TestApi::spawn_watchable(&kinds(), &mut tasks).await;
    api.clock.set(Clock::system().now());
    let cluster = api.make("/clusters", "Cluster", "cluster").await;
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = port.local_addr().unwrap().to_string();
    drop(port);
    let mut program = rust();
    program.arg("clusters").stdin(Stdio::null());
    program.env("API", api.base.split("/api/").next().unwrap());
    program.env("METRICS", &address);
    let _running = RunningProgram::start(program);
    until_reconciled(&api, &cluster).await;
    let metrics = api.client.get(format!("http://{address}/metrics"));
    let metrics = metrics.send().await.unwrap().text().await.unwrap();
    for line in [
        "hyperfleet_adapter_leading 1",
        "hyperfleet_adapter_queue_waiting 0",
        "hyperfleet_adapter_reconciles_total{kind=\"clusters\",outcome=\"reported\"} 2",
        "hyperfleet_adapter_reconcile_duration_seconds_count{kind=\"clusters\"} 2",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
}

fn rust() -> Command {
    // Cargo builds examples with the tests, in a folder beside theirs.
    let test = std::env::current_exe().unwrap();
    let built = test
        .ancestors()
        .nth(2)
        .map(|folder| folder.join("examples/starter"));
    Command::new(built.unwrap())
}

#[tokio::test]
async fn the_starter_in_go_works() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = built_by_go(folder.path()) else {
        return;
    };
    works(Command::new(&program)).await;
    copies_take_turns(|| Command::new(&program)).await;
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
