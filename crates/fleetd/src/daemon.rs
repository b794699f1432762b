//! The running daemon: its parts, and the signals that it handles.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::BUILD;
use super::agent::Agent;
use super::engine::start_engine;
use super::listen::{self, Doors};
use super::plan::Plan;
use super::reload::Running;
use super::serve::{self, Served};
use super::state::{Facts, describe};
use crate::settings::{self, Settings};
use hyperfleet_fleet::start::Prepared;
use hyperfleet_fleet::{agent, engine};
use hyperfleet_server_kit::activation;
use hyperfleet_server_kit::clock::Clock;
use hyperfleet_server_kit::ending::{self, Misuse};
use hyperfleet_server_kit::http::Gate;
use hyperfleet_server_kit::manager::{self, Watchdog};
use hyperfleet_server_kit::server::{Listener, Serving};
use hyperfleet_server_kit::shutdown::{self, Times};
use hyperfleet_server_kit::signals::{SignalRequest, SignalRequests, Signals};
use hyperfleet_server_kit::supervise::StoppableTask;
use hyperfleet_server_kit::telemetry::{self, MetricTable, Telemetry, TelemetrySettings};
use hyperfleet_server_kit::tls;
use hyperfleet_server_kit::unix_socket::SocketFile;

/// How long the engine may take to resign. After that its lease expires.
const RESIGN_TIME_MAX: Duration = Duration::from_secs(5);

/// Runs until a signal arrives or a listener fails, then stops gracefully.
///
/// # Errors
/// Unusable settings, a socket that cannot be bound, a failed listener, or requests that were cut off at the
/// end. Never an outage of etcd.
pub(super) async fn run(file: Option<PathBuf>, handed_over: Vec<Listener>) -> anyhow::Result<()> {
    // First, so that an early SIGHUP does not kill the process.
    let (signals, requests) = (Signals::catch()?, SignalRequests::catch()?);
    let loaded = settings::load(file.as_deref()).context(Misuse)?;
    let doors = Doors::of(&handed_over);
    let plan = Plan::of(&loaded, &doors).context(Misuse)?;
    let telemetry = start_log(&loaded.settings)?;
    tracing::info!(
        version = BUILD.version,
        machine_id = plan.machine_id,
        settings = loaded.summary(),
        "starting fleetd"
    );
    for note in loaded.notes.iter().chain(&plan.notes) {
        tracing::warn!("{note}");
    }
    let traces = telemetry.traces.clone();
    let running = Running {
        file,
        latest: loaded.clone(),
        started: loaded,
        doors,
        stuck: None,
    };
    let ended = match Daemon::start(running, plan, handed_over, telemetry) {
        Ok(daemon) => Box::pin(daemon.serve(signals, requests)).await,
        Err(error) => Err(error),
    };
    shutdown::send_spans(traces).await;
    ended
}

fn start_log(settings: &Settings) -> anyhow::Result<Telemetry> {
    // Metrics of an engine or agent exist only where it runs.
    let tables: &[MetricTable] = match (settings.engine.is_disabled, settings.agent.is_disabled) {
        (false, false) => &[engine::METRICS, agent::METRICS],
        (false, true) => &[engine::METRICS],
        (true, false) => &[agent::METRICS],
        (true, true) => &[],
    };
    telemetry::start(&TelemetrySettings {
        build: &BUILD,
        hostname: "",
        logging: &settings.logging,
        has_changing_level: true,
        verbose_target: None,
        tracing: &settings.tracing,
        tables,
        expects_panic: || false,
    })
}

/// How long units may take to move and stop, if they stop with fleetd. Units that have not stopped by then keep
/// running, and the machine's lease expires.
const LEAVE_TIME_MAX: Duration = Duration::from_secs(110);

struct Daemon {
    running: Running,
    facts: Facts,
    gate: Gate,
    /// `None` if the API is disabled.
    serving: Option<Serving>,
    engine: Option<StoppableTask<()>>,
    agent: Option<Agent>,
    /// Aborted when dropped.
    beside: JoinSet<()>,
    /// Files of unix sockets.
    files: Vec<SocketFile>,
}

