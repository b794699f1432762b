//! Where the service listens: every socket is bound before anything is started.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use anyhow::anyhow;
use rustix::net::sockopt;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::config::Settings;

/// Connections that may wait to be accepted: all that the kernel lets wait by its own default. The
/// standard library asks for 128, which a burst of clients fills before a busy thread comes by.
pub(crate) const BACKLOG: i32 = 4096;
/// Connections of clients of health, and as many of metrics: of a few orchestrators and collectors.
const SIDE_CONNECTIONS_MAX: u64 = 1024;
/// Descriptors that are needed besides those of clients and of requests' connections to the database:
/// what each thread waits with, the probe, issuers, the collector, files, pipes.
const DESCRIPTORS_SPARE: u64 = 256;
/// Descriptors of a connection: the second is to end it when its client takes too long.
const DESCRIPTORS_EACH: u64 = 2;

/// The sockets of the three listeners.
pub(crate) struct Sockets {
    pub(crate) api: TcpListener,
    pub(crate) health: TcpListener,
    pub(crate) metrics: TcpListener,
}

/// Where they really are, port 0 told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Addresses {
    pub(crate) api: SocketAddr,
    pub(crate) health: SocketAddr,
    pub(crate) metrics: SocketAddr,
}

impl Sockets {
    /// Binds all three.
    ///
    /// # Errors
    ///
    /// An address that cannot be had, with the flag to change.
    pub(crate) fn bind(settings: &Settings) -> anyhow::Result<Self> {
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

    pub(crate) fn addresses(&self) -> io::Result<Addresses> {
        Ok(Addresses {
            api: self.api.local_addr()?,
            health: self.health.local_addr()?,
            metrics: self.metrics.local_addr()?,
        })
    }
}

fn bind(host: &str, port: u16, name: &str) -> anyhow::Result<TcpListener> {
    listen(host, port).map_err(|error| cannot_listen(&error, host, port, name))
}

/// Listens for clients, with room for a burst of them.
pub(crate) fn listen(host: &str, port: u16) -> io::Result<TcpListener> {
    let socket = TcpListener::bind((host, port))?;
    socket.set_nonblocking(true)?;
    rustix::net::listen(&socket, BACKLOG)?;
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
pub(crate) fn give_up_after(socket: &TcpListener, time: Duration) -> io::Result<()> {
    let milliseconds = u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
    Ok(sockopt::set_tcp_user_timeout(socket, milliseconds)?)
}

/// How many connections of clients there is room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    /// Of the API.
    pub(crate) api: usize,
    /// Of health, and as many of metrics.
    pub(crate) side: usize,
}

impl Room {
    /// As many as the settings want, if the machine allows so many open files. Raises the limit of
    /// the process as far as it goes.
    pub(crate) fn of(settings: &Settings) -> Self {
        let wanted = settings.server.limits.max_connections;
        let limit = raised_limit();
        let room = Self::within(limit, wanted, settings.database.pool.max_connections);
        if let Some(limit) = limit
            && room.api < wanted
        {
            tracing::info!(
                "server.limits.max_connections is {wanted}, but with {limit} open files there is room for {}: \
                 raise the limit (ulimit -Hn, LimitNOFILE=)",
                room.api
            );
        }
        room
    }

    /// As many connections as `key` asks for, for a program that has one listener and no database, if the machine
    /// allows so many open files.
    pub(crate) fn of_one(wanted: usize, key: &str) -> usize {
        let limit = raised_limit();
        let room = limit.map_or(wanted, |limit| {
            let pairs = limit.saturating_sub(DESCRIPTORS_SPARE) / DESCRIPTORS_EACH;
            wanted.min(usize::try_from(pairs).unwrap_or(usize::MAX).max(1))
        });
        if let Some(limit) = limit
            && room < wanted
        {
            tracing::info!(
                "{key} is {wanted}, but with {limit} open files there is room for {room}: \
                 raise the limit (ulimit -Hn, LimitNOFILE=)"
            );
        }
        room
    }

    /// The room that so many open files leave beside those connections to the database. Health and
    /// metrics have a quarter of it at most, and each listener one connection at least.
    fn within(limit: Option<u64>, wanted: usize, database: usize) -> Self {
        let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX).max(1);
        let Some(limit) = limit else {
            let side = count(SIDE_CONNECTIONS_MAX);
            return Self { api: wanted, side };
        };
        let used = DESCRIPTORS_SPARE.saturating_add(database as u64);
        let pairs = limit.saturating_sub(used) / DESCRIPTORS_EACH;
        let side = (pairs / 4 / 2).min(SIDE_CONNECTIONS_MAX);
        Self {
            api: wanted.min(count(pairs - 2 * side)),
            side: count(side),
        }
    }
}

/// Raises the number of files that the process may have open to what it may raise it to. Gives that;
/// unset for any number.
fn raised_limit() -> Option<u64> {
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
    getrlimit(Resource::Nofile).current
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
        raised_limit();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
    }

    #[test]
    fn all_that_is_open_at_a_time_fits_into_the_limit() {
        for limit in [1024, 4096, 20_000, 65_536, 1_048_576] {
            for (wanted, database) in [(1, 1), (10_000, 16), (10_000, 500), (1_000_000, 16)] {
                let room = Room::within(Some(limit), wanted, database);
                let clients = 2 * (room.api + 2 * room.side) as u64;
                let sum = clients + database as u64 + DESCRIPTORS_SPARE;
                assert!(sum <= limit, "{limit} {wanted} {database}: {room:?}");
                assert!(room.api == wanted || sum + 8 > limit, "{limit}: {room:?}");
            }
        }
        let wide = Room {
            api: 10_000,
            side: 1024,
        };
        assert_eq!(Room::within(Some(1_048_576), 10_000, 16), wide);
        assert_eq!(Room::within(None, 10_000, 16), wide);
        // So few that nothing fits: they are tried all the same.
        let least = Room { api: 1, side: 1 };
        assert_eq!(Room::within(Some(100), 10_000, 16), least);
    }

    #[test]
    fn a_burst_of_clients_waits_to_be_accepted() {
        let listener = bind("127.0.0.1", 0, "server").unwrap();
        let address = listener.local_addr().unwrap();
        let kernel = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap();
        let burst = kernel.trim().parse::<usize>().unwrap().min(300);
        let connect = |_| TcpStream::connect_timeout(&address, Duration::from_secs(5));
        let clients: Result<Vec<_>, _> = (0..burst).map(connect).collect();
        assert_eq!(clients.unwrap().len(), burst);
    }
}
