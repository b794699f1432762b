//! The fleet adapter: beside the API, and as a program of its own.
//!
//! ```text
//! sockets ▸ health, metrics ▸ mirror of fleet, adapter ▸ ready while the mirror is connected
//! signal ▸ not ready ▸ work in progress, lease released ▸ metrics, health
//! ```

use std::time::Duration;

use anyhow::Context as _;
use hyperfleet_fleet::EtcdFleet;
use hyperfleet_fleet::start::{Prepared, RegistryLocation};
use hyperfleet_server_kit::ending::{self, Misuse};
use hyperfleet_server_kit::errors::ErrorList;
use hyperfleet_server_kit::http::Gate;
use hyperfleet_server_kit::program::{Build, print};
use hyperfleet_server_kit::signals::Signals;
use hyperfleet_server_kit::sockets::{ConnectionBudget, Needs};
use hyperfleet_server_kit::supervise::supervise;
use hyperfleet_server_kit::telemetry::{Metrics, Telemetry};
use hyperfleet_server_kit::{manager, shutdown};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::sides::{SideSockets, Sides};
use super::{BUILD, fleet, telemetry, tls};
use crate::config::{self, Loaded, Settings, SettingsArgs};
use hyperfleet_domain::EntityRegistry;
use hyperfleet_fleet_adapter::command::{FleetAdapterCommand, RenderArgs};
use hyperfleet_fleet_adapter::workloads::Workloads;
use hyperfleet_fleet_adapter::{AdapterPlan, OwnApi, ProgramSettings, Role, approval, render};

/// The program's name in its log and its metrics.
const ADAPTER: Build = Build {
    component: "fleet-adapter",
    ..BUILD
};
/// Default name in traces.
const TRACED_AS: &str = "hyperfleet-fleet-adapter";
/// How often the mirror's connection is checked.
const PERIOD: Duration = Duration::from_millis(200);
/// Why the adapter is not ready.
const NO_ETCD: &str = "etcd is not connected";

/// The checked settings of the program.
struct Program {
    adapter: AdapterPlan,
    fleet: RegistryLocation,
    tls: tls::Configs,
}

/// Carries out a command of the fleet adapter.
pub(super) async fn carry_out(command: FleetAdapterCommand<SettingsArgs>) -> anyhow::Result<()> {
    match command {
        FleetAdapterCommand::Run(args) => run(&args).await,
        FleetAdapterCommand::Render(args) => render(&args),
        FleetAdapterCommand::ApproveRemovals(args) => approve_removals(&args).await,
    }
}

/// The adapter that `serve` runs, if the settings enable it.
///
/// # Errors
///
/// Every error, with its setting.
pub(super) fn embedded(
    settings: &Settings,
    kinds: Option<&EntityRegistry>,
) -> anyhow::Result<Option<AdapterPlan>> {
    let own_api = OwnApi {
        has_fleet: settings.fleet.enabled,
        has_tls: settings.server.tls.enabled,
        needs_token: settings.server.jwt.enabled,
    };
    AdapterPlan::embedded(
        &settings.fleet.adapter,
        program_settings(settings, kinds),
        own_api,
    )
}

fn program_settings<'a>(
    settings: &'a Settings,
    kinds: Option<&'a EntityRegistry>,
) -> ProgramSettings<'a> {
    ProgramSettings {
        kinds,
        hostname: &settings.server.hostname,
        key_prefix: &settings.fleet.etcd.key_prefix,
    }
}

fn render(args: &RenderArgs<SettingsArgs>) -> anyhow::Result<()> {
    let loaded = config::load(&args.settings, &Settings::default())?;
    let workloads = loaded.made(|settings| {
        let adapter = &settings.fleet.adapter;
        Workloads::compile(&adapter.name, &adapter.workloads)
    });
    print(&render::render(&workloads.context(Misuse)?, args)?);
    Ok(())
}

async fn approve_removals(args: &SettingsArgs) -> anyhow::Result<()> {
    let settings = config::load(args, &Settings::default())?.settings.fleet;
    let location = fleet::registry_location(&settings).context(Misuse)?;
    let store = Prepared::new(location)?.keys;
    approval::approve_by(&store, &settings.etcd.key_prefix, &settings.adapter.name).await
}

