//! Listening sockets, and limits of connections.

use std::io::{self, ErrorKind};
use std::net::TcpListener;
use std::time::Duration;

use anyhow::anyhow;
use rustix::net::sockopt;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::http::Limits;
use crate::settings::{self, Timeouts};

/// Connections waiting to be accepted: the kernel's default maximum. The standard library uses 128, which a
/// burst of clients exceeds.
pub const BACKLOG: i32 = 4096;
/// Most connections for health, and for metrics: from a few orchestrators and collectors.
const SIDE_CONNECTIONS_MAX: u64 = 1024;
/// Descriptors that every program needs besides: event loops of threads, probes, issuers, the collector, files,
/// pipes.
const DESCRIPTORS_SPARE: u64 = 256;
/// Descriptors per connection. The second one is for closing it when its client is too slow.
const DESCRIPTORS_EACH: u64 = 2;

/// Binds the listener of `--{name}-host` and `--{name}-port`. Unread responses time out after `write_time`
/// ([`give_up_after`]).
///
/// # Errors
/// An address that cannot be bound, with the flag to change.
pub fn bind(
    host: &str,
    port: u16,
    name: &str,
    write_time: Duration,
) -> anyhow::Result<TcpListener> {
    let bound = listen(host, port);
    let socket = bound.map_err(|error| cannot_listen(&error, host, port, name))?;
    give_up_after(&socket, write_time)?;
    Ok(socket)
}

/// Listens with a large backlog.
pub fn listen(host: &str, port: u16) -> io::Result<TcpListener> {
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

/// Linux' minimum of `TCP_KEEPIDLE`.
const KEEPALIVE_MIN: Duration = Duration::from_secs(1);
const KEEPALIVE_MAX: Duration = Duration::from_secs(32767);

/// Closes connections of this listener whose client has acknowledged nothing for this time: accepted sockets
/// inherit `TCP_USER_TIMEOUT` on Linux. It bounds clients that read nothing at all, not slow readers. On silent
/// connections the kernel probes the client: an endless response would otherwise outlive a client that was cut
/// off.
pub fn give_up_after(socket: &TcpListener, time: Duration) -> io::Result<()> {
    let milliseconds = u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
    sockopt::set_tcp_user_timeout(socket, milliseconds)?;
    let time = time.clamp(KEEPALIVE_MIN, KEEPALIVE_MAX);
    sockopt::set_tcp_keepidle(socket, time)?;
    sockopt::set_tcp_keepintvl(socket, KEEPALIVE_MIN)?;
    Ok(sockopt::set_socket_keepalive(socket, true)?)
}

/// The admission by these settings.
pub fn admission(limits: &settings::LimitSettings, times: &Timeouts) -> Limits {
    Limits {
        in_flight_max: limits.max_in_flight,
        buffered_bytes_max: limits.max_buffered_mib * 1024 * 1024,
        body_time: times.read,
        rate_per_second: limits.rate.per_second,
        rate_burst: limits.rate.burst,
    }
}

/// The start logs a shortage above this number only if the setting is configured: this many suffice for a trial.
const CONNECTIONS_FEW: usize = 1000;

/// How many connections fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionBudget {
    pub api: usize,
    /// For health, and as many for metrics.
    pub side: usize,
}

/// A program's demand.
#[derive(Debug, Clone, Copy)]
pub struct Needs {
    /// Connections of its clients.
    pub connections_max: usize,
    /// The setting of that number.
    pub key: &'static str,
    /// Whether a source configures the setting. Its default is more than most programs need.
    pub is_configured: bool,
    /// Further descriptors of its requests.
    pub others: usize,
    /// Whether health and metrics have their own listeners.
    pub has_sides: bool,
}

impl ConnectionBudget {
    /// As many connections as a program needs, if the limit of open files allows. Raises the limit to its
    /// maximum.
    pub fn of(needs: &Needs) -> Self {
        let limit = raised_limit();
        let connections = Self::within(limit, needs);
        let (key, wanted) = (needs.key, needs.connections_max);
        if let Some(limit) = limit
            && connections.is_short(needs)
        {
            tracing::info!(
                key,
                wanted,
                open_files = limit,
                connections = connections.api,
                "fewer connections than set: raise the limit of open files (ulimit -Hn, LimitNOFILE=)"
            );
        }
        connections
    }

