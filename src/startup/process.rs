//! One process that serves: its listeners, its background tasks, its start and its shutdown.
//!
//! ```text
//! sockets ▸ health, metrics ▸ API behind a shut gate ▸ database, schema ▸ gate open
//! signal ▸ not ready ▸ delay ▸ no new connections, drain ▸ database closed ▸ metrics, health
//! ```

use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use anyhow::Context as _;
use rustls::ServerConfig;
use tokio::task::JoinSet;

use super::BUILD;
use super::metrics::ApiMetrics;
use super::plan::Plan;
use super::retention::{Retention, expire_forever};
use super::sides::{SideSockets, Sides};
use super::{authentication, database, loopback, readiness, sealing, telemetry, tls};
use crate::config::{Loaded, Settings};
use hyperfleet_auth::Authentication;
use hyperfleet_fleet::start::Prepared;
use hyperfleet_fleet_adapter::Role;
use hyperfleet_server_kit::clock::Clock;
use hyperfleet_server_kit::http::{Admission, Gate, QuietClient};
use hyperfleet_server_kit::server::{ConnectionOptions, Listener, Server, Serving};
use hyperfleet_server_kit::side;
use hyperfleet_server_kit::signals::Signals;
use hyperfleet_server_kit::sockets::{self, ConnectionBudget, Needs};
use hyperfleet_server_kit::supervise::supervise;
use hyperfleet_server_kit::telemetry::{FLUSH_TIME_MAX, Telemetry, Traces};
use hyperfleet_server_kit::{ending, manager, shutdown};
use hyperfleet_service::app::Service;
use hyperfleet_service::http::{self, ApiState, Document};
use hyperfleet_storage::{Probe, Store};

/// How long the shutdown may take beyond `health.shutdown_delay` and `health.shutdown_timeout`.
/// docs/operations/deployment.md promises it to operators who set a grace period.
const END_TIME_MAX: Duration = Duration::from_secs(4);
const _: () = assert!(
    FLUSH_TIME_MAX.as_millis() <= END_TIME_MAX.as_millis()
        && 2 * side::DRAIN_TIME.as_millis() <= END_TIME_MAX.as_millis()
);

/// Fewest connections to the database for each thread that answers requests, if there are enough: one for reads of
/// single resources, one that searches may hold, and one that no search holds.
const CONNECTIONS_PER_THREAD_MIN: usize = 3;

/// The setting for the number of clients.
const CONNECTIONS: &str = "server.limits.max_connections";

/// How long the start waits for issuers to answer; earlier requests wait themselves.
const KEY_FETCH_TIME_MAX: Duration = Duration::from_secs(5);

/// The addresses of the listeners, with the actual ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Addresses {
    pub(super) api: SocketAddr,
    pub(super) health: SocketAddr,
    pub(super) metrics: SocketAddr,
}

/// A process that answers health checks, and does not serve yet.
pub(super) struct Process {
    addresses: Addresses,
    gate: Gate,
    signals: Signals,
    /// Until the API takes it: no other part may keep it open.
    listener: Option<TcpListener>,
    connections: ConnectionBudget,
    tls: Option<ServerConfig>,
    sides: Sides,
    metrics: ApiMetrics,
    traces: Traces,
    quiet_client: Option<QuietClient>,
}

impl Process {
    /// Binds every listener, and serves health and metrics.
    ///
    /// # Errors
    ///
    /// An address that cannot be bound, with the flag to change.
    pub(super) fn start(
        loaded: &Loaded,
        mut tls: tls::Configs,
        telemetry: Telemetry,
    ) -> anyhow::Result<Self> {
        let settings = &loaded.settings;
        let metrics = ApiMetrics::new(telemetry.metrics.clone());
        let signals = Signals::catch()?;
        let server = &settings.server;
        // All of them before anything is started.
        let api_socket = sockets::bind(&server.host, server.port, "server", server.timeouts.write)?;
        let side_sockets = SideSockets::bind(settings)?;
        let addresses = Addresses {
            api: api_socket.local_addr()?,
            health: side_sockets.health_address()?,
            metrics: side_sockets.metrics_address()?,
        };
        let connections = ConnectionBudget::of(&Needs {
            connections_max: server.limits.max_connections,
            key: CONNECTIONS,
            is_configured: loaded.origin(CONNECTIONS).is_some(),
            others: settings.database.pool.max_connections,
            has_sides: true,
        });
        let gate = Gate::starting();
        metrics.show_readiness(gate.clone());
        // From now on requests are answered and counted, if only with 503.
        let api_tls = tls.api.take();
        let sides = side_sockets.start(tls, connections.side, &gate, &telemetry.metrics)?;
        tracing::info!(
            api = %addresses.api, health = %addresses.health, metrics = %addresses.metrics,
            "listening"
        );
        Ok(Self {
            addresses,
            gate,
            signals,
            listener: Some(api_socket),
            connections,
            tls: api_tls,
            sides,
            metrics,
            traces: telemetry.traces,
            quiet_client: None,
        })
    }

