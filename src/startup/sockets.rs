//! Where the service listens: every socket is bound before anything is started.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use anyhow::anyhow;
use rustix::net::sockopt;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::config::Settings;

/// Descriptors that are needed besides those of clients: connections to the database, files, pipes.
const DESCRIPTORS_SPARE: u64 = 512;
/// Descriptors of a connection: the second is to end it when its client takes too long.
const DESCRIPTORS_EACH: u64 = 2;

/// The sockets of the three listeners.
pub(super) struct Sockets {
    pub(super) api: TcpListener,
    pub(super) health: TcpListener,
    pub(super) metrics: TcpListener,
}

/// Where they really are, port 0 told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Addresses {
    pub(super) api: SocketAddr,
    pub(super) health: SocketAddr,
    pub(super) metrics: SocketAddr,
}

impl Sockets {
    /// Binds all three.
    ///
    /// # Errors
    ///
    /// An address that cannot be had, with the flag to change.
    pub(super) fn bind(settings: &Settings) -> anyhow::Result<Self> {
        let (server, health, metrics) = (&settings.server, &settings.health, &settings.metrics);
        let sockets = Self {
            api: bind(&server.host, server.port, "server")?,
            health: bind(&health.host, health.port, "health")?,
            metrics: bind(&metrics.host, metrics.port, "metrics")?,
        };
        for socket in [&sockets.api, &sockets.health, &sockets.metrics] {
            give_up_after(socket, server.timeouts.write)?;
        }
        Ok(sockets)
    }

    pub(super) fn addresses(&self) -> io::Result<Addresses> {
        Ok(Addresses {
            api: self.api.local_addr()?,
            health: self.health.local_addr()?,
            metrics: self.metrics.local_addr()?,
        })
    }
}

fn bind(host: &str, port: u16, name: &str) -> anyhow::Result<TcpListener> {
    let socket = TcpListener::bind((host, port));
    let socket = socket.map_err(|error| cannot_listen(&error, host, port, name))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn cannot_listen(error: &io::Error, host: &str, port: u16, name: &str) -> anyhow::Error {
    let advice = match error.kind() {
        ErrorKind::AddrInUse => format!("it is in use; choose another with --{name}-port"),
        ErrorKind::PermissionDenied => {
            format!("ports below 1024 are for root; choose another with --{name}-port")
        }
        _ => format!("choose an address of this machine with --{name}-host"),
    };
    anyhow!("cannot listen on {host}:{port}: {advice} ({error})")
}

/// Connections of this listener are closed once what was sent over them has not been taken for so
/// long: accepted sockets inherit `TCP_USER_TIMEOUT` on Linux. It bounds a client that takes
/// nothing at all, not one that takes a little now and then.
fn give_up_after(socket: &TcpListener, time: Duration) -> io::Result<()> {
    let milliseconds = u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
    Ok(sockopt::set_tcp_user_timeout(socket, milliseconds)?)
}

/// Raises the number of files that the process may have open to what it may raise it to, and gives
/// how many connections of clients then have room.
pub(super) fn room_for_connections(wanted: usize) -> usize {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let raised = Rlimit {
            current: limit.maximum,
            ..limit
        };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            tracing::warn!("the limit of open files stays as it is: {error}");
        }
    }
    let Some(limit) = getrlimit(Resource::Nofile).current else {
        return wanted;
    };
    let room = limit.saturating_sub(DESCRIPTORS_SPARE) / DESCRIPTORS_EACH;
    let room = usize::try_from(room).unwrap_or(usize::MAX).max(1);
    if room < wanted {
        tracing::info!(
            "server.limits.max_connections is {wanted}, but with {limit} open files there is room for {room}: \
             raise the limit (ulimit -Hn, LimitNOFILE=)"
        );
    }
    wanted.min(room)
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn accepted_connections_give_up_as_their_listener_says() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        give_up_after(&listener, Duration::from_secs(7)).unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        assert_eq!(sockopt::tcp_user_timeout(&accepted).unwrap(), 7000);
    }

    #[test]
    fn as_many_files_may_be_open_as_the_machine_allows() {
        assert_eq!(room_for_connections(1), 1);
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
        if let Some(limit) = limit.current {
            let room = room_for_connections(usize::MAX);
            assert!(u64::try_from(room).unwrap() <= limit);
        }
    }
}
