//! Sockets passed by the service manager (`sd_listen_fds(3)`): any number, TCP and unix mixed.

use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;

use anyhow::{Context as _, bail};
use listenfd::ListenFd;
use rustix::net::sockopt;

use crate::server::Listener;

/// The passed sockets; none if the process was started by hand.
///
/// Call it before any thread starts: it removes its variables from the environment, so that children do not
/// inherit them.
///
/// # Errors
/// One of them is no listening socket.
pub fn passed_listeners() -> anyhow::Result<Vec<Listener>> {
    // Without it the variables are for another process.
    if std::env::var_os("LISTEN_PID").is_none() {
        return Ok(Vec::new());
    }
    let mut sockets = ListenFd::from_env();
    let taken = (0..sockets.len()).map(|index| {
        let taken = take(&mut sockets, index);
        taken.with_context(|| format!("socket {index} passed by the service manager (LISTEN_FDS)"))
    });
    taken.collect()
}

fn take(sockets: &mut ListenFd, index: usize) -> anyhow::Result<Listener> {
    if let Ok(Some(socket)) = sockets.take_tcp_listener(index) {
        check(&socket)?;
        socket.set_nonblocking(true)?;
        return Ok(Listener::Tcp(socket));
    }
    let unix: Option<UnixListener> = sockets.take_unix_listener(index).ok().flatten();
    let Some(socket) = unix else {
        bail!("it is neither a TCP socket nor a unix stream socket: use ListenStream= only");
    };
    check(&socket)?;
    socket.set_nonblocking(true)?;
    Ok(Listener::Unix(socket))
}

/// Checks that clients can connect to it; a socket of one connection (`Accept=yes`) is refused.
fn check(socket: impl AsFd) -> anyhow::Result<()> {
    if sockopt::socket_acceptconn(socket)? {
        return Ok(());
    }
    bail!("it does not listen: remove Accept=yes, and use ListenStream= only")
}

/// Its address, for people.
pub fn address(listener: &Listener) -> String {
    match listener {
        Listener::Tcp(socket) => {
            let address = socket.local_addr();
            address.map_or_else(|_| "tcp: unknown".to_owned(), |a| format!("tcp:{a}"))
        }
        Listener::Unix(socket) => {
            let address = socket.local_addr().ok();
            let path = address.as_ref().and_then(|address| address.as_pathname());
            path.map_or_else(
                || "unix: without a path".to_owned(),
                |path| format!("unix:{}", path.display()),
            )
        }
    }
}
