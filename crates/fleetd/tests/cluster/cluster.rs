//! Clusters of machines with fleetd as a service and one etcd.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use futures_util::future::join_all;
use hyperfleet_testkit::{
    Authority, MachineSetup, PrivateMachine, PrivateNetwork, TestEtcd, until,
};
use reqwest::Method;
use serde_json::Value;

use super::fleet_socket::{FleetSocket, SLEEP};
use super::local::{free_port, is_there};

/// Short, so that a dead machine is noticed soon.
pub(super) const AGENT_TTL: Duration = Duration::from_secs(5);
const SERVICES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/systemd");
/// Where agents keep the files of units.
const UNITS: &str = "/run/fleet/units";

/// Active units, each with its machine.
pub(super) type Placed = BTreeSet<(String, String)>;

pub(super) struct Cluster {
    pub(super) machines: Vec<PrivateMachine>,
    pub(super) etcd: Vec<TestEtcd>,
    /// `None`: all share the network of this machine.
    pub(super) network: Option<PrivateNetwork>,
    /// The machine whose API is used, unless a test names one.
    pub(super) endpoint: usize,
}

impl FleetSocket {
    /// Sets the desired state of a unit that exists.
    pub(super) async fn set(&self, unit: &str, desired: &str) {
        self.put(unit, &[], desired).await;
    }

    /// Tells agents that have halted to go on.
    pub(super) async fn resume(&self) {
        let answer = self.request(Method::POST, "/fleet/v1/resume").await;
        assert_eq!(answer.status().as_u16(), 204);
    }
}

impl Cluster {
    /// Machines that share the network of this machine. Machine `n` has the metadata `host=m<n>`. `None` where no machine
    /// can be booted.
    pub(super) async fn boot(count: u32, settings: &[(&str, &str)]) -> Option<Self> {
        let etcd = TestEtcd::start().await;
        Self::boot_on(vec![etcd], None, count, settings).await
    }

    /// Machines and an etcd in a network of their own, so that links of machines can be cut.
    pub(super) async fn boot_apart(count: u32) -> Option<Self> {
        let network = PrivateNetwork::create().await?;
        let etcd = TestEtcd::start_within(&network).await;
        Self::boot_on(vec![etcd], Some(network), count, &[]).await
    }

    pub(super) async fn boot_on(
        etcd: Vec<TestEtcd>,
        network: Option<PrivateNetwork>,
        count: u32,
        settings: &[(&str, &str)],
    ) -> Option<Self> {
        assert!(is_there("nsenter"), "of util-linux, as setpriv");
        let mut cluster = Self {
            machines: Vec::new(),
            etcd,
            network,
            endpoint: 0,
        };
        let ids = (1..=count).map(|number| (number, PrivateMachine::id_of(number)));
        let booting = ids.map(|(number, id)| cluster.boot_machine(number, id, settings));
        let booted: Option<Vec<_>> = join_all(booting).await.into_iter().collect();
        cluster.machines = booted?;
        cluster.until_members(&cluster.ids()).await;
        Some(cluster)
    }

    /// Machines whose fleetd ask each other, over mutual TLS on ports of the loopback.
    pub(super) async fn boot_with_peers(count: u32) -> Option<Self> {
        let authority = Authority::new();
        let ca = std::fs::read_to_string(authority.file()).unwrap();
        let settings = [
            ("LISTEN_CERT_FILE", "/opt/cert.pem"),
            ("LISTEN_KEY_FILE", "/opt/key.pem"),
            ("LISTEN_CLIENT_CA_FILE", "/opt/ca.pem"),
        ];
        let mut cluster = Self::without_machines().await;
        for number in 1..=count {
            let address = format!("127.0.0.1:{}", free_port());
            let issued = authority.issue("127.0.0.1");
            let socket = format!("[Socket]\nListenStream={address}\n");
            let files = [
                ("bin/cert.pem", issued.certificate),
                ("bin/key.pem", issued.key),
                ("bin/ca.pem", ca.clone()),
                ("units/fleetd.socket.d/tcp.conf", socket),
            ];
            let files = files.map(|(path, text)| (path.to_owned(), text));
            let settings = [&settings[..], &[("ADVERTISE_ADDRESS", &address)]].concat();
            cluster.add_machine(number, &settings, &files).await?;
        }
        Some(cluster)
    }

    /// One machine with further files ([`MachineSetup::files`]).
    pub(super) async fn boot_one(
        settings: &[(&str, &str)],
        files: &[(String, String)],
    ) -> Option<Self> {
        let mut cluster = Self::without_machines().await;
        cluster.add_machine(1, settings, files).await?;
        Some(cluster)
    }

    async fn without_machines() -> Self {
        Self {
            machines: Vec::new(),
            etcd: vec![TestEtcd::start().await],
            network: None,
            endpoint: 0,
        }
    }

