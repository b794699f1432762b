//! The listeners for health and metrics, which each serving command of this program has (`serve`, `dev`,
//! `fleet-adapter run`).

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use anyhow::Context as _;
use hyperfleet_server_kit::http::{self as kit_http, Gate};
use hyperfleet_server_kit::side::Side;
use hyperfleet_server_kit::telemetry::Metrics;
use hyperfleet_server_kit::{sockets, tls as kit_tls};

use super::tls;
use crate::config::Settings;
use hyperfleet_service::http;

/// The running listeners.
pub(super) struct Sides {
    health: Side,
    metrics: Side,
}

/// Bound sockets; nothing answers on them yet.
pub(super) struct SideSockets {
    health: TcpListener,
    metrics: TcpListener,
}

impl SideSockets {
    /// # Errors
    ///
    /// An address that cannot be bound, with the flag to change.
    pub(super) fn bind(settings: &Settings) -> anyhow::Result<Self> {
        let bind = |host: &str, port, name| {
            sockets::bind(host, port, name, settings.server.timeouts.write)
        };
        Ok(Self {
            health: bind(&settings.health.host, settings.health.port, "health")?,
            metrics: bind(&settings.metrics.host, settings.metrics.port, "metrics")?,
        })
    }

    pub(super) fn health_address(&self) -> io::Result<SocketAddr> {
        self.health.local_addr()
    }

    pub(super) fn metrics_address(&self) -> io::Result<SocketAddr> {
        self.metrics.local_addr()
    }

    /// Answers on both, by at most `connections_max` connections each, and follows changes of the certificates.
    pub(super) fn start(
        self,
        tls: tls::Configs,
        connections_max: usize,
        gate: &Gate,
        metrics: &Metrics,
    ) -> anyhow::Result<Sides> {
        let rendered = metrics.clone();
        let sides = Sides {
            metrics: Side::start(
                "metrics",
                self.metrics,
                tls.metrics,
                connections_max,
                http::wording,
                kit_http::metrics(Arc::new(move || rendered.render())),
            )?,
            health: Side::start(
                "health",
                self.health,
                tls.health,
                connections_max,
                http::wording,
                kit_http::health(gate.clone()),
            )?,
        };
        tokio::spawn(metrics.clone().upkeep());
        kit_tls::watch(tls.watched).context("cannot watch the certificates")?;
        Ok(sides)
    }
}

impl Sides {
    /// Waits until one of them ends by itself, which it should not.
    pub(super) async fn failed(&mut self) -> anyhow::Error {
        tokio::select! {
            error = self.health.failed() => error,
            error = self.metrics.failed() => error,
        }
    }

    /// Stops them; health answers until the end.
    pub(super) async fn stop(self) {
        self.metrics.stop().await;
        self.health.stop().await;
    }
}
