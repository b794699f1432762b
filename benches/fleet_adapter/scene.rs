//! What the bench runs: the service with its PostgreSQL, etcd, an engine, machines, and the adapter.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use hyperfleet_adapter::{Api, Token};
use hyperfleet_fleet::etcd::EtcdKeys;
use hyperfleet_fleet::keys::KeyStore as _;
use hyperfleet_fleet::registry::{Prefix, Registry};
use hyperfleet_fleet::{EtcdFleet, Fleet, SetUnit};
use hyperfleet_fleet_adapter::workloads::{WorkloadConfig, Workloads};
use hyperfleet_fleet_adapter::{Running, Settings, approval, run};
use hyperfleet_fleet_model::unit::{DesiredState, UnitOption};
use hyperfleet_testkit::{
    SimulatedMachine, TestEtcd, engine_settings, etcd_settings, http_client, run_engine,
};
use serde_json::{Value, json};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

/// How often an awaited state is checked.
const LOOK: Duration = Duration::from_millis(5);
const ROOT: &str = "/api/hyperfleet/v1";
const MACHINE_LEASE_SECONDS: u32 = 30;

pub(crate) struct Scene {
    pub(crate) fleet: EtcdFleet,
    keys: EtcdKeys,
    machines: Vec<SimulatedMachine>,
    api: Child,
    base: String,
    http: reqwest::Client,
    folder: tempfile::TempDir,
    _etcd: TestEtcd,
    _beside: JoinSet<()>,
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = self.api.kill();
        let _ = self.api.wait();
    }
}

/// What the configuration of a node pool's units is.
fn workload() -> WorkloadConfig {
    let file = "[Service]\nExecStart=/usr/bin/agent --pool ${resource.id}\nEnvironment=VERSION=${resource.spec.version}\n";
    WorkloadConfig {
        kind: "NodePool".to_owned(),
        replicas: "int(resource.spec.replicas)".to_owned(),
        unit: "np-${resource.name}-${short_id}@${index}.service".to_owned(),
        file: file.to_owned(),
        min_ready_seconds: 0,
        ..WorkloadConfig::default()
    }
}

impl Scene {
    pub(crate) async fn set(machines: usize) -> Self {
        let etcd = TestEtcd::start().await;
        let keys = EtcdKeys::prepare(etcd_settings(&etcd.url())).expect("a plain address");
        let registry = Registry::new(keys.clone(), Prefix::default());
        let fleet = Fleet::new(registry.clone(), 100);
        let mut beside = JoinSet::new();
        beside.spawn(fleet.clone().run_mirror());
        let engine = engine_settings("engine");
        beside.spawn(run_engine(registry, engine, std::future::pending()));
        let mut agents = Vec::new();
        for number in 0..machines {
            let keys = EtcdKeys::prepare(etcd_settings(&etcd.url())).expect("a plain address");
            let registry = Registry::new(keys, Prefix::default());
            let id = format!("machine-{number:03}");
            agents.push(SimulatedMachine::start(
                registry,
                &id,
                MACHINE_LEASE_SECONDS,
            ));
        }
        let (api, base, folder) = start_api();
        let mut scene = Self {
            fleet,
            keys,
            machines: agents,
            api,
            base,
            http: http_client(),
            folder,
            _etcd: etcd,
            _beside: beside,
        };
        let is_up = async || {
            scene
                .http
                .get(format!("{}{ROOT}/clusters", scene.base))
                .send()
                .await
                .is_ok()
        };
        while !is_up().await || scene.fleet.readiness().machines < machines {
            if let Ok(Some(status)) = scene.api.try_wait() {
                let log = std::fs::read_to_string(scene.folder.path().join("log"));
                panic!(
                    "the service has ended, {status}: {}",
                    log.unwrap_or_default()
                );
            }
            sleep(LOOK).await;
        }
        scene
    }

    pub(crate) fn client(&self) -> Client {
        Client {
            base: self.base.clone(),
            http: self.http.clone(),
        }
    }

    pub(crate) async fn cluster(&self) -> String {
        let body = json!({"kind": "Cluster", "name": "bench", "spec": {}});
        self.client().post(&format!("{ROOT}/clusters"), body).await
    }

