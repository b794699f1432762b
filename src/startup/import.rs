//! `hyperfleet-api import`: the database of the older service.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, bail};
use sqlx::postgres::PgConnectOptions;
use tracing::Instrument as _;

use super::plan::kinds;
use super::{database, telemetry};
use crate::config::{self, ImportArgs, Output, OutputFormat, Settings};
use hyperfleet_domain::EntityRegistry;
use hyperfleet_domain::entity_config::Attached;
use hyperfleet_import::{Databases, ImportHooks, ImportReport, PassOptions, ProgressLines};
use hyperfleet_server_kit::ending::{self, Misuse};
use hyperfleet_server_kit::program::print;
use hyperfleet_server_kit::signals::Signals;
use hyperfleet_storage::Probe;

pub(super) async fn run(args: &ImportArgs) -> anyhow::Result<ExitCode> {
    let mut loaded = config::load(&args.settings, &Settings::default())?;
    let Attached { registry, notes } = kinds(&loaded)?;
    // Standard output is for the report.
    loaded.settings.logging.output = Output::Stderr;
    let source = source(args, &loaded.settings).context(Misuse)?;
    let telemetry = telemetry::start_with(&loaded)?;
    telemetry::warn_of(&notes);
    let import = import(args, &loaded.settings, source, &registry);
    // Statements are traced below a span only.
    let result = import.instrument(tracing::info_span!("import")).await;
    telemetry.traces.end().await;
    let report = result?;
    match args.output {
        OutputFormat::Text => print(&report.to_string()),
        OutputFormat::Json => print(&(serde_json::to_string_pretty(&report)? + "\n")),
    }
    Ok(ExitCode::from(report.exit_code()))
}

/// The older service's database. Errors do not repeat its URL, which may contain a password.
fn source(args: &ImportArgs, settings: &Settings) -> anyhow::Result<PgConnectOptions> {
    let flag = args.options.from.as_ref().map(|url| ("--from", url));
    let setting = settings.import.from.as_ref();
    let source = flag.or(setting.map(|url| ("import.from", url)));
    let (name, url) = source.context(
        "name the database of the older service: --from URL, HYPERFLEET_IMPORT_FROM, \
         or a file that HYPERFLEET_IMPORT_FROM_FILE names",
    )?;
    let Ok(options) = url.expose().parse() else {
        bail!("{name} is not of the form postgres://user@host:port/name");
    };
    Ok(options)
}

async fn import(
    args: &ImportArgs,
    settings: &Settings,
    source: PgConnectOptions,
    registry: &EntityRegistry,
) -> anyhow::Result<ImportReport> {
    let target = database::connections(&settings.database)?;
    let mut probe = Probe::new(target.clone());
    database::require_schema(&mut probe, &settings.database).await?;
    let databases = Databases {
        source,
        target: target.connect,
    };
    let options = PassOptions {
        is_dry_run: args.options.dry_run,
        batch: usize::from(args.options.batch),
    };
    let lines = (args.output == OutputFormat::Text).then(ProgressLines::default);
    let stop = stop_at_signals()?;
    let hooks = ImportHooks {
        observe: &|progress| lines.iter().for_each(|lines| lines.print(progress)),
        stop: &stop,
    };
    let report = hyperfleet_import::import(&databases, registry, options, hooks).await;
    report.context("cannot import")
}

/// A flag that the first signal sets. The second one ends the process immediately, which costs at most the current
/// batch.
fn stop_at_signals() -> anyhow::Result<Arc<AtomicBool>> {
    let mut signals = Signals::catch().context("cannot catch signals")?;
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    tokio::spawn(async move {
        signals.next().await;
        flag.store(true, Ordering::Relaxed);
        tracing::warn!("stopping after this batch: send the signal again to stop immediately");
        signals.next().await;
        ending::at_once();
    });
    Ok(stop)
}
