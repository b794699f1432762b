//! The agent as a task that stops only on request, in the configured way.

use std::collections::BTreeMap;
use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::BUILD;
use crate::{hardware, settings};
use hyperfleet_fleet::EtcdFleet;
use hyperfleet_fleet::agent::{self, Leave, Status};
use hyperfleet_fleet::registry::MachineRecord;
use hyperfleet_server_kit::supervise::StoppableTask;

/// Addresses of the internet that are in no use (RFC 5737, RFC 3849), each with any address of its kind. Nothing is sent to
/// them: the route to them selects this machine's own address.
const ELSEWHERE: [(&str, &str); 2] = [("0.0.0.0:0", "192.0.2.1:9"), ("[::]:0", "[2001:db8::1]:9")];
/// How often the machine's own address is looked up: a network may come up after fleetd, or change.
const ADDRESS_PAUSE: Duration = Duration::from_secs(10);

pub(super) struct Agent {
    task: StoppableTask<Leave>,
    leave: Leave,
    /// The machine's description.
    machine: watch::Sender<MachineRecord>,
    /// Keeps the machine's address up to date, unless it is configured. Ends with this.
    following: JoinSet<()>,
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
        let machine = watch::Sender::new(machine(settings));
        let agent_settings = agent::Settings {
            id: machine_id.to_owned(),
            machine: machine.subscribe(),
            lease,
            units_directory: settings.units_directory.clone(),
            host: hardware::host(settings.state_directory.clone()),
        };
        agent::count_from_zero();
        let fleet = fleet.clone();
        let status_sender = watch::Sender::<Status>::default();
        let status = status_sender.subscribe();
        fleet.set_own_machine(machine_id, status.clone());
        let task = StoppableTask::start("run units", move |stop| {
            let agent = agent::Agent::new(&fleet, bus, agent_settings.clone());
            let agent = agent.with_status(status_sender.clone());
            async move {
                if let Err(error) = agent.run(stop).await {
                    tracing::error!(%error, "the agent cannot use units_directory");
                }
            }
        });
        Self {
            task,
            leave: settings.leave(),
            following: follow_address(settings, &machine),
            machine,
            status,
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
        self.following.abort_all();
        let mut now = machine(settings);
        self.machine.send_if_modified(|before| {
            if now.ip.is_empty() {
                now.ip.clone_from(&before.ip);
            }
            let is_new = *before != now;
            *before = now;
            is_new
        });
        self.following = follow_address(settings, &self.machine);
    }

    /// Stops it in the configured way, and waits for its end.
    pub(super) async fn leave(self) {
        self.task.stop(self.leave).await;
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

/// Updates the machine's address when it changes; does nothing if it is configured. While the machine has no address, as
/// without a network, the last one stays.
fn follow_address(
    settings: &settings::AgentSettings,
    machine: &watch::Sender<MachineRecord>,
) -> JoinSet<()> {
    let machine = settings.public_ip.is_empty().then(|| machine.clone());
    JoinSet::from_iter(machine.map(|machine| async move {
        loop {
            sleep(ADDRESS_PAUSE).await;
            let Some(ip) = own_address() else {
                continue;
            };
            machine.send_if_modified(|before| {
                let is_new = before.ip != ip;
                before.ip = ip;
                is_new
            });
        }
    }))
}

/// The address from which this machine reaches others: IPv4 where it has both.
fn own_address() -> Option<String> {
    ELSEWHERE.iter().find_map(|(any, elsewhere)| {
        let socket = UdpSocket::bind(any).ok()?;
        socket.connect(elsewhere).ok()?;
        let ip = socket.local_addr().ok()?.ip();
        is_reachable(ip).then(|| ip.to_string())
    })
}

/// Whether other machines may reach an address.
fn is_reachable(ip: IpAddr) -> bool {
    let is_link_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    !ip.is_unspecified() && !ip.is_loopback() && !is_link_local
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_link_or_machine_are_not_published() {
        for (ip, is_published) in [
            ("10.0.0.5", true),
            ("fd00::5", true),
            ("2001:db8::5", true),
            ("127.0.0.1", false),
            ("169.254.1.1", false),
            ("0.0.0.0", false),
            ("::1", false),
            ("fe80::1", false),
            ("::", false),
        ] {
            assert_eq!(is_reachable(ip.parse().unwrap()), is_published, "{ip}");
        }
    }
}