    pub(crate) async fn until_running(&self, count: usize) {
        let running = || {
            self.machines
                .iter()
                .map(|machine| machine.running().len())
                .sum::<usize>()
        };
        while running() != count {
            sleep(LOOK).await;
        }
    }

    /// Waits until a service runs whose file has a text.
    pub(crate) async fn until_file(&self, text: &str) {
        let has = |machine: &SimulatedMachine| {
            machine
                .systemd
                .with(|state| state.running.values().any(|file| file.contains(text)))
        };
        while !self.machines.iter().any(has) {
            sleep(LOOK).await;
        }
    }

    /// The unit that runs for a node pool.
    pub(crate) fn unit_of(&self, pool: &str) -> String {
        let begins = format!("np-{pool}-");
        let mut running = self.machines.iter().flat_map(SimulatedMachine::running);
        running
            .find(|name| name.starts_with(&begins))
            .expect("it runs")
    }

    /// Waits until the stored file of a unit has a text.
    pub(crate) async fn until_stored(&self, unit: &str, text: &str) {
        loop {
            let found = self.fleet.find_unit(unit).await.expect("it is there");
            if found
                .options
                .iter()
                .any(|option| option.value.contains(text))
            {
                return;
            }
            sleep(LOOK).await;
        }
    }

    /// Waits until that many node pools are reconciled.
    pub(crate) async fn until_reconciled(&self, count: usize) {
        let client = self.client();
        let path =
            format!("{ROOT}/nodepools?size=1&search=status.conditions.Reconciled%3D%27True%27");
        while client.get(&path).await["total"].as_u64() != Some(count as u64) {
            sleep(Duration::from_millis(50)).await;
        }
    }

    pub(crate) async fn destroy_all(&self) {
        loop {
            let page = self.fleet.list_units(None).await.expect("a list");
            if page.items.is_empty() {
                break;
            }
            for unit in page.items {
                self.fleet
                    .destroy_unit(&unit.name)
                    .await
                    .expect("destroyed");
            }
        }
        self.until_running(0).await;
    }

    /// The newest revision of etcd: one more for each write.
    pub(crate) async fn revision(&self) -> i64 {
        let found = self.keys.commit(hyperfleet_fleet::keys::Transaction {
            then: vec![hyperfleet_fleet::keys::KeyOperation::Get(
                "/none".to_owned(),
            )],
            ..Default::default()
        });
        found.await.expect("etcd answers").revision
    }

    /// Seconds of processors that the service has had.
    pub(crate) fn api_processor(&self) -> f64 {
        processor(&self.api.id().to_string())
    }
}

