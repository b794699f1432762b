//! `hyperfleet-api audit`: verifies and exports the audit trail.

mod progress;

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use hyperfleet_audit::{AuditReport, ChainVerifier, Export, Line, RetentionRule, read_lines};
use tracing::Instrument as _;

use super::{database, telemetry};
use crate::config::{
    self, AuditCommand, AuditExportArgs, AuditRangeArgs, AuditVerifyArgs, Database, Output,
    OutputFormat, Settings, SettingsArgs,
};
use hyperfleet_server_kit::clock::Clock;
use hyperfleet_server_kit::ending::Misuse;
use hyperfleet_server_kit::program::print;
use hyperfleet_service::app::trail::{TrailRange, TrailReader};
use hyperfleet_storage::{Probe, Store, TrailEnd};
use progress::TrailProgress;

/// Exit code if the verification finds faults.
const FAULTS: u8 = 3;
/// Least timeout of a statement: some read the entire trail.
const STATEMENT_MILLISECONDS: u64 = 600_000;
/// Passes of an earlier export that one statement compares.
const COMPARED_AT_ONCE: usize = 1_000;

pub(super) async fn run(command: &AuditCommand) -> anyhow::Result<ExitCode> {
    match command {
        AuditCommand::Verify(args) => {
            let report = if let Some(path) = &args.file {
                verify_file(path, args)?
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
    database::require_schema(&mut probe, settings).await?;
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
    let range = range(&args.range);
    let mut progress = TrailProgress::new("Verified", args.output == OutputFormat::Text);
    let mut reader = TrailReader::open(store, range, TrailEnd::Newest).await?;
    let mut verifier = ChainVerifier::new(args.hash);
    while let Some(line) = reader.next().await? {
        progress.count(&line);
        verifier.take(Some(line));
    }
    let mut report = verifier.finish();
    let rule = RetentionRule::new(Clock::system().now(), retention);
    if let Some(first) = reader.first.clone() {
        report.check_removed(&first, reader.removed_entries().await?, rule);
    }
    if let Some(path) = &args.against {
        compare(&mut reader, path, rule, &mut report).await?;
    }
    reader.close().await?;
    Ok(report)
}

/// Compares the passes of an earlier export.
async fn compare(
    reader: &mut TrailReader,
    path: &Path,
    rule: RetentionRule,
    report: &mut AuditReport,
) -> anyhow::Result<()> {
    let name = path.display();
    let mut links = read_lines(opened(path)?)
        .zip(1_u64..)
        .filter_map(
            |(line, number)| match line.with_context(|| format!("cannot read {name}")) {
                Ok(Some(Line::Link(link))) => Some(Ok(link)),
                Ok(Some(_)) => None,
                Ok(None) => Some(Err(anyhow!(
                    "{name}: line {number} is neither an entry nor a pass"
                ))),
                Err(error) => Some(Err(error)),
            },
        );
    loop {
        let links: Vec<_> = links
            .by_ref()
            .take(COMPARED_AT_ONCE)
            .collect::<Result<_, _>>()?;
        if links.is_empty() {
            return Ok(());
        }
        let numbers = links.iter().map(|link| link.pass.number).collect();
        let stored = reader.passes(numbers).await?;
        for link in &links {
            let stored = stored
                .iter()
                .find(|stored| stored.pass.number == link.pass.number);
            report.compare(link, stored, reader.first.as_ref(), rule);
        }
    }
}

fn verify_file(path: &Path, args: &AuditVerifyArgs) -> anyhow::Result<AuditReport> {
    let mut verifier = ChainVerifier::new(args.hash);
    for line in read_lines(opened(path)?) {
        verifier.take(line.with_context(|| format!("cannot read {}", path.display()))?);
    }
    Ok(verifier.finish())
}

/// Prints the report; returns the exit code.
fn conclude(report: &AuditReport, format: OutputFormat) -> anyhow::Result<ExitCode> {
    print(&match format {
        OutputFormat::Text => report.to_string(),
        OutputFormat::Json => serde_json::to_string_pretty(report)? + "\n",
    });
    Ok(match report.fault_count {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(FAULTS),
    })
}

async fn export(store: &Store, args: &AuditExportArgs) -> anyhow::Result<()> {
    let range = range(&args.range);
    let mut progress = TrailProgress::new("Exported", true);
    let mut out = BufWriter::new(io::stdout());
    let mut write = |line: Line| {
        let written = writeln!(out, "{line}");
        written.context("cannot write the export to standard output")
    };
    let (mut export, begin) = Export::begin(args.tenant.iter().cloned().collect());
    begin.into_iter().try_for_each(&mut write)?;
    let mut reader = TrailReader::open(store, range, TrailEnd::Stable).await?;
    while let Some(line) = reader.next().await? {
        progress.count(&line);
        export.take(line).into_iter().try_for_each(&mut write)?;
    }
    reader.close().await?;
    export.finish().try_for_each(&mut write)?;
    out.flush()
        .context("cannot write the export to standard output")
}

fn range(args: &AuditRangeArgs) -> TrailRange {
    TrailRange {
        since: args.since,
        until: args.until,
    }
}

fn opened(path: &Path) -> anyhow::Result<BufReader<File>> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    Ok(BufReader::new(file))
}
