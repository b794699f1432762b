//! Real agents on simulated machines: many of them, without a real systemd.
//!
//! Tests and `make bench-fleet` share this file.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use hyperfleet_fleet::Fleet;
use hyperfleet_fleet::agent::{Agent, Host, Leave, Settings, Status};
use hyperfleet_fleet::keys::KeyStore;
use hyperfleet_fleet::registry::{MachineRecord, Registry};
use tempfile::TempDir;
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};

use super::SimulatedSystemd;

/// An agent on its own machine. Dropped, it is lost with its machine.
#[derive(Debug)]
pub struct SimulatedMachine {
    pub systemd: SimulatedSystemd,
    folder: TempDir,
    description: watch::Sender<MachineRecord>,
    agent: RunningAgent,
}

#[derive(Debug)]
struct RunningAgent {
    status: watch::Receiver<Status>,
    stop: Option<oneshot::Sender<Leave>>,
    task: JoinHandle<()>,
}

impl Drop for RunningAgent {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl RunningAgent {
    fn start<S: KeyStore>(
        registry: Registry<S>,
        systemd: &SimulatedSystemd,
        settings: Settings,
    ) -> Self {
        let fleet = Fleet::new(registry, 1);
        let agent = Agent::new(&fleet, systemd.clone(), settings);
        let status = agent.status();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            // Many machines in one process would have as many mirrors, and only an agent that hands units over reads it.
            let mut mirror = JoinSet::new();
            let stop = async {
                let leave = stopped.await.unwrap_or(Leave::Running);
                if leave == Leave::Moved {
                    mirror.spawn(fleet.run_mirror());
                }
                leave
            };
            agent.run(stop).await.unwrap();
        });
        Self {
            status,
            stop: Some(stop),
            task,
        }
    }
}

impl SimulatedMachine {
    /// A machine with this lease.
    pub fn start<S: KeyStore>(registry: Registry<S>, id: &str, lease_seconds: u32) -> Self {
        Self::start_with(registry, id, lease_seconds, None)
    }

    /// A boot of a machine that is recognised after its next boot.
    pub fn start_on<S: KeyStore>(
        registry: Registry<S>,
        id: &str,
        lease_seconds: u32,
        host: Host,
    ) -> Self {
        Self::start_with(registry, id, lease_seconds, Some(host))
    }

    fn start_with<S: KeyStore>(
        registry: Registry<S>,
        id: &str,
        lease_seconds: u32,
        host: Option<Host>,
    ) -> Self {
        let folder = memory_folder();
        let systemd = SimulatedSystemd::new();
        let description = watch::Sender::new(MachineRecord {
            ip: "192.0.2.1".to_owned(),
            version: "1".to_owned(),
            ..MachineRecord::default()
        });
        let settings = Settings {
            host,
            ..settings(&folder, description.subscribe(), id, lease_seconds)
        };
        let agent = RunningAgent::start(registry, &systemd, settings);
        Self {
            systemd,
            folder,
            description,
            agent,
        }
    }

    /// Kills the agent's process, and starts another one on the same machine.
    pub fn restart<S: KeyStore>(&mut self, registry: Registry<S>, id: &str, lease_seconds: u32) {
        self.agent.task.abort();
        let described = self.description.subscribe();
        let settings = settings(&self.folder, described, id, lease_seconds);
        self.agent = RunningAgent::start(registry, &self.systemd, settings);
    }

    /// Changes the machine's description, as by other settings.
    pub fn describe(&self, change: impl FnOnce(&mut MachineRecord)) {
        self.description.send_modify(change);
    }

    /// Turns the machine off: its agent and its units end. Its agent's memory stays, as on a disk, for
    /// [`restart`](Self::restart).
    pub fn lose_power(&self) {
        self.agent.task.abort();
        self.systemd.boot();
    }

    /// Stops the agent gracefully.
    pub async fn leave(&mut self, leave: Leave) {
        let stop = self.agent.stop.take().expect("stopped once");
        stop.send(leave).expect("it runs");
        (&mut self.agent.task).await.unwrap();
    }

    pub fn status(&self) -> Status {
        self.agent.status.borrow().clone()
    }

    pub fn running(&self) -> BTreeSet<String> {
        self.systemd
            .with(|state| state.running.keys().cloned().collect())
    }

    /// Units that it was ordered to stop, oldest first.
    pub fn stopped(&self) -> Vec<String> {
        self.systemd.with(|state| state.stopped.clone())
    }
}

/// A folder in memory, as `/run` is, where an installed agent keeps its orders: it syncs that file for each of them.
fn memory_folder() -> TempDir {
    let shared_memory = Path::new("/dev/shm");
    if shared_memory.is_dir() {
        tempfile::tempdir_in(shared_memory).unwrap()
    } else {
        tempfile::tempdir().unwrap()
    }
}

fn settings(
    folder: &TempDir,
    machine: watch::Receiver<MachineRecord>,
    id: &str,
    lease_seconds: u32,
) -> Settings {
    Settings {
        id: id.to_owned(),
        machine,
        lease: Duration::from_secs(lease_seconds.into()),
        units_directory: folder.path().to_owned(),
        host: None,
    }
}