    async fn add_machine(
        &mut self,
        number: u32,
        settings: &[(&str, &str)],
        files: &[(String, String)],
    ) -> Option<()> {
        let id = PrivateMachine::id_of(number);
        let machine = self.boot_machine_with(number, id, settings, files).await?;
        self.machines.push(machine);
        self.until_members(&self.ids()).await;
        Some(())
    }

    /// One more machine, which is not yet among those of the cluster.
    pub(super) async fn boot_machine(
        &self,
        number: u32,
        id: String,
        settings: &[(&str, &str)],
    ) -> Option<PrivateMachine> {
        self.boot_machine_with(number, id, settings, &[]).await
    }

    /// The same, with further files ([`MachineSetup::files`]).
    async fn boot_machine_with(
        &self,
        number: u32,
        id: String,
        settings: &[(&str, &str)],
        files: &[(String, String)],
    ) -> Option<PrivateMachine> {
        let urls: Vec<_> = self.etcd.iter().map(TestEtcd::url).collect();
        let (urls, ttl) = (urls.join(","), format!("{}s", AGENT_TTL.as_secs()));
        let metadata = format!("host=m{number}");
        let mut all = vec![("ETCD_SERVERS", urls.as_str()), ("AGENT_TTL", &ttl)];
        all.push(("METADATA", &metadata));
        all.extend(settings);
        let setup = MachineSetup {
            number,
            id,
            fleetd: Path::new(env!("CARGO_BIN_EXE_fleetd")),
            services: Path::new(SERVICES),
            settings: &all,
            files,
            network: self.network.as_ref(),
        };
        PrivateMachine::boot(&setup).await
    }

    /// Runs a scenario, which must clean up.
    pub(super) async fn play(&self, name: &str, scenario: impl AsyncFnOnce(&Self)) {
        let since = Instant::now();
        println!("scenario {name}");
        scenario(self).await;
        self.until_empty().await;
        println!("scenario {name}: {:?}", since.elapsed());
    }

    pub(super) fn api(&self) -> FleetSocket {
        Self::api_of(&self.machines[self.endpoint])
    }

    pub(super) fn api_of(machine: &PrivateMachine) -> FleetSocket {
        FleetSocket::at(&machine.socket())
    }

    /// Ids of running machines.
    pub(super) fn ids(&self) -> BTreeSet<String> {
        let machines = self.machines.iter().filter(|machine| machine.is_running());
        machines.map(|machine| machine.id.clone()).collect()
    }

    pub(super) fn machine(&self, id: &str) -> &PrivateMachine {
        let mut machines = self.machines.iter();
        machines.find(|machine| machine.id == id).unwrap()
    }

    /// Where in the list a machine is.
    pub(super) fn index(&self, id: &str) -> usize {
        let mut machines = self.machines.iter();
        machines.position(|machine| machine.id == id).unwrap()
    }

    pub(super) async fn until_members(&self, ids: &BTreeSet<String>) {
        until(&format!("the members are {ids:?}"), async || {
            let machines = self.api().list("machines").await;
            let members = machines.iter().map(|machine| text(&machine["id"]));
            members.collect::<BTreeSet<_>>() == *ids
        })
        .await;
    }

    /// Launches a unit that runs until it is stopped; tried again while etcd is not back yet.
    pub(super) async fn launch(&self, unit: &str) {
        until(&format!("{unit} is accepted"), async || {
            let answer = self.api().try_put(unit, &SLEEP, "launched").await;
            matches!(answer, Some((200..=299, _)))
        })
        .await;
    }

    /// Launches a unit that runs until it is stopped, with these lines besides.
    pub(super) async fn launch_with(&self, unit: &str, lines: &[&str]) {
        let lines = [&SLEEP, lines].concat();
        self.api().put(unit, &lines, "launched").await;
    }

    pub(super) async fn destroy(&self, units: &[impl AsRef<str>]) {
        let api = self.api();
        for unit in units {
            api.destroy(unit.as_ref()).await;
        }
    }

    /// Units that are reported in this state of systemd.
    pub(super) async fn reported(&self, active: &str) -> Placed {
        let states = self.api().list("state").await;
        let states = states.iter();
        let states = states.filter(|state| state["systemdActiveState"] == active);
        states
            .map(|state| (text(&state["name"]), text(&state["machineID"])))
            .collect()
    }

    /// Waits until exactly this number of units is reported to be active.
    pub(super) async fn until_active(&self, count: usize) -> Placed {
        self.until_reported("active", count).await
    }

    pub(super) async fn until_reported(&self, active: &str, count: usize) -> Placed {
        let mut placed = Placed::new();
        until(&format!("{count} units are {active}"), async || {
            placed = self.reported(active).await;
            placed.len() == count
        })
        .await;
        placed
    }

