//! The fleet adapter between the real service and a real fleet on etcd, with agents on simulated machines.

mod brake;
mod converging;
mod outages;
mod owned;
mod replicas;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use hyperfleet_adapter::{Api, Token};
use hyperfleet_domain::entity_config::EntityConfig;
use hyperfleet_fleet::etcd::EtcdKeys;
use hyperfleet_fleet::registry::{Prefix, Registry};
use hyperfleet_fleet::{EtcdFleet, Fleet};
use hyperfleet_fleet_adapter::workloads::{WorkloadConfig, Workloads};
use hyperfleet_fleet_adapter::{Running, Settings, approval, run};
use hyperfleet_server_kit::clock::Clock;
use hyperfleet_testkit::{SimulatedMachine, engine_settings, run_engine, shared_etcd};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};

use crate::support::{TestApi, child, fresh_prefix, root, until};

const MACHINE_LEASE_SECONDS: u32 = 5;

/// A service with clusters and node pools that require `fleet`, a fleet, and machines.
struct World {
    api: TestApi,
    keys: EtcdKeys,
    prefix: String,
    registry: Registry<EtcdKeys>,
    fleet: EtcdFleet,
    machines: Vec<SimulatedMachine>,
    /// Reader of changes, engine and mirror.
    _beside: JoinSet<()>,
}

/// An adapter that runs.
struct RunningAdapter {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl RunningAdapter {
    async fn stop(mut self) {
        drop(self.stop.take());
        self.task.await.unwrap();
    }

    /// As a process that is killed.
    async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

fn entities() -> Vec<EntityConfig> {
    let pools = root("NodePool", "nodepools", &["fleet"]);
    vec![
        root("Cluster", "clusters", &["fleet"]),
        child("Cluster", "cascade", pools),
    ]
}

fn workload() -> WorkloadConfig {
    let file = "[Service]\nExecStart=/usr/bin/agent --pool ${resource.id}\n\
                Environment=VERSION=${resource.spec.version}\n\
                [X-Fleet]\nConflicts=np-${resource.name}-${short_id}@*.service\n";
    WorkloadConfig {
        kind: "NodePool".to_owned(),
        when: "!has(resource.spec.runtime) || resource.spec.runtime == \"systemd\"".to_owned(),
        replicas: "int(resource.spec.replicas)".to_owned(),
        unit: "np-${resource.name}-${short_id}@${index}.service".to_owned(),
        file: file.to_owned(),
        min_ready_seconds: 0,
        ..WorkloadConfig::default()
    }
}

impl World {
    async fn start(machines: usize) -> Self {
        Self::start_on(shared_etcd().await, machines).await
    }

    async fn start_on(keys: EtcdKeys, machines: usize) -> Self {
        let mut beside = JoinSet::new();
        let api = TestApi::spawn_watchable(&entities(), &mut beside).await;
        api.clock.set(Clock::system().now());
        let prefix = fresh_prefix();
        let registry = Registry::new(keys.clone(), Prefix::new(&prefix).unwrap());
        let fleet = Fleet::new(registry.clone(), 100);
        beside.spawn(fleet.clone().run_mirror());
        let settings = engine_settings("engine");
        beside.spawn(run_engine(
            registry.clone(),
            settings,
            std::future::pending(),
        ));
        let mut world = Self {
            api,
            keys,
            prefix,
            registry,
            fleet,
            machines: Vec::new(),
            _beside: beside,
        };
        for number in 1..=machines {
            world.add_machine(number);
        }
        until("all machines are there", async || {
            world.fleet.is_connected() && world.fleet.readiness().machines == machines
        })
        .await;
        world
    }

    fn add_machine(&mut self, number: usize) {
        let registry = self.registry.clone();
        let id = format!("m{number}");
        let machine = SimulatedMachine::start(registry, &id, MACHINE_LEASE_SECONDS);
        self.machines.push(machine);
    }

    fn keys_of_adapter(&self) -> String {
        approval::keys(&self.prefix, "fleet")
    }