    /// Logs the requests of a client at level `debug`.
    pub(super) fn quieten(&mut self, client: QuietClient) {
        self.quiet_client = Some(client);
    }

    /// The gate of the API, which knows when the shutdown starts.
    pub(super) fn gate(&self) -> Gate {
        self.gate.clone()
    }

    /// Waits for a step of the start; `None` if a signal arrives first.
    pub(super) async fn unless_ended<T>(&mut self, step: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = step => Some(done),
            () = self.signals.next() => {
                tracing::info!("stopped while starting");
                None
            }
        }
    }

    /// Serves until a signal arrives or a listener fails, then stops gracefully. Answers requests once the database is
    /// available, and calls `ready` then.
    ///
    /// # Errors
    ///
    /// The database is unusable; a listener failed; requests were cut off at the end.
    pub(super) async fn serve(
        mut self,
        settings: &Settings,
        plan: Plan,
        store: Store,
        ready: impl FnOnce(&Addresses, &Authentication),
    ) -> anyhow::Result<()> {
        let lists_include_deleted = settings.lists.include_deleted;
        let service = Service::new(store.clone(), plan.registry, lists_include_deleted)
            .with_key_retention(settings.idempotency.retention);
        self.metrics.show(&service);
        service.count_from_zero();
        let authentication = authentication::start(plan.issuers, &Clock::system());
        let fleet = plan.fleet.map(Prepared::new).transpose()?;
        let adapter = plan.adapter.zip(fleet.clone());
        let server = &settings.server;
        let limits = sockets::admission(&server.limits, &server.timeouts);
        let api = ApiState {
            service: service.clone(),
            clock: Clock::system(),
            build: BUILD,
            authentication: authentication.clone(),
            admission: Admission::new(self.gate.clone(), &limits),
            redaction: telemetry::redaction(settings),
            tenancy: plan.tenancy,
            quiet_client: self.quiet_client,
            fleet: fleet.as_ref().map(|prepared| prepared.fleet.clone()),
        };
        let mut serving = self.open(settings, &api)?;
        // Every listener answers. A service manager does not wait for the database: `/readyz` reports it.
        manager::ready();
        let connections = database::connections(&settings.database)?;
        let gate = self.gate.clone();
        let before = async {
            let mut probe = Probe::new(connections.clone());
            readiness::wait(&mut probe, settings, &gate).await?;
            if let Authentication::On(authenticator) = &authentication {
                // An issuer that does not answer is tolerated: its tokens are refused until it does.
                authenticator.fetch_keys_once(KEY_FETCH_TIME_MAX).await;
            }
            anyhow::Ok(())
        };
        tokio::select! {
            done = before => done?,
            () = self.signals.next() => {
                tracing::info!("stopped while starting");
                return Ok(());
            }
            error = serving.failed() => return Err(error),
            error = self.sides.failed() => return Err(error),
        }
        gate.open();
        ready(&self.addresses, &authentication);
        let mut beside = self.spawn_background(settings, &store, service, connections);
        if let Some(fleet) = fleet {
            fleet.spawn(&mut beside);
        }
        // Only now: it calls this API.
        let own_url = loopback::url(self.addresses.api);
        let adapter = adapter.map(|(adapter, fleet)| {
            let end_time = settings.health.shutdown_timeout;
            Role::start(adapter, &fleet, Some(own_url), end_time)
        });
        let adapter = adapter.transpose()?;
        let failed = tokio::select! {
            () = self.signals.next() => Ok(()),
            error = serving.failed() => Err(error),
            error = self.sides.failed() => Err(error),
        };
        manager::stopping();
        // While the API still answers: work in progress can be reported.
        if let Some(adapter) = &adapter {
            adapter.stop();
        }
        let times = shutdown::Times {
            // After a failure the listener is gone already, so that nothing has to notice.
            delay: if failed.is_ok() {
                settings.health.shutdown_delay
            } else {
                Duration::ZERO
            },
            drain: settings.health.shutdown_timeout,
            drain_setting: "health.shutdown_timeout",
        };
        if let Err(error) = &failed {
            tracing::error!(error = format!("{error:#}"), "stopping after an error");
        }
        let drained = shutdown::drain(&gate, &serving, &mut self.signals, times).await;
        let rest = async {
            // Before the task that keeps the mirror of fleet.
            if let Some(adapter) = adapter {
                adapter.ended().await;
            }
            beside.shutdown().await;
            store.close();
            // Concurrently, so that all of it takes no longer than END_TIME_MAX.
            tokio::join!(self.traces.end(), self.sides.stop());
        };
        tokio::select! {
            () = rest => failed.and(drained),
            () = self.signals.next() => ending::at_once(),
        }
    }

    /// Starts the API behind its gate.
    fn open(&mut self, settings: &Settings, api: &ApiState) -> anyhow::Result<Serving> {
        let (times, tls) = (&settings.server.timeouts, self.tls.take());
        let mut options = ConnectionOptions::new(times, self.connections.api, tls);
        options.workers = threads(options.workers, settings.database.pool.max_connections);
        let listener = self.listener.take().context("the API has its listener")?;
        Ok(bind(listener, api, &options)?.start())
    }

    /// Starts the background tasks of a serving process. A task that panics is logged and restarts ([`supervise`]);
    /// all end with the returned value. `connections` makes the one that watches the database.
    fn spawn_background(
        &self,
        settings: &Settings,
        store: &Store,
        service: Service,
        connections: hyperfleet_storage::Settings,
    ) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        let trimmed = store.clone();
        tasks.spawn(supervise("close idle connections", move || {
            database::trim_forever(trimmed.clone())
        }));
        let ping_time = settings.health.db_ping_timeout;
        let (gate, store) = (self.gate.clone(), store.clone());
        tasks.spawn(supervise("watch the database", move || {
            let probe = Probe::new(connections.clone());
            readiness::watch(probe, ping_time, gate.clone(), store.clone())
        }));
        let stuck_threshold = settings.metrics.reconciliation_stuck_threshold;
        let (metrics, counted) = (self.metrics.clone(), service.clone());
        tasks.spawn(supervise("keep the metrics", move || {
            let (metrics, service) = (metrics.clone(), counted.clone());
            metrics.run(service, Clock::system(), stuck_threshold)
        }));
        let followed = service.clone();
        tasks.spawn(supervise("follow changes", move || {
            let service = followed.clone();
            async move { service.follow_changes().await }
        }));
        let (expiring, retention) = (
            service.clone(),
            Retention {
                changes: settings.history.retention,
                audit: settings.audit.retention,
            },
        );
        tasks.spawn(supervise("remove expired rows", move || {
            expire_forever(expiring.clone(), Clock::system(), retention)
        }));
        tasks.spawn(supervise("seal the audit trail", move || {
            sealing::seal_forever(service.clone(), Clock::system())
        }));
        tasks
    }
}

