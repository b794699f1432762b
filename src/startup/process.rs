//! One process that serves: its listeners, what runs beside them, how it starts and how it ends.
//!
//! ```text
//! sockets ▸ health, metrics ▸ API behind a shut gate ▸ database, schema ▸ gate open
//! signal ▸ not ready ▸ delay ▸ no new connections, drain ▸ database closed ▸ metrics, health
//! ```

use std::future::Future;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use rustls::ServerConfig;

use super::build::BUILD;
use super::listeners::{Addresses, Sockets};
use super::metrics::ApiMetrics;
use super::plan::Plan;
use super::{authentication, beside, database, readiness, telemetry, tls};
use crate::app::Service;
use crate::auth::Authentication;
use crate::config::Settings;
use crate::domain::tenancy::Rules;
use crate::http::{self, Admission, Api, Document, Gate, Scrape};
use crate::storage::postgres::{Probe, Store};
use hyperfleet_fleet::EtcdFleet;
use hyperfleet_fleet::start::Prepared;
use hyperfleet_server_kit::clock::Clock;
use hyperfleet_server_kit::server::{Listener, Options, Server, Serving};
use hyperfleet_server_kit::side::{self, Side};
use hyperfleet_server_kit::signals::Signals;
use hyperfleet_server_kit::sockets::{self, Needs, Room};
use hyperfleet_server_kit::telemetry::{FLUSH_TIME_MAX, Telemetry, Traces};
use hyperfleet_server_kit::{ending, shutdown};

/// How long the end may take beyond `health.shutdown_delay` and `health.shutdown_timeout`: what
/// docs/deployment.md promises to whoever sets a grace period.
const END_TIME_MAX: Duration = Duration::from_secs(4);
const _: () = assert!(
    FLUSH_TIME_MAX.as_millis() <= END_TIME_MAX.as_millis()
        && 2 * side::DRAIN_TIME.as_millis() <= END_TIME_MAX.as_millis()
);

/// A process that can be asked how it is, and does not serve yet.
pub(super) struct Process {
    /// Where it listens.
    pub(super) addresses: Addresses,
    pub(super) gate: Gate,
    pub(super) signals: Signals,
    /// Until the API has it: nobody else may keep it open.
    listener: Option<TcpListener>,
    room: Room,
    tls: Option<ServerConfig>,
    sides: Sides,
    metrics: ApiMetrics,
    traces: Traces,
}

/// What the API is made of, beside the settings.
struct Parts {
    service: Service,
    authentication: Authentication,
    tenancy: Rules,
    fleet: Option<EtcdFleet>,
}

/// The listeners of health and metrics.
pub(super) struct Sides {
    health: Side,
    metrics: Side,
}

impl Process {
    /// Binds every listener and answers on those of health and metrics.
    ///
    /// # Errors
    ///
    /// An address that cannot be had.
    pub(super) fn start(
        settings: &Settings,
        mut tls: tls::Configs,
        telemetry: Telemetry,
    ) -> anyhow::Result<Self> {
        let metrics = ApiMetrics::new(telemetry.metrics.clone());
        let shown = metrics.clone();
        let scrape: Scrape = Arc::new(move || shown.render());
        let signals = Signals::catch()?;
        let sockets = Sockets::bind(settings)?;
        let addresses = sockets.addresses()?;
        let room = Room::of(&Needs {
            connections_max: settings.server.limits.max_connections,
            key: "server.limits.max_connections",
            others: settings.database.pool.max_connections,
            has_sides: true,
        });
        let gate = Gate::starting();
        let sides = Sides {
            health: Side::health(
                sockets.health,
                tls.health.take(),
                room.side,
                http::wording,
                gate.clone(),
            )?,
            metrics: Side::metrics(
                sockets.metrics,
                tls.metrics.take(),
                room.side,
                http::wording,
                scrape,
            )?,
        };
        // From now on requests are answered, and counted, if only by saying that there is no service.
        tokio::spawn(telemetry.metrics.upkeep());
        tls.watch().context("cannot watch the certificates")?;
        tracing::info!(
            api = %addresses.api, health = %addresses.health, metrics = %addresses.metrics,
            "listening"
        );
        Ok(Self {
            addresses,
            gate,
            signals,
            listener: Some(sockets.api),
            room,
            tls: tls.api.take(),
            sides,
            metrics,
            traces: telemetry.traces,
        })
    }