    fn running(&self, instance: &str) -> Running<EtcdKeys> {
        let settings = Settings {
            poll_interval: Duration::from_millis(100),
            sweep_interval: Duration::from_secs(2),
            orphan_grace: Duration::from_secs(2),
            lease_time: Duration::from_secs(2),
            ..hyperfleet::config::Settings::default().fleet.adapter
        };
        Running {
            settings,
            fleet: self.fleet.clone(),
            store: self.keys.clone(),
            api: Api::new(&self.api.base, Token::None).unwrap(),
            workloads: Arc::new(Workloads::compile("fleet", &[workload()]).unwrap()),
            instance: instance.to_owned(),
            keys: self.keys_of_adapter(),
            kinds: vec!["clusters".to_owned(), "nodepools".to_owned()],
            grace: Duration::from_secs(5),
        }
    }

    fn adapter(&self) -> RunningAdapter {
        start(self.running("replica-1"))
    }

    /// A node pool with this spec; its path.
    async fn pool(&self, cluster: &str, name: &str, spec: Value) -> String {
        let path = format!("{cluster}/nodepools");
        let body = json!({"kind": "NodePool", "name": name, "spec": spec});
        let made = self.api.post(&path, body).await;
        assert_eq!(made.status, 201, "{:?}", made.body);
        format!("{path}/{}", made.body["id"].as_str().unwrap())
    }

    /// A cluster, and its node pool `workers` of that many replicas; their paths.
    async fn pool_of(&self, replicas: u32) -> (String, String) {
        let cluster = self.api.make("/clusters", "Cluster", "web").await;
        let spec = json!({"replicas": replicas, "version": "1"});
        let pool = self.pool(&cluster, "workers", spec).await;
        (cluster, pool)
    }

    /// The condition that the adapter has reported: status, reason, message.
    async fn reported(&self, path: &str, kind: &str) -> (String, String, String) {
        let statuses = self.api.get(&format!("{path}/statuses")).await.body;
        let report = statuses["items"].as_array().into_iter().flatten();
        let conditions = report.filter(|report| report["adapter"] == "fleet");
        let conditions = conditions.filter_map(|report| report["conditions"].as_array().cloned());
        let mut conditions = conditions.flatten();
        let found = conditions.find(|condition| condition["type"] == kind);
        let found = found.unwrap_or_default();
        let text = |name: &str| found[name].as_str().unwrap_or_default().to_owned();
        (text("status"), text("reason"), text("message"))
    }

    async fn until_reported(&self, path: &str, kind: &str, status: &str, reason: &str) -> String {
        until(
            &format!("{kind} of {path} is {status} {reason}"),
            async || {
                let (found, because, message) = self.reported(path, kind).await;
                let is_it = found == status && because == reason;
                if !is_it {
                    println!("{kind} of {path}: {found} {because} {message}");
                }
                is_it
            },
        )
        .await;
        self.reported(path, kind).await.2
    }

    async fn until_reconciled(&self, path: &str) {
        until(&format!("{path} is reconciled"), async || {
            let found = self.api.get(path).await.body;
            let conditions = found["status"]["conditions"].as_array().cloned();
            let mut conditions = conditions.into_iter().flatten();
            conditions.any(|c| {
                let is_current = c["observed_generation"] == found["generation"];
                c["type"] == "Reconciled" && c["status"] == "True" && is_current
            })
        })
        .await;
    }

    async fn until_gone(&self, path: &str) {
        until(&format!("{path} is gone"), async || {
            self.api.get(path).await.status == 404
        })
        .await;
    }

    /// Services that run, on all machines.
    fn services(&self) -> BTreeSet<String> {
        self.machines
            .iter()
            .flat_map(SimulatedMachine::running)
            .collect()
    }

    /// Names of all units.
    async fn units(&self) -> Vec<String> {
        let page = self.fleet.list_units(None).await.unwrap();
        page.items.into_iter().map(|unit| unit.name).collect()
    }
}

fn start(running: Running<EtcdKeys>) -> RunningAdapter {
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(run(running, async move {
        let _ = stopped.await;
    }));
    RunningAdapter {
        stop: Some(stop),
        task,
    }
}
