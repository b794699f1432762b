//! The API on its listeners.

use std::io;
use std::path::Path;
use std::sync::Arc;

use actix_web::HttpServer;
use rustix::net::sockopt;
use rustls::ServerConfig;

use crate::auth::Authentication;
use crate::clock::Clock;
use crate::config::fleetd::{Listen, Settings};
use crate::domain::tenancy;
use crate::files;
use crate::fleet::EtcdFleet;
use crate::http::{self, Admission, FleetApi, Gate, Hosts, Limits};
use crate::startup::commands::BUILD;
use crate::startup::server::{self, Connections, Listener, Options, SEND_BYTES, Serving, serve_on};
use crate::startup::sockets::Room;
use crate::startup::telemetry::{self, Metrics};

/// Where the kernel tells what this machine is called (`proc_sys_kernel(5)`).
const HOST_NAME: &str = "/proc/sys/kernel/hostname";
const HOST_NAME_BYTES_MAX: u64 = 256;

/// What it is served from.
pub(super) struct Parts {
    pub(super) fleet: EtcdFleet,
    pub(super) gate: Gate,
    pub(super) metrics: Metrics,
    pub(super) tls: Option<ServerConfig>,
}

/// Answers from now on.
pub(super) fn start(
    listeners: Vec<Listener>,
    parts: Parts,
    settings: &Settings,
) -> io::Result<Serving> {
    for listener in &listeners {
        if let Listener::Tcp(socket) = listener {
            sockopt::set_socket_send_buffer_size(socket, SEND_BYTES)?;
        }
    }
    let (limits, times) = (&settings.limits, &settings.timeouts);
    let Parts {
        fleet,
        gate,
        metrics,
        tls,
    } = parts;
    let limits_of_requests = Limits {
        in_flight_max: limits.max_in_flight,
        buffered_bytes_max: limits.max_buffered_mib * 1024 * 1024,
        body_time: times.read,
        rate_per_second: limits.rate.per_second,
        rate_burst: limits.rate.burst,
    };
    let api = FleetApi {
        fleet,
        clock: Clock::system(),
        build: BUILD,
        // Who may call is settled by the socket's permissions, and by TLS.
        authentication: Authentication::Off,
        admission: Admission::new(gate, &limits_of_requests),
        masks: telemetry::masks_without_tokens(&settings.logging),
        tenancy: tenancy::Rules::default(),
        scrape: Arc::new(move || metrics.render()),
        hosts: hosts(&settings.listen),
    };
    let options = Options {
        workers: std::thread::available_parallelism().map_or(2, usize::from),
        connections_max: Room::of_one(limits.max_connections, "max_connections"),
        head_time: times.read,
        idle_time: times.idle,
        tls,
    };
    let memory = api.admission.budget().clone();
    let connections = Connections::default();
    let counted = connections.clone();
    let idle_time = options.idle_time.saturating_add(options.head_time);
    let app = move || http::fleet_app(api.clone());
    let running = serve_on!(app, listeners, &options, move |io, data| {
        let guard = counted.join();
        http::Connection::open(data, server::socket(io), idle_time, Some(&memory), guard);
    })?;
    Ok(Serving::start(running, connections))
}

/// Where no certificate says who calls, a browser on this machine could be made to. Where anybody else may call,
/// too, that gains nobody anything, and others call by names that only they know.
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
    fn only_where_this_machine_alone_may_call_names_are_looked_at() {
        let mut listen = Listen {
            addresses: Vec::new(),
            socket_mode: 0o660,
            cert_file: "".into(),
            key_file: "".into(),
            client_ca_file: "".into(),
            is_anonymous: false,
        };
        assert!(matches!(hosts(&listen), Hosts::Own(_)));
        listen.is_anonymous = true;
        assert_eq!(hosts(&listen), Hosts::Any);
        listen.is_anonymous = false;
        listen.client_ca_file = "/a/ca.pem".into();
        assert_eq!(hosts(&listen), Hosts::Any);
    }
}
