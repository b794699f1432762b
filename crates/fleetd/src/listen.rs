//! fleetd's listeners: those that the service manager passes, or else those of the settings.

use std::net::IpAddr;
use std::time::Duration;

use crate::settings::{Address, Listen};
use hyperfleet_server_kit::activation;
use hyperfleet_server_kit::server::Listener;
use hyperfleet_server_kit::sockets;
use hyperfleet_server_kit::unix_socket::{self as socket, SocketFile};

/// Takes the passed sockets. Without any it binds those of the settings, unless the API is disabled. The files must be
/// dropped when no further client should connect.
///
/// # Errors
/// A socket that cannot be bound, with the setting to change.
pub(super) fn open(
    handed_over: Vec<Listener>,
    listen: &Listen,
    write_time: Duration,
) -> anyhow::Result<(Vec<Listener>, Vec<SocketFile>)> {
    let (mut listeners, mut files) = (handed_over, Vec::new());
    if listeners.is_empty() && !listen.is_disabled {
        for address in &listen.addresses {
            listeners.push(bind(address, listen.socket_mode, &mut files)?);
        }
    }
    for listener in &listeners {
        if let Listener::Tcp(socket) = listener {
            sockets::give_up_after(socket, write_time)?;
        }
    }
    Ok((listeners, files))
}

fn bind(address: &Address, mode: u32, files: &mut Vec<SocketFile>) -> anyhow::Result<Listener> {
    match address {
        Address::Unix(path) => {
            let (listener, file) = socket::listen(path, mode)?;
            files.push(file);
            Ok(Listener::Unix(listener))
        }
        Address::Tcp { host, port } => {
            let bound = sockets::listen(host, *port);
            let bound = bound.map_err(|error| {
                anyhow::anyhow!(
                    "cannot listen on {address}: {error}; name another with listen = tcp:host:port"
                )
            })?;
            Ok(Listener::Tcp(bound))
        }
    }
}

/// Where clients connect.
#[derive(Debug, Clone)]
pub(super) enum Doors {
    /// The listeners of the settings.
    Named,
    /// Listeners passed by the service manager: the first one that other machines can reach.
    HandedOver(Option<String>),
}

impl Doors {
    /// The doors for these passed listeners.
    pub(super) fn of(handed_over: &[Listener]) -> Self {
        if handed_over.is_empty() {
            return Self::Named;
        }
        let mut sockets = handed_over.iter();
        let reachable = sockets.find(|listener| match listener {
            Listener::Unix(_) => false,
            Listener::Tcp(socket) => {
                let address = socket.local_addr();
                !address.is_ok_and(|address| is_loopback(address.ip()))
            }
        });
        Self::HandedOver(reachable.map(activation::address))
    }

    /// Whether the service manager has passed listeners.
    pub(super) fn are_handed_over(&self) -> bool {
        matches!(self, Self::HandedOver(_))
    }

    /// The first listener that other machines can reach.
    pub(super) fn reachable(&self, listen: &Listen) -> Option<String> {
        match self {
            Self::HandedOver(reachable) => reachable.clone(),
            Self::Named if listen.is_disabled => None,
            Self::Named => {
                let mut addresses = listen.addresses.iter();
                let reachable = addresses.find(|address| match address {
                    Address::Unix(_) => false,
                    Address::Tcp { host, .. } => !is_of_this_machine(host),
                });
                reachable.map(ToString::to_string)
            }
        }
    }
}

/// Whether a host is this machine without asking a resolver.
pub(super) fn is_of_this_machine(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(is_loopback)
}

fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::settings;

    fn listen(addresses: &[&str]) -> Listen {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("fleet.conf");
        std::fs::write(&file, format!("listen = {}", addresses.join(","))).unwrap();
        settings::load(Some(&file)).unwrap().settings.listen
    }

    #[test]
    fn what_other_machines_may_reach_is_known() {
        let own = listen(&[
            "unix:/a",
            "tcp:127.0.0.2:1",
            "tcp:[::1]:1",
            "tcp:localhost:1",
        ]);
        assert_eq!(own.addresses.len(), 4);
        assert_eq!(Doors::of(&[]).reachable(&own), None);
        for address in [
            "tcp:0.0.0.0:1",
            "tcp:[::]:1",
            "tcp:10.0.0.1:1",
            "tcp:name:1",
        ] {
            let listen = listen(&["unix:/a", address]);
            let reachable = Doors::of(&[]).reachable(&listen);
            assert_eq!(reachable.as_deref(), Some(address));
            // Passed listeners replace the settings.
            let socket = TcpListener::bind("127.0.0.1:0").unwrap();
            let doors = Doors::of(&[Listener::Tcp(socket)]);
            assert_eq!(doors.reachable(&listen), None);
        }
        let socket = TcpListener::bind("0.0.0.0:0").unwrap();
        let shown = format!("tcp:{}", socket.local_addr().unwrap());
        let doors = Doors::of(&[Listener::Tcp(socket)]);
        assert_eq!(doors.reachable(&own), Some(shown));
    }
}
