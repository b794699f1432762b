//! `hyperfleet-api migrate`: the schema.

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use tracing::Instrument as _;

use super::{database, telemetry};
use crate::config::{self, MigrateArgs, MigrateCommand, Output, OutputFormat, Settings};
use hyperfleet_server_kit::ending::Misuse;
use hyperfleet_server_kit::program::print;
use hyperfleet_storage::{Migration, MigrationState, Probe, SchemaStatus};

/// Exit code if migrations are missing.
const MISSING: u8 = 3;

/// Brings the schema up to date, or prints its status.
pub(super) async fn run(args: &MigrateArgs) -> anyhow::Result<ExitCode> {
    let command = args.command.as_ref();
    let of_status = command.map(|MigrateCommand::Status(args)| args);
    let settings = of_status.map_or(&args.settings, |args| &args.settings);
    let mut loaded = config::load(settings, &Settings::default())?;
    // Whatever the settings of the service: standard output is for the result.
    loaded.settings.logging.output = Output::Stderr;
    let telemetry = telemetry::start(&loaded.settings)?;
    match of_status {
        None => telemetry::log_settings(&loaded),
        Some(args) => {
            telemetry::warn_of(&loaded.notes);
            if !args.wait {
                loaded.settings.database.pool.conn_retry_attempts = 0;
            }
        }
    }
    let command = async {
        match of_status {
            None => migrate(&loaded.settings).await,
            Some(args) => status(&loaded.settings, args.output).await,
        }
    };
    // Statements are traced below a span only.
    let result = command.instrument(tracing::info_span!("migrate")).await;
    telemetry.traces.end().await;
    result
}

async fn migrate(settings: &Settings) -> anyhow::Result<ExitCode> {
    let store = database::store(&settings.database).context(Misuse)?;
    let mut probe = Probe::new(database::connections(&settings.database)?);
    let before = database::reach(&mut probe, &settings.database).await?;
    let first = probe.migrations().await?.into_iter().next();
    if first.is_some_and(|first| first.state == MigrationState::Unknown) {
        bail!(
            "this database is of release 0.1, whose schema is not upgraded: move its data into a new database \
             (docs/operations/upgrades.md, \"From 0.1\")"
        );
    }
    let after = store
        .migrate(settings.database.pool.advisory_lock_timeout)
        .await
        .context("cannot bring the schema up to date")?;
    let applied = after.applied.saturating_sub(before.applied);
    let mut text = format!(
        "The schema is up to date: {} migrations, {applied} more than before.\n",
        after.applied
    );
    if after.unknown > 0 {
        let unknown = after.unknown;
        let _ = writeln!(
            text,
            "It is newer than this program, by {unknown} migrations."
        );
    }
    print(&text);
    Ok(ExitCode::SUCCESS)
}

async fn status(settings: &Settings, format: OutputFormat) -> anyhow::Result<ExitCode> {
    let mut probe = Probe::new(database::connections(&settings.database)?);
    database::reach(&mut probe, &settings.database).await?;
    let migrations = probe.migrations().await?;
    let status = SchemaStatus::of(&migrations);
    print(&match format {
        OutputFormat::Text => text(&migrations, &status),
        OutputFormat::Json => serde_json::to_string_pretty(&view(&migrations, &status))? + "\n",
    });
    Ok(match status.missing {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(MISSING),
    })
}

fn text(migrations: &[Migration], status: &SchemaStatus) -> String {
    let mut text = String::new();
    for migration in migrations {
        let Migration {
            version,
            description,
            state,
        } = migration;
        let _ = writeln!(text, "{:8} {version} {description}", word(*state));
    }
    let SchemaStatus {
        applied,
        missing,
        unknown,
    } = status;
    let _ = writeln!(
        text,
        "{applied} applied, {missing} missing, {unknown} unknown to this program"
    );
    text
}

fn view(migrations: &[Migration], status: &SchemaStatus) -> Value {
    let migration = |migration: &Migration| {
        let Migration {
            version,
            description,
            state,
        } = migration;
        json!({"version": version, "name": description, "state": word(*state)})
    };
    let SchemaStatus {
        applied,
        missing,
        unknown,
    } = status;
    let migrations: Value = migrations.iter().map(migration).collect();
    json!({"applied": applied, "missing": missing, "unknown": unknown, "migrations": migrations})
}

fn word(state: MigrationState) -> &'static str {
    match state {
        MigrationState::Applied => "applied",
        MigrationState::Missing => "missing",
        MigrationState::Unknown => "unknown",
    }
}