/// Starts the service and its PostgreSQL, with the adapter required of node pools. Writes go to the disk.
fn start_api() -> (Child, String, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("config.yaml");
    let entities = json!({"entities": [
        {"kind": "Cluster", "plural": "clusters", "required_adapters": ["fleet"]},
        {"kind": "NodePool", "plural": "nodepools", "parent_kind": "Cluster", "on_parent_delete": "cascade", "required_adapters": ["fleet"]},
    ]});
    std::fs::write(&config, entities.to_string()).expect("a file");
    let free = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    let port = free.expect("a free port").port();
    let log = std::fs::File::create(folder.path().join("log")).expect("a log");
    let api = Command::new("setpriv")
        .args([
            "--pdeathsig",
            "TERM",
            "--",
            env!("CARGO_BIN_EXE_hyperfleet-api"),
            "dev",
        ])
        .arg("--config")
        .arg(&config)
        .arg("--data-dir")
        .arg(folder.path().join("data"))
        .args(["--server-port", &port.to_string(), "--log-level", "warn"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("setpriv, of util-linux");
    (api, format!("http://127.0.0.1:{port}"), folder)
}

/// An adapter in this process.
pub(crate) struct Adapter {
    task: JoinHandle<()>,
    mirror: JoinHandle<()>,
}

impl Adapter {
    /// Starts one with nothing in memory: its mirror is its own.
    pub(crate) async fn start(scene: &Scene, workers: usize) -> Self {
        let registry = Registry::new(scene.keys.clone(), Prefix::default());
        let fleet = Fleet::new(registry, 100);
        let mirror = tokio::spawn(fleet.clone().run_mirror());
        let settings = Settings {
            workers,
            ..hyperfleet::config::Settings::default().fleet.adapter
        };
        let workloads = Workloads::compile("fleet", &[workload()]).expect("they are right");
        let running = Running {
            settings,
            fleet,
            store: scene.keys.clone(),
            api: Api::new(&scene.base, Token::None).expect("an address"),
            workloads: Arc::new(workloads),
            instance: "bench".to_owned(),
            keys: approval::keys("/fleet/v3/", "fleet"),
            kinds: vec!["clusters".to_owned(), "nodepools".to_owned()],
            grace: Duration::from_secs(30),
        };
        // The lease of one that was killed is not what is measured.
        let delete = hyperfleet_fleet::keys::KeyOperation::Delete(format!("{}lease", running.keys));
        let released = scene.keys.commit(hyperfleet_fleet::keys::Transaction {
            then: vec![delete],
            ..Default::default()
        });
        released.await.expect("etcd answers");
        Self {
            task: tokio::spawn(run(running, std::future::pending())),
            mirror,
        }
    }

    pub(crate) async fn kill(self) {
        self.task.abort();
        self.mirror.abort();
        let _ = tokio::join!(self.task, self.mirror);
    }
}

/// Requests to the service.
#[derive(Clone)]
pub(crate) struct Client {
    base: String,
    http: reqwest::Client,
}

impl Client {
    async fn send(&self, request: reqwest::RequestBuilder) -> Value {
        let answer = request
            .header("Content-Type", "application/json")
            .send()
            .await
            .expect("an answer");
        assert!(answer.status().is_success(), "{}", answer.status());
        let body = answer.bytes().await.expect("a body");
        serde_json::from_slice(&body).expect("JSON")
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.send(self.http.get(format!("{}{path}", self.base)))
            .await
    }

    /// Creates a resource; its path.
    async fn post(&self, path: &str, body: Value) -> String {
        let made = self
            .send(
                self.http
                    .post(format!("{}{path}", self.base))
                    .body(body.to_string()),
            )
            .await;
        made["href"].as_str().expect("a path").to_owned()
    }

    pub(crate) async fn make_pool(&self, cluster: &str, name: &str, spec: Value) -> String {
        let body = json!({"kind": "NodePool", "name": name, "spec": spec});
        self.post(&format!("{cluster}/nodepools"), body).await
    }

    pub(crate) async fn find_pool(&self, cluster: &str, name: &str) -> String {
        let found = self
            .get(&format!("{cluster}/nodepools?search=name%3D%27{name}%27"))
            .await;
        found["items"][0]["href"]
            .as_str()
            .expect("a path")
            .to_owned()
    }

    pub(crate) async fn patch(&self, path: &str, body: Value) {
        self.send(
            self.http
                .patch(format!("{}{path}", self.base))
                .body(body.to_string()),
        )
        .await;
    }

    pub(crate) async fn until_reconciled(&self, path: &str) {
        loop {
            let found = self.get(path).await;
            let conditions = found["status"]["conditions"]
                .as_array()
                .expect("conditions");
            let is_true = |c: &Value| {
                c["type"] == "Reconciled"
                    && c["status"] == "True"
                    && c["observed_generation"] == found["generation"]
            };
            if conditions.iter().any(is_true) {
                return;
            }
            sleep(LOOK).await;
        }
    }
}

pub(crate) async fn submit(fleet: &EtcdFleet, name: &str) {
    let request = SetUnit {
        options: Some(vec![UnitOption::new(
            "Service",
            "ExecStart",
            "/usr/bin/agent",
        )]),
        desired: Some(DesiredState::Launched),
    };
    fleet.set_unit(name, request).await.expect("stored");
}

/// Seconds of processors that this process has had.
pub(crate) fn own_processor() -> f64 {
    processor("self")
}

fn processor(pid: &str) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = text.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2);
    ticks
        .filter_map(|ticks| ticks.parse::<f64>().ok())
        .sum::<f64>()
        / 100.0
}
