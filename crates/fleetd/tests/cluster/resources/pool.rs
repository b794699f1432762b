//! A cluster with one node pool.

use std::collections::{BTreeMap, BTreeSet};

use hyperfleet_testkit::until;
use serde_json::{Value, json};

use super::super::cluster::{Placed, text};
use super::World;

/// A node pool whose services run on machines of fleet.
pub(super) struct Pool {
    pub(super) cluster: String,
    pub(super) path: String,
}

/// The specification of a node pool.
pub(super) fn spec(version: u32, replicas: usize) -> Value {
    json!({"runtime": "systemd", "version": format!("v{version}"), "replicas": replicas})
}

impl Pool {
    /// Creates one, and waits until its services run.
    pub(super) async fn create(world: &World, replicas: usize) -> Self {
        let pool = Self::order(world, "east", replicas).await;
        pool.until_runs(world, 1, replicas).await;
        world.service.rest.until_reconciled(&pool.cluster).await;
        pool
    }

    /// Creates one, in a cluster of that name.
    pub(super) async fn order(world: &World, cluster: &str, replicas: usize) -> Self {
        let rest = &world.service.rest;
        let cluster = rest.create_cluster(cluster).await;
        let path = rest.create_pool(&cluster, "web", &spec(1, replicas)).await;
        Self { cluster, path }
    }

    /// Name of a unit by its index, from 1: `np-web-` with the last 8 characters of the id.
    pub(super) fn unit(&self, index: usize) -> String {
        let short_id = &self.path[self.path.len() - 8..];
        format!("np-web-{short_id}@{index}.service")
    }

    pub(super) fn units(&self, count: usize) -> Vec<String> {
        (1..=count).map(|index| self.unit(index)).collect()
    }

    /// Replaces the specification.
    pub(super) async fn patch(&self, world: &World, version: u32, replicas: usize) {
        world
            .service
            .rest
            .patch(&self.path, &spec(version, replicas))
            .await;
    }

    /// Deletes the cluster with the node pool, and waits until both are gone.
    pub(super) async fn delete(&self, world: &World) {
        let rest = &world.service.rest;
        rest.delete(&self.cluster).await;
        self.until_gone(world).await;
    }

    pub(super) async fn until_gone(&self, world: &World) {
        world.service.rest.until_gone(&self.path).await;
        world.service.rest.until_gone(&self.cluster).await;
    }

    /// Waits until the API says that the pool is reconciled. Its services then run this version, each on a machine of its own.
    pub(super) async fn until_runs(&self, world: &World, version: u32, replicas: usize) -> Placed {
        let rest = &world.service.rest;
        until(
            "all replicas are available, and the pool is reconciled",
            async || {
                let available = rest.reported(&self.path, "Available").await;
                available["reason"] == "ReplicasAvailable" && rest.is_reconciled(&self.path).await
            },
        )
        .await;
        self.assert_runs(world, version, replicas).await
    }

    /// systemd runs exactly the services of this pool, in this version, each on a machine of its own.
    pub(super) async fn assert_runs(&self, world: &World, version: u32, replicas: usize) -> Placed {
        let active = world.cluster.reported("active").await;
        let mine: Vec<_> = active.iter().filter(|(unit, _)| self.owns(unit)).collect();
        let names: Vec<_> = mine.iter().map(|(unit, _)| unit.clone()).collect();
        assert_eq!(names, self.units(replicas), "{active:?}");
        let machines: BTreeSet<_> = mine.iter().map(|(_, id)| id).collect();
        assert_eq!(machines.len(), replicas, "one a machine: {active:?}");
        for (unit, id) in &mine {
            let machine = world.cluster.machine(id);
            assert_eq!(machine.property(unit, "ActiveState"), "active", "{unit}");
            let environment = machine.property(unit, "Environment");
            assert_eq!(environment, format!("VERSION=v{version}"), "{unit}");
        }
        mine.into_iter().cloned().collect()
    }

    fn owns(&self, unit: &str) -> bool {
        let (stem, _) = unit.split_once('@').unwrap_or_default();
        self.unit(1)
            .split_once('@')
            .is_some_and(|(mine, _)| mine == stem)
    }

    /// How many of the first replicas systemd runs, over all machines.
    pub(super) fn running(&self, world: &World, replicas: usize) -> usize {
        let units = self.units(replicas);
        let units: Vec<_> = units.iter().map(String::as_str).collect();
        let mut running = BTreeMap::new();
        for machine in world
            .cluster
            .machines
            .iter()
            .filter(|machine| machine.is_running())
        {
            for (unit, state) in units.iter().zip(machine.properties(&units, "ActiveState")) {
                *running.entry(*unit).or_insert(false) |= state == "active";
            }
        }
        running.values().filter(|is_running| **is_running).count()
    }

    /// Waits for a condition of the adapter's report: its status, its reason, and words of its message.
    pub(super) async fn wait_for_condition(&self, world: &World, name: &str, said: [&str; 3]) {
        let [status, reason, words] = said;
        let is_said = async |found: &Value| {
            let message = found["message"].as_str().unwrap_or_default();
            found["status"] == status && found["reason"] == reason && message.contains(words)
        };
        self.wait_for_report(world, name, is_said).await;
    }

    /// Waits until a condition of the adapter's report is as expected, and prints each change before.
    pub(super) async fn wait_for_report(
        &self,
        world: &World,
        name: &str,
        mut is_so: impl AsyncFnMut(&Value) -> bool,
    ) {
        let mut last = Value::Null;
        until(&format!("{name} is as it should be"), async || {
            let found = world.service.rest.reported(&self.path, name).await;
            let is_new = ["status", "reason", "message"]
                .iter()
                .any(|member| found[member] != last[member]);
            if is_new {
                let [status, reason, message] =
                    ["status", "reason", "message"].map(|member| text(&found[member]));
                println!("  {name}={status} {reason}: {message}");
            }
            let is_found = is_so(&found).await;
            last = found;
            is_found
        })
        .await;
    }
}

/// Identifies the current run of each service.
pub(super) fn invocations(world: &World, placed: &Placed) -> BTreeMap<String, String> {
    let runs = placed.iter().map(|(unit, id)| {
        let machine = world.cluster.machine(id);
        let run = machine.property(unit, "InvocationID");
        assert_eq!(run.len(), 32, "{unit} on {id}: {run:?}");
        (unit.clone(), run)
    });
    runs.collect()
}