    /// Waits for something that the start needs; `None` if a signal comes first.
    pub(super) async fn unless_ended<T>(&mut self, step: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = step => Some(done),
            () = self.signals.next() => {
                tracing::info!("told to end while starting");
                None
            }
        }
    }

    /// Serves until a signal comes or a listener fails, and ends in order. Answers requests once
    /// the database is there, and calls `ready` then.
    ///
    /// # Errors
    ///
    /// The database cannot be used; a listener failed; requests had to be cut at the end.
    pub(super) async fn serve(
        mut self,
        settings: &Settings,
        plan: Plan,
        store: Store,
        ready: impl FnOnce(&Addresses, &Authentication),
    ) -> anyhow::Result<()> {
        let lists_include_deleted = settings.lists.include_deleted;
        let service = Service::new(store.clone(), plan.registry, lists_include_deleted);
        self.metrics.show(&service);
        service.count_from_zero();
        let authentication = authentication::start(plan.issuers, &Clock::system());
        let fleet = plan.fleet.map(Prepared::new).transpose()?;
        let parts = Parts {
            service: service.clone(),
            authentication: authentication.clone(),
            tenancy: plan.tenancy,
            fleet: fleet.as_ref().map(|prepared| prepared.fleet.clone()),
        };
        let mut serving = self.open(settings, parts)?;
        let connections = database::connections(&settings.database)?;
        let mut probe = Probe::new(connections.clone());
        let gate = self.gate.clone();
        let before = async {
            readiness::wait(&mut probe, settings, &gate).await?;
            authentication::settle(&authentication).await;
            anyhow::Ok(())
        };
        tokio::select! {
            done = before => done?,
            () = self.signals.next() => {
                tracing::info!("told to end while starting");
                return Ok(());
            }
            error = failure(&mut serving, &mut self.sides) => return Err(error),
        }
        gate.open();
        ready(&self.addresses, &authentication);
        let parts = beside::Parts {
            store: store.clone(),
            service,
            metrics: self.metrics.clone(),
            gate: gate.clone(),
            fleet,
            probe,
            connections,
        };
        let mut beside = beside::start(parts, settings);
        let failed = tokio::select! {
            () = self.signals.next() => Ok(()),
            error = failure(&mut serving, &mut self.sides) => Err(error),
        };
        let times = shutdown::Times {
            // Nobody has to notice that a listener is gone: it is gone already.
            delay: if failed.is_ok() {
                settings.health.shutdown_delay
            } else {
                Duration::ZERO
            },
            drain: settings.health.shutdown_timeout,
            drain_setting: "health.shutdown_timeout",
        };
        if let Err(error) = &failed {
            tracing::error!("stopping: {error:#}");
        }
        let drained = shutdown::drain(&gate, &serving, &mut self.signals, times).await;
        let rest = async {
            beside.shutdown().await;
            store.close();
            // Beside each other, so that all of it takes no longer than END_TIME_MAX.
            tokio::join!(self.traces.end(), self.sides.stop());
        };
        tokio::select! {
            () = rest => failed.and(drained),
            () = self.signals.next() => ending::at_once(),
        }
    }

    /// Starts the API behind its gate.
    fn open(&mut self, settings: &Settings, parts: Parts) -> anyhow::Result<Serving> {
        let server = &settings.server;
        let limits = sockets::admission(&server.limits, &server.timeouts);
        let api = Api {
            service: parts.service,
            clock: Clock::system(),
            build: BUILD,
            authentication: parts.authentication,
            admission: Admission::new(self.gate.clone(), &limits),
            masks: telemetry::masks(settings),
            tenancy: parts.tenancy,
            fleet: parts.fleet,
        };
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        let options = Options {
            // Each thread has connections of its own: one at least.
            workers: processors.min(settings.database.pool.max_connections.max(1)),
            connections_max: self.room.api,
            head_time: server.timeouts.read,
            idle_time: server.timeouts.idle,
            tls: self.tls.take(),
        };
        let listener = self.listener.take().context("the API has its listener")?;
        let server = bind(listener, &api, &options)?;
        Ok(server.start())
    }
}

impl Sides {
    /// Metrics first: how the service is, is asked until the end.
    async fn stop(self) {
        self.metrics.stop().await;
        self.health.stop().await;
    }
}

/// Binds the API to a listener.
///
/// # Errors
///
/// The machine does not give what a server needs.
pub fn bind(listener: TcpListener, api: &Api, options: &Options) -> io::Result<Server> {
    let memory = api.admission.budget().clone();
    let document = http::openapi(api.service.registry(), api.build.version);
    let document = Document::new(&document);
    let (api, workers) = (api.clone(), options.workers);
    // Runs once per thread.
    let app = move || {
        let service = api.service.share(workers);
        let api = Api {
            service,
            ..api.clone()
        };
        http::app(api, document.clone())
    };
    Server::bind(vec![Listener::Tcp(listener)], app, memory, options)
}

/// Waits until a listener ends by itself, which none should.
async fn failure(serving: &mut Serving, sides: &mut Sides) -> anyhow::Error {
    tokio::select! {
        error = serving.failed() => error,
        error = sides.health.failed() => error,
        error = sides.metrics.failed() => error,
    }
}
