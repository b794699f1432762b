//! The agent as a task that stops only on request, in the configured way.

use std::collections::BTreeMap;
use std::net::UdpSocket;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::BUILD;
use crate::settings;
use hyperfleet_fleet::EtcdFleet;
use hyperfleet_fleet::agent::{self, Leave, Status};
use hyperfleet_fleet::registry::MachineRecord;
use hyperfleet_server_kit::supervise::{PAUSE, supervise};

/// An internet address (TEST-NET-1, RFC 5737). Nothing is sent to it: the route to it selects this machine's
/// own address.
const ELSEWHERE: &str = "192.0.2.1:9";

pub(super) struct Agent {
    stop: watch::Sender<Option<Leave>>,
    has_left: watch::Receiver<bool>,
    /// Ends with this.
    task: JoinHandle<()>,
    leave: Leave,
    /// The machine's description.
    machine: watch::Sender<MachineRecord>,
    status: watch::Receiver<Status>,
}

impl Agent {
    /// Starts the agent, which retries after every failure.
    pub(super) fn start(
        fleet: &EtcdFleet,
        settings: &settings::AgentSettings,
        lease: std::time::Duration,
        machine_id: &str,
    ) -> Self {
        let bus = settings.bus();
        let described = watch::Sender::new(machine(settings));
        let told = agent::Settings {
            id: machine_id.to_owned(),
            machine: described.subscribe(),
            lease,
            units_directory: settings.units_directory.clone(),
            offline_directory: settings.offline_directory(),
        };
        agent::count_from_zero();
        let registry = fleet.registry().clone();
        let status = watch::Sender::<Status>::default();
        let shown = status.subscribe();
        fleet.set_own_machine(machine_id, status.subscribe());
        let (stop, stopping) = watch::channel(None);
        let (left, has_left) = watch::channel(false);
        let task = tokio::spawn(supervise("run units", PAUSE, move || {
            let agent = agent::Agent::new(registry.clone(), bus, told.clone());
            let agent = agent.with_status(status.clone());
            let (mut until, left) = (stopping.clone(), left.clone());
            async move {
                let stop = async {
                    let told = until.wait_for(Option::is_some).await;
                    told.ok().and_then(|told| *told).unwrap_or(Leave::Running)
                };
                let ended = Box::pin(agent.run(stop)).await;
                if let Err(error) = &ended {
                    tracing::error!(%error, "the agent cannot use units_directory");
                }
                if until.borrow().is_some() {
                    left.send_replace(true);
                    std::future::pending::<()>().await;
                }
            }
        }));
        Self {
            stop,
            has_left,
            task,
            leave: settings.leave(),
            machine: described,
            status: shown,
        }
    }

    /// Its status, also after it has stopped.
    pub(super) fn status(&self) -> watch::Receiver<Status> {
        self.status.clone()
    }

    /// Whether units move to other machines before it stops.
    pub(super) fn hands_over(&self) -> bool {
        self.leave == Leave::Moved
    }

    /// Applies settings that can change at run time: the machine's description, and what happens to units at
    /// the stop.
    pub(super) fn apply(&mut self, settings: &settings::AgentSettings) {
        self.leave = settings.leave();
        let now = machine(settings);
        self.machine.send_if_modified(|before| {
            let is_new = *before != now;
            *before = now;
            is_new
        });
    }

    /// Stops it in the configured way, and waits for its end.
    pub(super) async fn leave(mut self) {
        self.stop.send_replace(Some(self.leave));
        // The send fails only if the agent has ended.
        let _ = self.has_left.wait_for(|has_left| *has_left).await;
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn machine(settings: &settings::AgentSettings) -> MachineRecord {
    let ip = match settings.public_ip.as_str() {
        "" => own_address().unwrap_or_default(),
        ip => ip.to_owned(),
    };
    MachineRecord {
        ip,
        address: settings.advertise_address.clone(),
        metadata: settings.pairs(),
        version: BUILD.version.to_owned(),
        halted: false,
        capacity: BTreeMap::new(),
    }
}

/// The address from which this machine reaches others.
fn own_address() -> Option<String> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect(ELSEWHERE).ok()?;
    Some(socket.local_addr().ok()?.ip().to_string())
}