/// How many threads answer requests: one for each processor, unless there are too few connections for so many threads.
fn threads(processors: usize, connections: usize) -> usize {
    let threads_max = connections / CONNECTIONS_PER_THREAD_MIN;
    processors.min(threads_max.max(1))
}

/// Binds the API to a listener.
///
/// # Errors
///
/// The system refuses what a server needs.
pub fn bind(
    listener: TcpListener,
    api: &ApiState,
    options: &ConnectionOptions,
) -> io::Result<Server> {
    let memory = api.admission.budget().clone();
    let (registry, version) = (api.service.registry().clone(), api.build.version);
    let document = Document::new(move || http::openapi(&registry, version));
    let (api, workers) = (api.clone(), options.workers);
    // Runs once per thread.
    let app = move || {
        let service = api.service.share(workers);
        let api = ApiState {
            service,
            ..api.clone()
        };
        http::app(api, document.clone())
    };
    Server::bind(vec![Listener::Tcp(listener)], app, Some(memory), options)
}

#[cfg(test)]
mod tests {
    use super::threads;

    #[test]
    fn threads_have_connections_enough_for_searches_and_everything_else() {
        for (processors, connections, expected) in [
            (2, 16, 2),
            (16, 16, 5),
            (2, 5, 1),
            (2, 6, 2),
            (4, 2, 1),
            (1, 200, 1),
            (8, 1, 1),
        ] {
            let found = threads(processors, connections);
            assert_eq!(found, expected, "{processors} {connections}");
        }
    }
}