/// Runs the adapter until a signal arrives.
///
/// # Errors
///
/// Unusable settings; an address that cannot be bound; a listener that failed.
async fn run(args: &SettingsArgs) -> anyhow::Result<()> {
    let loaded = config::load(args, &Settings::default())?;
    let program = Program::of(&loaded).context(Misuse)?;
    let mut settings = loaded.settings.clone();
    if loaded.origin("tracing.service_name").is_none() {
        settings.tracing.service_name = TRACED_AS.to_owned();
    }
    let telemetry = telemetry::start_of(&ADAPTER, &settings)?;
    telemetry::log_settings(&loaded);
    telemetry::warn_of(&program.tls.notes);
    let result = program.run(&settings, &telemetry).await;
    shutdown::send_spans(telemetry.traces).await;
    result
}

impl Program {
    /// Reads the files that the settings name, and nothing else.
    ///
    /// # Errors
    ///
    /// Every error, with its setting.
    fn of(loaded: &Loaded) -> anyhow::Result<Self> {
        let mut settings = loaded.settings.clone();
        // The API is not here; its files may still serve the other listeners.
        settings.server.tls.enabled = false;
        let mut errors = ErrorList::default();
        let kinds = errors.part(settings.registry());
        let adapter = errors.part(AdapterPlan::standalone(
            &settings.fleet.adapter,
            program_settings(&settings, kinds.as_ref()),
        ));
        let fleet = errors.part(fleet::registry_location(&settings.fleet));
        let tls = errors.part(tls::load(&settings));
        loaded.refuse(errors.0)?;
        let (Some(adapter), Some(fleet), Some(tls)) = (adapter, fleet, tls) else {
            unreachable!("every missing part has an error");
        };
        Ok(Self {
            adapter,
            fleet,
            tls,
        })
    }

    async fn run(self, settings: &Settings, telemetry: &Telemetry) -> anyhow::Result<()> {
        let mut signals = Signals::catch()?;
        let gate = Gate::starting();
        let mut sides = sides(settings, self.tls, &gate, &telemetry.metrics)?;
        let fleet = Prepared::new(self.fleet)?;
        let mut beside = JoinSet::new();
        fleet.clone().spawn(&mut beside);
        let (watched, mirrored) = (gate.clone(), fleet.fleet.clone());
        beside.spawn(supervise("watch whether etcd is connected", move || {
            update_readiness(watched.clone(), mirrored.clone())
        }));
        let end_time = settings.health.shutdown_timeout;
        let role = Role::start(self.adapter, &fleet, None, end_time)?;
        manager::ready();
        let failed = tokio::select! {
            () = signals.next() => Ok(()),
            error = sides.failed() => Err(error),
        };
        manager::stopping();
        match &failed {
            Ok(()) => tracing::info!("stopping: send the signal again to stop immediately"),
            Err(error) => tracing::error!(error = format!("{error:#}"), "stopping after an error"),
        }
        gate.stop();
        role.stop();
        let rest = async {
            role.ended().await;
            beside.shutdown().await;
            sides.stop().await;
        };
        tokio::select! {
            () = rest => {}
            () = signals.next() => ending::at_once(),
        }
        if failed.is_ok() {
            tracing::info!("stopped");
        }
        failed
    }
}

/// Starts the listeners of metrics and health.
fn sides(
    settings: &Settings,
    tls: tls::Configs,
    gate: &Gate,
    metrics: &Metrics,
) -> anyhow::Result<Sides> {
    let sockets = SideSockets::bind(settings)?;
    let (health, served) = (sockets.health_address()?, sockets.metrics_address()?);
    let connections = ConnectionBudget::of(&Needs {
        connections_max: 1,
        key: "fleet.adapter.workers",
        is_configured: true,
        others: settings.fleet.adapter.workers,
        has_sides: true,
    });
    let sides = sockets.start(tls, connections.side, gate, metrics)?;
    tracing::info!(%health, metrics = %served, "listening");
    Ok(sides)
}

/// Keeps the readiness equal to the mirror's connection to etcd.
async fn update_readiness(gate: Gate, fleet: EtcdFleet) {
    loop {
        if fleet.is_connected() {
            gate.set_unready_reason(None);
            gate.open();
        } else {
            gate.set_unready_reason(Some(NO_ETCD.to_owned()));
        }
        sleep(PERIOD).await;
    }
}
