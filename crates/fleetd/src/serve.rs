//! The API on its listeners.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;

use super::BUILD;
use crate::settings::{Listen, Loaded, Settings};
use hyperfleet_fleet::EtcdFleet;
use hyperfleet_fleet::api::{self, FleetApi, Hosts};
use hyperfleet_fleet::inspect::Inspector;
use hyperfleet_server_kit::clock::Clock;
use hyperfleet_server_kit::files;
use hyperfleet_server_kit::http::{Admission, Gate};
use hyperfleet_server_kit::server::{ConnectionOptions, Listener, Server, Serving};
use hyperfleet_server_kit::sockets::{self, ConnectionBudget, Needs};
use hyperfleet_server_kit::telemetry::{self, Metrics};

/// Setting of the maximum number of connections.
const CONNECTIONS: &str = "max_connections";
/// File with this machine's host name (`proc_sys_kernel(5)`).
const HOST_NAME: &str = "/proc/sys/kernel/hostname";
const HOST_NAME_BYTES_MAX: u64 = 256;

/// The parts that the API uses.
pub(super) struct Served {
    pub(super) fleet: EtcdFleet,
    pub(super) gate: Gate,
    pub(super) metrics: Metrics,
    pub(super) machine_id: String,
}

/// Starts to serve.
pub(super) fn start(
    listeners: Vec<Listener>,
    tls: Option<ServerConfig>,
    served: Served,
    loaded: &Loaded,
) -> io::Result<Serving> {
    let settings = &loaded.settings;
    let (limits, times) = (&settings.limits, &settings.timeouts);
    let api = FleetApi {
        inspector: inspector(settings, &served.machine_id),
        fleet: served.fleet,
        clock: Clock::system(),
        version: BUILD.version,
        admission: Admission::new(served.gate, &sockets::admission(limits, times)),
        redaction: telemetry::redaction(&settings.logging.masking, Vec::new()),
        scrape: Arc::new(move || served.metrics.render()),
        hosts: hosts(&settings.listen),
    };
    let connections = ConnectionBudget::of(&Needs {
        connections_max: limits.max_connections,
        key: CONNECTIONS,
        is_configured: loaded.origin(CONNECTIONS).is_some(),
        others: 0,
        has_sides: false,
    });
    let options = ConnectionOptions::new(times, connections.api, tls);
    let memory = api.admission.budget().clone();
    let app = move || api::fleet_app(api.clone());
    Ok(Server::bind(listeners, app, Some(memory), &options)?.start())
}

/// Without an agent this machine runs no units, and other machines are still asked.
fn inspector(settings: &Settings, machine_id: &str) -> Inspector {
    let (bus, files) = (settings.agent.bus(), settings.listen.peer_files());
    Inspector::of_machine(machine_id, bus, files)
}

/// Without client certificates a web page could make a browser on this machine call the API, so only own host
/// names are accepted. Where anonymous clients from elsewhere are allowed, the check would protect nothing, and
/// those clients use names that only they know.
fn hosts(listen: &Listen) -> Hosts {
    if listen.is_anonymous || !listen.client_ca_file.as_os_str().is_empty() {
        return Hosts::Any;
    }
    let name = files::read_text(Path::new(HOST_NAME), HOST_NAME_BYTES_MAX).ok();
    let name = name.map(|name| name.trim().to_owned());
    Hosts::Own(name.filter(|name| !name.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names_are_checked_only_if_the_listener_is_local() {
        let mut listen = Listen {
            addresses: Vec::new(),
            socket_mode: 0o660,
            cert_file: "".into(),
            key_file: "".into(),
            client_ca_file: "".into(),
            is_anonymous: false,
            is_disabled: false,
        };
        assert!(matches!(hosts(&listen), Hosts::Own(_)));
        listen.is_anonymous = true;
        assert_eq!(hosts(&listen), Hosts::Any);
        listen.is_anonymous = false;
        listen.client_ca_file = "/a/ca.pem".into();
        assert_eq!(hosts(&listen), Hosts::Any);
    }
}
