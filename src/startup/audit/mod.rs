//! `hyperfleet-api audit`: verifies and exports the audit trail.

mod file;
mod json;
mod progress;
mod text;

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use chrono::{DateTime, Utc};
use tracing::Instrument as _;

use super::{database, telemetry};
use crate::app::trail::{TrailRange, TrailReader, TrailVerification};
use crate::config::{
    self, AuditCommand, AuditExportArgs, AuditVerifyArgs, Database, Output, OutputFormat, Settings,
    SettingsArgs,
};
use crate::domain::Tenancy;
use crate::domain::audit::{ExportRecord, RetentionRule, Seal, VerifiedTrail};
use crate::storage::postgres::{Probe, Store, TrailBounds};
use file::{ExportLines, record, unreadable};
use hyperfleet_server_kit::clock::Clock;
use hyperfleet_server_kit::ending::Misuse;
use hyperfleet_server_kit::program::print;
use progress::ProgressOfTrail;

/// Exit code if the trail has faults.
const FAULTS: u8 = 3;
/// Least timeout of a statement: some read the whole trail.
const STATEMENT_MILLISECONDS: u64 = 600_000;
/// Seals of an earlier export that are compared by one statement.
const COMPARED_AT_ONCE: usize = 1_000;

/// The result of a verification, for both formats.
struct AuditReport {
    trail: VerifiedTrail,
    /// Unset for a file.
    bounds: Option<TrailBounds>,
    /// Seals of an earlier export, and those of them that have expired.
    compared: Option<(u64, u64)>,
    /// The setting `audit.retention`, with which removals were compared.
    retention: Option<Duration>,
    now: DateTime<Utc>,
}

pub(super) async fn run(command: &AuditCommand) -> anyhow::Result<ExitCode> {
    match command {
        AuditCommand::Verify(args) => {
            let report = if let Some(path) = &args.file {
                verify_file(path)?
            } else {
                let result = with_database(&args.settings, async |store, settings| {
                    verify(store, args, settings.audit.retention).await
                });
                result.await?
            };
            conclude(&report, args.output)
        }
        AuditCommand::Export(args) => {
            let result = with_database(&args.settings, async |store, _| export(store, args).await);
            result.await?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Runs a command on a database whose schema is up to date.
async fn with_database<T>(
    args: &SettingsArgs,
    command: impl AsyncFnOnce(&Store, &Settings) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let mut loaded = config::load(args, &Settings::default())?;
    // Standard output is for the result.
    loaded.settings.logging.output = Output::Stderr;
    loaded.settings.database.pool.conn_retry_attempts = 0;
    let telemetry = telemetry::start(&loaded.settings)?;
    telemetry::warn_of(&loaded.notes);
    let command = async {
        let store = connected(&loaded.settings.database).await?;
        command(&store, &loaded.settings).await
    };
    // Statements are traced below a span only.
    let result = command.instrument(tracing::info_span!("audit")).await;
    telemetry.traces.end().await;
    result
}

async fn connected(settings: &Database) -> anyhow::Result<Store> {
    let mut connections = database::connections(settings).context(Misuse)?;
    let mut probe = Probe::new(connections.clone());
    let schema = database::reach(&mut probe, settings).await?;
    if schema.missing > 0 {
        let missing = schema.missing;
        bail!("the database lacks {missing} migrations: run `hyperfleet-api migrate` first");
    }
    let time = &mut connections.statement_milliseconds_max;
    if *time > 0 {
        *time = STATEMENT_MILLISECONDS.max(*time);
    }
    Ok(Store::new(connections))
}

async fn verify(
    store: &Store,
    args: &AuditVerifyArgs,
    retention: Option<Duration>,
) -> anyhow::Result<AuditReport> {
    let range = TrailRange {
        since: args.since,
        until: args.until,
    };
    let progress = ProgressOfTrail::new("Verified", args.output == OutputFormat::Text);
    let mut reader = TrailReader::open(store).await?;
    let now = Clock::system().now();
    let rule = RetentionRule::new(now, retention);
    let observe = |done| progress.show(done);
    let mut verification = reader.verify(range, rule, &observe).await?;
    if let Some(path) = &args.against {
        compare(&mut reader, path, rule, &mut verification).await?;
    }
    reader.close().await?;
    let compared = (verification.compared, verification.expired);
    Ok(AuditReport {
        trail: verification.trail,
        bounds: Some(verification.bounds),
        compared: args.against.as_ref().map(|_| compared),
        retention,
        now,
    })
}

/// Compares the seals of an earlier export.
async fn compare(
    reader: &mut TrailReader,
    path: &Path,
    rule: RetentionRule,
    verification: &mut TrailVerification,
) -> anyhow::Result<()> {
    let mut lines = ExportLines::open(path)?;
    let mut seals: Vec<Seal> = Vec::with_capacity(COMPARED_AT_ONCE);
    while let Some(line) = lines.next()? {
        match record(line) {
            Some((_, ExportRecord::Entry(_))) => continue,
            Some((_, ExportRecord::Seal(seal))) => seals.push(seal),
            None => bail!(unreadable(path, lines.number())),
        }
        if seals.len() == COMPARED_AT_ONCE {
            reader.compare(&seals, rule, verification).await?;
            seals.clear();
        }
    }
    reader.compare(&seals, rule, verification).await?;
    Ok(())
}

fn verify_file(path: &Path) -> anyhow::Result<AuditReport> {
    Ok(AuditReport {
        trail: file::verify(path)?,
        bounds: None,
        compared: None,
        retention: None,
        now: Clock::system().now(),
    })
}

/// Prints the report; returns the exit code.
fn conclude(report: &AuditReport, format: OutputFormat) -> anyhow::Result<ExitCode> {
    print(&match format {
        OutputFormat::Text => text::text(report),
        OutputFormat::Json => json::json(report)?,
    });
    Ok(match report.trail.faults.total {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(FAULTS),
    })
}

async fn export(store: &Store, args: &AuditExportArgs) -> anyhow::Result<()> {
    let range = TrailRange {
        since: args.since,
        until: args.until,
    };
    let tenancy: Tenancy = args.tenant.iter().cloned().collect();
    let tenancy = Some(&tenancy).filter(|tenancy| !tenancy.is_empty());
    let progress = ProgressOfTrail::new("Exported", true);
    let mut out = BufWriter::new(io::stdout());
    let mut reader = TrailReader::open(store).await?;
    let mut sink = |line: &str| writeln!(out, "{line}");
    let observe = |done| progress.show(done);
    let written = reader.export(range, tenancy, &mut sink, &observe).await?;
    let written = written.and_then(|_| out.flush());
    written.context("cannot write the export to standard output")?;
    reader.close().await?;
    Ok(())
}

fn opened(path: &Path) -> anyhow::Result<File> {
    File::open(path).with_context(|| format!("cannot open {}", path.display()))
}