    /// The machine on which a unit is reported to be active, as soon as there is exactly one.
    pub(super) async fn until_active_on(&self, unit: &str) -> String {
        let mut machines = Vec::new();
        until(&format!("{unit} is active on one machine"), async || {
            let active = self.reported("active").await;
            let active = active.into_iter().filter(|(name, _)| name == unit);
            machines = active.map(|(_, machine)| machine).collect();
            machines.len() == 1
        })
        .await;
        machines.remove(0)
    }

    /// Waits until there are no units, no states of them, and no files of them on the machines that run.
    pub(super) async fn until_empty(&self) {
        until("nothing is left", async || {
            let api = self.api();
            api.list("units").await.is_empty()
                && api.list("state").await.is_empty()
                && self
                    .machines
                    .iter()
                    .all(|machine| files(machine).is_empty())
        })
        .await;
    }

    /// Main processes of units where they run, as systemd knows them.
    pub(super) fn processes(&self, placed: &Placed) -> BTreeMap<(String, String), String> {
        let mut processes = BTreeMap::new();
        for machine in self.machines.iter().filter(|machine| machine.is_running()) {
            let here: Vec<_> = placed.iter().filter(|(_, id)| *id == machine.id).collect();
            let units: Vec<_> = here.iter().map(|(unit, _)| unit.as_str()).collect();
            if !units.is_empty() {
                let pids = machine.properties(&units, "MainPID");
                processes.extend(here.into_iter().cloned().zip(pids));
            }
        }
        assert!(processes.values().all(|pid| pid != "0"), "{processes:?}");
        processes
    }

    /// Cuts the link of a machine.
    pub(super) fn cut(&self, index: usize) {
        let network = self.network.as_ref().unwrap();
        network.cut(self.machines[index].number);
    }

    pub(super) fn heal(&self, index: usize) {
        let network = self.network.as_ref().unwrap();
        network.heal(self.machines[index].number);
    }

    /// Waits until one engine leads; returns the index of its machine.
    pub(super) async fn leader(&self) -> usize {
        let mut leaders = Vec::new();
        until("one engine leads", async || {
            leaders.clear();
            for (index, machine) in self.machines.iter().enumerate() {
                if machine.is_running()
                    && Self::api_of(machine).metric("fleet_engine_leading").await == Some(1.0)
                {
                    leaders.push(index);
                }
            }
            leaders.len() == 1
        })
        .await;
        leaders[0]
    }

    /// Waits until the leading engine treats missing machines as lost: at the start of its term it gives them
    /// the time of a lease to return. Returns the index of its machine.
    pub(super) async fn settled_leader(&self) -> usize {
        let leader = self.leader().await;
        let api = Self::api_of(&self.machines[leader]);
        until("the term of the engine is older than a lease", async || {
            let start = api.metric("fleet_engine_leader_start_time").await.unwrap();
            let now = SystemTime::UNIX_EPOCH.elapsed().unwrap();
            start > 0.0 && now.as_secs_f64() - start > AGENT_TTL.as_secs_f64() + 1.0
        })
        .await;
        leader
    }
}

/// Additional time for a machine that does other work too: none if `make test-cluster` says that one test runs at a time.
pub(super) fn busy_time(seconds: u64) -> Duration {
    let is_alone = std::env::var_os("CLUSTER_ALONE").is_some();
    Duration::from_secs(if is_alone { 0 } else { seconds })
}

/// How long etcd is unreachable: `OUTAGE_SECONDS`, or three times as long as machines count as members without
/// it.
pub(super) fn outage() -> Duration {
    let seconds = std::env::var("OUTAGE_SECONDS").ok();
    let seconds = seconds.map(|seconds| seconds.parse().expect("OUTAGE_SECONDS: a number"));
    seconds.map_or(AGENT_TTL * 3, Duration::from_secs)
}

/// Names of the unit files on a machine.
pub(super) fn files(machine: &PrivateMachine) -> Vec<String> {
    if !machine.is_running() {
        return Vec::new();
    }
    let Ok(entries) = std::fs::read_dir(machine.file(UNITS)) else {
        return Vec::new();
    };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| !name.starts_with('.')).collect()
}

pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Units `<stem>1.service` to `<stem><count>.service`.
pub(super) fn names(stem: &str, count: usize) -> Vec<String> {
    (1..=count)
        .map(|number| format!("{stem}{number}.service"))
        .collect()
}

/// Those of the units that are on one machine.
pub(super) fn units_on(placed: &Placed, machine: &str) -> BTreeSet<String> {
    let here = placed.iter().filter(|(_, id)| id == machine);
    here.map(|(unit, _)| unit.clone()).collect()
}
