//! Fleet at scale: agents of many machines, and ten thousand units, on one etcd.
//!
//! `make bench-fleet` prints tables; it exits with 1 if a target is missed. etcd and two fleetd are the real
//! programs, the agents are real except for systemd, and all share this machine. `ARGS="units=500 machines=10
//! idle=5"` makes it smaller; `ARGS="machines=1000 lost=100"` larger.
#![expect(
    clippy::cast_precision_loss,
    reason = "counts and times are far below 2^52"
)]

mod agent;
mod ceiling;
mod figures;
mod processes;
mod seen;
mod starts;
mod steps;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use hyperfleet_fleet::etcd::{EtcdKeys, Settings};
use hyperfleet_fleet::registry::{Prefix, Registry};

use figures::Figures;
use hyperfleet_testkit::{PrivateSystemd, SimulatedMachine, named_counts};
use processes::{Etcd, Fleetd};
use seen::Seen;

/// Sizes of the measurement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) machines: usize,
    pub(crate) units: usize,
    /// Length of the idle phase, in seconds.
    pub(crate) idle_seconds: u64,
    /// Units that are submitted one by one.
    pub(crate) singles: usize,
    /// Machines that are lost at once.
    pub(crate) lost: usize,
}

impl Size {
    fn read() -> Self {
        let mut size = Self {
            machines: 200,
            units: 10_000,
            idle_seconds: 60,
            singles: 200,
            lost: 1,
        };
        for (name, count) in named_counts() {
            match name.as_str() {
                "machines" => size.machines = count,
                "units" => size.units = count,
                "singles" => size.singles = count,
                "lost" => size.lost = count,
                "idle" => size.idle_seconds = count as u64,
                _ => panic!("machines=, units=, singles=, lost= or idle=, not {name}="),
            }
        }
        size
    }
}

/// All running processes.
pub(crate) struct Scene {
    pub(crate) size: Size,
    pub(crate) etcd: Etcd,
    /// The first one leads at the beginning.
    pub(crate) fleetds: [Fleetd; 2],
    pub(crate) agents: Vec<(String, SimulatedMachine)>,
    /// A machine whose systemd and fleetd are real; `None` where no systemd can run.
    pub(crate) real: Option<(PrivateSystemd, Fleetd)>,
    pub(crate) seen: Seen,
    pub(crate) registry: Registry<EtcdKeys>,
    /// Sockets and logs.
    pub(crate) folder: tempfile::TempDir,
}

/// Lease of agents: fleetd's default.
const MACHINE_LEASE_SECONDS: u32 = 30;

/// A separate connection.
pub(crate) fn connect(etcd: &Etcd) -> EtcdKeys {
    let settings = Settings::plain(vec![etcd.url.clone()]);
    EtcdKeys::prepare(settings).expect("a plain address")
}

impl Scene {
    async fn set(size: Size) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let etcd = Etcd::start().await;
        let registry = Registry::new(connect(&etcd), Prefix::default());
        let seen = Seen::start(&registry);
        let first = Fleetd::start(&etcd, folder.path(), "engine-a").await;
        seen.until("an engine leads", |times| times.leader.clone())
            .await;
        let second = Fleetd::start(&etcd, folder.path(), "engine-b").await;
        let mut agents = Vec::new();
        for number in 0..size.machines {
            let id = format!("machine-{number:04}");
            let registry = Registry::new(connect(&etcd), Prefix::default());
            let agent = SimulatedMachine::start(registry, &id, MACHINE_LEASE_SECONDS);
            agents.push((id, agent));
        }
        let mut real = None;
        if let Some(systemd) = PrivateSystemd::start().await {
            let program = Path::new(env!("CARGO_BIN_EXE_fleetd"));
            let fleetd = Fleetd::start_on(&etcd, &systemd, program, false).await;
            real = Some((systemd, fleetd));
        }
        let machines = size.machines + usize::from(real.is_some());
        let is_complete = |times: &seen::Times| (times.machines == machines).then_some(());
        seen.until("all machines", is_complete).await;
        Self {
            size,
            etcd,
            fleetds: [first, second],
            agents,
            real,
            seen,
            registry,
            folder,
        }
    }
}

async fn measure(size: Size) -> Figures {
    let mut figures = Figures::default();
    println!("{size:?}, etcd syncs every write to disk");
    agent::idle_agent(size.idle_seconds, &mut figures).await;
    let ceiling = ceiling::measure().await;
    let mut scene = Scene::set(size).await;
    starts::starts(&scene, &mut figures);
    steps::burst(&scene, ceiling).await;
    steps::idle(&scene, &mut figures).await;
    steps::singles(&scene, &mut figures).await;
    steps::lists(&scene, &mut figures).await;
    starts::whole_list(&scene);
    steps::lose_machines(&mut scene).await;
    steps::hand_over(&mut scene, &mut figures).await;
    for (id, agent) in &scene.agents {
        let stopped = agent.stopped();
        assert!(
            stopped.is_empty(),
            "{id}, which is well, has stopped {stopped:?}"
        );
        if agent.status().registrations > 1 {
            println!("{id} was silent for longer than its lease: this machine is too busy");
        }
    }
    figures
}

fn main() -> ExitCode {
    let size = Size::read();
    hyperfleet_server_kit::crypto::install();
    processes::allow_many_files();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("threads");
    // On this thread: the processes that it starts end with it.
    let figures = runtime.block_on(measure(size));
    runtime.shutdown_timeout(Duration::from_secs(1));
    if figures.missed().is_empty() {
        println!("\nevery aim is met");
        return ExitCode::SUCCESS;
    }
    println!("\nmissed: {}", figures.missed().join(", "));
    ExitCode::FAILURE
}
