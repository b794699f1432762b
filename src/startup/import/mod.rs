//! `hyperfleet-api import`: the database of the older service.

mod json;
mod progress;
mod text;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, bail};
use sqlx::postgres::PgConnectOptions;
use tracing::Instrument as _;

use super::{database, telemetry};
use crate::app::import::{
    self, ImportHooks, ImportReport, ReadScope, RunOptions, SourceSettings, VerifyScope,
};
use crate::config::{self, ImportArgs, Output, OutputFormat, Settings, VerifyArg};
use crate::domain::EntityRegistry;
use crate::domain::entity_config::Attached;
use crate::storage::postgres::{Probe, Store};
use hyperfleet_server_kit::ending::{self, Misuse};
use hyperfleet_server_kit::program::print;
use hyperfleet_server_kit::signals::Signals;
use progress::ProgressLines;

/// Least timeout of a statement on many rows: longer than that of a request.
const STATEMENT_MILLISECONDS: u64 = 600_000;
/// Exit code if rows were refused, and everything else is imported.
const REFUSED: u8 = 3;
/// Exit code if the databases differ.
const DIFFERENT: u8 = 4;
/// Exit code of a run that a signal has stopped after a batch: as shells report SIGINT.
const INTERRUPTED: u8 = 130;

pub(super) async fn run(args: &ImportArgs) -> anyhow::Result<ExitCode> {
    let mut loaded = config::load(&args.settings, &Settings::default());
    let kinds = loaded.part(&config::OF_KINDS, Settings::kinds);
    let Attached { registry, notes } = kinds.context(Misuse)?;
    // Standard output is for the report.
    loaded.settings.logging.output = Output::Stderr;
    let source = source(args, &loaded.settings).context(Misuse)?;
    let telemetry = telemetry::start_with(&loaded)?;
    telemetry::warn_of(&notes);
    let import = import(args, &loaded.settings, &source, &registry);
    // Statements are traced below a span only.
    let result = import.instrument(tracing::info_span!("import")).await;
    telemetry.traces.end().await;
    let report = result?;
    print(&match args.output {
        OutputFormat::Text => text::text(&report),
        OutputFormat::Json => json::json(&report)?,
    });
    Ok(code(&report))
}

/// The older service's database. Faults of its URL do not repeat it: it may hold a password.
fn source(args: &ImportArgs, settings: &Settings) -> anyhow::Result<SourceSettings> {
    let flag = args.options.from.as_ref().map(|url| ("--from", url));
    let setting = settings.import.from.as_ref();
    let given = flag.or(setting.map(|url| ("import.from", url)));
    let (name, url) = given.context(
        "name the database of the older service: --from URL, HYPERFLEET_IMPORT_FROM, \
         or a file that HYPERFLEET_IMPORT_FROM_FILE names",
    )?;
    let Ok(connect) = url.expose().parse::<PgConnectOptions>() else {
        bail!("{name} is not of the form postgres://user@host:port/name");
    };
    Ok(SourceSettings { connect })
}

async fn import(
    args: &ImportArgs,
    settings: &Settings,
    source: &SourceSettings,
    registry: &EntityRegistry,
) -> anyhow::Result<ImportReport> {
    let mut probe = Probe::new(database::connections(&settings.database)?);
    let schema = database::reach(&mut probe, &settings.database).await?;
    if schema.missing > 0 {
        let missing = schema.missing;
        bail!("the database lacks {missing} migrations: run `hyperfleet-api migrate` first");
    }
    let mut connections = database::connections(&settings.database)?;
    let time = &mut connections.statement_milliseconds_max;
    *time = if *time == 0 {
        0
    } else {
        STATEMENT_MILLISECONDS.max(*time)
    };
    let store = Store::new(connections);
    let given = &args.options;
    let options = RunOptions {
        is_dry_run: given.dry_run,
        read: match (given.allow_older_source, given.full) {
            (true, _) => ReadScope::Older,
            (false, true) => ReadScope::All,
            (false, false) => ReadScope::Changed,
        },
        is_beside_others: given.beside_others,
        batch: usize::from(given.batch),
        scope: match given.verify {
            VerifyArg::All => VerifyScope::All,
            VerifyArg::Changed => VerifyScope::Changed,
            VerifyArg::None => VerifyScope::Nothing,
        },
    };
    let lines = ProgressLines::new(args.output == OutputFormat::Text);
    let stop = stop_at_signals()?;
    let hooks = ImportHooks {
        observe: &|progress| lines.show(progress),
        stop: &stop,
    };
    let report = import::import(source, &store, registry, options, hooks).await;
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

fn code(report: &ImportReport) -> ExitCode {
    let differs = report
        .verification
        .as_ref()
        .is_some_and(|v| v.differing > 0);
    if report.is_interrupted {
        ExitCode::from(INTERRUPTED)
    } else if differs {
        ExitCode::from(DIFFERENT)
    } else if report.findings.refused() > 0 {
        ExitCode::from(REFUSED)
    } else {
        ExitCode::SUCCESS
    }
}
