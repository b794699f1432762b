//! Where the API listens: every socket is bound before anything is started.

use std::io;
use std::net::{SocketAddr, TcpListener};

use crate::config::Settings;
use hyperfleet_server_kit::sockets;

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
            api: sockets::bind(&server.host, server.port, "server")?,
            health: sockets::bind(&health.host, health.port, "health")?,
            metrics: sockets::bind(&metrics.host, metrics.port, "metrics")?,
        };
        for socket in [&sockets.api, &sockets.health, &sockets.metrics] {
            sockets::give_up_after(socket, server.timeouts.write)?;
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