impl Daemon {
    /// Opens listeners, and answers 503 until etcd is reached.
    fn start(
        running: Running,
        plan: Plan,
        handed_over: Vec<Listener>,
        telemetry: Telemetry,
    ) -> anyhow::Result<Self> {
        let settings = &running.started.settings;
        let times = &settings.timeouts;
        let (listeners, files) = listen::open(handed_over, &settings.listen, times.write)?;
        let shown: Vec<_> = listeners.iter().map(activation::address).collect();
        let endpoints = plan.registry.etcd.endpoints.clone();
        let prepared = Prepared::new(plan.registry)?;
        let gate = Gate::serving();
        let (config, watched) = plan.tls.unzip();
        let served = Served {
            fleet: prepared.fleet.clone(),
            gate: gate.clone(),
            metrics: telemetry.metrics.clone(),
            machine_id: plan.machine_id.clone(),
        };
        let has_api = !settings.listen.is_disabled;
        let serving = has_api.then(|| serve::start(listeners, config, served, &running.started));
        let serving = serving.transpose()?;
        tls::watch(watched.into_iter().collect()).context("cannot watch the certificates")?;
        let mut beside = JoinSet::new();
        beside.spawn(telemetry.metrics.upkeep());
        let has_engine = !settings.engine.is_disabled;
        let engine = has_engine.then(|| {
            let fleet = prepared.fleet.clone();
            start_engine(fleet, &settings.engine, &plan.machine_id)
        });
        let has_agent = !settings.agent.is_disabled;
        let agent = has_agent.then(|| {
            let lease = settings.engine.machine_lease;
            Agent::start(&prepared.fleet, &settings.agent, lease, &plan.machine_id)
        });
        let address = shown.join(", ");
        tracing::info!(
            address,
            api = has_api,
            engine = has_engine,
            agent = has_agent,
            "serving"
        );
        let facts = Facts {
            machine_id: plan.machine_id,
            listeners: shown,
            endpoints,
            fleet: prepared.fleet.clone(),
            agent: agent.as_ref().map(Agent::status),
            started_at: Clock::system().now(),
        };
        prepared.spawn(&mut beside);
        Ok(Self {
            running,
            facts,
            gate,
            serving,
            engine,
            agent,
            beside,
            files,
        })
    }

    /// Handles signals until it must stop.
    async fn serve(
        mut self,
        mut signals: Signals,
        mut requests: SignalRequests,
    ) -> anyhow::Result<()> {
        let mut watchdog = Watchdog::of_manager();
        manager::ready();
        let ended = loop {
            tokio::select! {
                () = signals.next() => break Ok(()),
                () = watchdog.beat() => {}
                error = failed(&mut self.serving) => break Err(error),
                request = requests.next() => match request {
                    // A stop interrupts whatever this waits for.
                    SignalRequest::Reload => tokio::select! {
                        () = reload(&mut self.running) => {
                            if let Some(agent) = &mut self.agent {
                                agent.apply(&self.running.latest.settings.agent);
                            }
                        }
                        () = signals.next() => break Ok(()),
                    },
                    SignalRequest::Describe => {
                        let connections = self.serving.as_ref().map(Serving::open_connections);
                        describe(&self.facts, connections.unwrap_or(0));
                    }
                },
            }
        };
        if let Err(error) = &ended {
            tracing::error!(error = format!("{error:#}"), "stopping after an error");
        }
        manager::stopping();
        ended.and(self.end(signals).await)
    }

    /// Completes requests in progress. Meanwhile the engine resigns, so that another one leads at once, and the
    /// agent stops.
    async fn end(self, mut signals: Signals) -> anyhow::Result<()> {
        let times = Times {
            // No load balancer checks readiness here: clients find no socket and use another fleetd.
            delay: Duration::ZERO,
            drain: self.running.started.settings.shutdown_timeout,
            drain_setting: "shutdown_timeout",
        };
        let agent = self.agent;
        // An engine moves the units that are handed over, and this may be the only one.
        let (has_left, may_resign) = oneshot::channel();
        let is_handing_over = (agent.as_ref()).is_some_and(Agent::hands_over);
        let left = async {
            if let Some(agent) = agent
                && timeout(LEAVE_TIME_MAX, agent.leave()).await.is_err()
            {
                tracing::warn!("stopping: some units have not stopped; they keep running");
            }
            let _ = has_left.send(());
        };
        let engine = self.engine;
        let resigned = async move {
            if is_handing_over {
                let _ = may_resign.await;
            }
            if let Some(engine) = engine
                && timeout(RESIGN_TIME_MAX, engine.stop(())).await.is_err()
            {
                tracing::warn!("stopping: the engine could not resign; its lease will expire");
            }
        };
        let ended = tokio::spawn(async { tokio::join!(left, resigned) });
        let drained = match &self.serving {
            Some(serving) => shutdown::drain(&self.gate, serving, &mut signals, times).await,
            None => Ok(()),
        };
        drop(self.files);
        let mut beside = self.beside;
        tokio::select! {
            _ = ended => {}
            () = signals.next() => ending::at_once(),
        }
        beside.shutdown().await;
        drained
    }
}

/// Waits until the API ends by itself, which it should not.
async fn failed(serving: &mut Option<Serving>) -> anyhow::Error {
    match serving {
        Some(serving) => serving.failed().await,
        None => std::future::pending().await,
    }
}

async fn reload(running: &mut Running) {
    manager::reloading();
    running.reload().await;
    manager::ready();
}