    /// Whether fewer connections fit than the operator expects.
    fn is_short(&self, needs: &Needs) -> bool {
        let expected = if needs.is_configured {
            needs.connections_max
        } else {
            needs.connections_max.min(CONNECTIONS_FEW)
        };
        self.api < expected
    }

    /// The connections within a limit of open files. Health and metrics get at most a quarter of it, and each
    /// listener at least one connection.
    fn within(limit: Option<u64>, needs: &Needs) -> Self {
        let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX).max(1);
        let sides = if needs.has_sides { 2 } else { 0 };
        let used = DESCRIPTORS_SPARE.saturating_add(needs.others as u64);
        let pairs = limit.map_or(u64::MAX, |limit| {
            limit.saturating_sub(used) / DESCRIPTORS_EACH
        });
        let side = (pairs / 4 / 2).min(SIDE_CONNECTIONS_MAX);
        Self {
            api: needs.connections_max.min(count(pairs - sides * side)),
            side: count(side),
        }
    }
}

/// Raises the limit of open files to its maximum, and returns it; `None` for no limit.
fn raised_limit() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let raised = Rlimit {
            current: limit.maximum,
            ..limit
        };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            tracing::warn!(%error, "raising the limit of open files failed");
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
        assert!(sockopt::socket_keepalive(&accepted).unwrap());
        assert_eq!(sockopt::tcp_keepidle(&accepted).unwrap().as_secs(), 7);
        assert_eq!(sockopt::tcp_keepintvl(&accepted).unwrap().as_secs(), 1);
    }

    #[test]
    fn as_many_files_may_be_open_as_the_machine_allows() {
        raised_limit();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
    }

    fn needs(connections_max: usize, others: usize) -> Needs {
        Needs {
            connections_max,
            key: "max_connections",
            is_configured: true,
            others,
            has_sides: true,
        }
    }

    #[test]
    fn a_default_is_not_worth_a_notice_where_enough_fits() {
        for (limit, is_configured, is_short) in [
            (1024, false, true),
            (4096, false, false),
            (4096, true, true),
            (1_048_576, true, false),
        ] {
            let needs = Needs {
                is_configured,
                ..needs(10_000, 16)
            };
            let connections = ConnectionBudget::within(Some(limit), &needs);
            assert_eq!(
                connections.is_short(&needs),
                is_short,
                "{limit}: {connections:?}"
            );
        }
    }

    #[test]
    fn all_that_is_open_at_a_time_fits_into_the_limit() {
        for limit in [1024, 4096, 20_000, 65_536, 1_048_576] {
            for (wanted, database) in [(1, 1), (10_000, 16), (10_000, 500), (1_000_000, 16)] {
                let connections = ConnectionBudget::within(Some(limit), &needs(wanted, database));
                let clients = 2 * (connections.api + 2 * connections.side) as u64;
                let sum = clients + database as u64 + DESCRIPTORS_SPARE;
                assert!(sum <= limit, "{limit} {wanted} {database}: {connections:?}");
                assert!(
                    connections.api == wanted || sum + 8 > limit,
                    "{limit}: {connections:?}"
                );
            }
        }
        let wide = ConnectionBudget {
            api: 10_000,
            side: 1024,
        };
        assert_eq!(
            ConnectionBudget::within(Some(1_048_576), &needs(10_000, 16)),
            wide
        );
        assert_eq!(ConnectionBudget::within(None, &needs(10_000, 16)), wide);
        // Nothing fits: the minimum is attempted anyway.
        let least = ConnectionBudget { api: 1, side: 1 };
        assert_eq!(
            ConnectionBudget::within(Some(100), &needs(10_000, 16)),
            least
        );
    }

    #[test]
    fn a_burst_of_clients_waits_to_be_accepted() {
        let listener = listen("127.0.0.1", 0).unwrap();
        let address = listener.local_addr().unwrap();
        let kernel = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap();
        let burst = kernel.trim().parse::<usize>().unwrap().min(300);
        let connect = |_| TcpStream::connect_timeout(&address, Duration::from_secs(5));
        let clients: Result<Vec<_>, _> = (0..burst).map(connect).collect();
        assert_eq!(clients.unwrap().len(), burst);
    }
}
