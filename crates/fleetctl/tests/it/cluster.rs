//! A cluster: the API, an engine, and machines with simulated systemds.

use std::future::pending;
use std::path::PathBuf;

use hyperfleet_testkit::{SimulatedMachine, TestFleet, engine_settings, run_engine, until};
use serde_json::Value;
use tempfile::TempDir;
use tokio::task::JoinHandle;

use crate::program::{Ran, run_in};

pub(crate) const FIRST: &str = "0f1e2d3c4b5a69788796a5b4c3d2e1f0";
pub(crate) const SECOND: &str = "1f1e2d3c4b5a69788796a5b4c3d2e1f0";
pub(crate) const SHORT: &str = "0f1e2d3c.../192.0.2.1";

/// A cluster, and a folder of unit files in which fleetctl runs.
pub(crate) struct Cluster {
    pub(crate) fleet: TestFleet,
    pub(crate) machines: Vec<SimulatedMachine>,
    folder: TempDir,
    engine: JoinHandle<()>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.engine.abort();
    }
}

impl Cluster {
    /// With these machines.
    pub(crate) async fn of(ids: &[&str]) -> Self {
        let fleet = TestFleet::spawn().await;
        let machine = |id: &&str| SimulatedMachine::start(fleet.registry.clone(), id, 30);
        let machines = ids.iter().map(machine).collect();
        let engine = run_engine(fleet.registry.clone(), engine_settings("engine"), pending());
        let cluster = Self {
            engine: tokio::spawn(engine),
            machines,
            folder: tempfile::tempdir().unwrap(),
            fleet,
        };
        until("the machines are there", async || {
            let page = cluster.get("machines").await;
            page["machines"].as_array().map_or(0, Vec::len) == ids.len()
        })
        .await;
        cluster
    }

    /// Writes a unit file.
    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Writes a service that sleeps.
    pub(crate) fn service(&self, name: &str) {
        self.file(name, "[Service]\nExecStart=/bin/sleep 3000\n");
    }

    /// Runs fleetctl over TCP.
    pub(crate) async fn run(&self, arguments: &[&str]) -> Ran {
        let endpoint = [("FLEETCTL_ENDPOINT", self.fleet.base.as_str())];
        run_in(self.folder.path(), &endpoint, arguments).await
    }

    /// Runs fleetctl over the unix socket.
    pub(crate) async fn run_locally(&self, arguments: &[&str]) -> Ran {
        let endpoint = format!("--endpoint=unix://{}", self.fleet.socket().display());
        let arguments: Vec<&str> = [endpoint.as_str()]
            .iter()
            .chain(arguments)
            .copied()
            .collect();
        run_in(self.folder.path(), &[], &arguments).await
    }

    /// What the API says.
    pub(crate) async fn get(&self, path: &str) -> Value {
        self.fleet.get(&format!("/fleet/v1/{path}")).await.body
    }

    /// Units that run on the first machine.
    pub(crate) fn running(&self) -> Vec<String> {
        self.machines[0].running().into_iter().collect()
    }
}
