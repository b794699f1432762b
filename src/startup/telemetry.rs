//! The log, the traces and the metrics of the API's commands.

use super::BUILD;
use super::metrics::METRIC_TABLES;
use crate::config::{Loaded, Settings};
use hyperfleet_server_kit::http::Redaction;
use hyperfleet_server_kit::program::Build;
use hyperfleet_server_kit::telemetry::{self, Telemetry, TelemetrySettings};

/// The target of single statements.
const STATEMENTS: &str = "hyperfleet::sql";

/// Starts them by these settings.
pub(super) fn start(settings: &Settings) -> anyhow::Result<Telemetry> {
    start_of(&BUILD, settings)
}

/// Starts them for a part of this program that has a name of its own in the log.
pub(super) fn start_of(build: &Build, settings: &Settings) -> anyhow::Result<Telemetry> {
    telemetry::start(&TelemetrySettings {
        build,
        hostname: &settings.server.hostname,
        logging: &settings.logging,
        has_changing_level: false,
        verbose_target: Some((STATEMENTS, settings.database.debug)),
        tracing: &settings.tracing,
        tables: METRIC_TABLES,
        // The log has an entry for the failed rule.
        expects_panic: hyperfleet_expressions::is_evaluating,
    })
}

/// Starts them, and logs the settings.
pub(super) fn start_with(loaded: &Loaded) -> anyhow::Result<Telemetry> {
    let telemetry = start(&loaded.settings)?;
    log_settings(loaded);
    Ok(telemetry)
}

/// Logs the settings, and the notes about their sources.
pub(super) fn log_settings(loaded: &Loaded) {
    tracing::info!(settings = loaded.summary(), "settings");
    warn_of(&loaded.notes);
}

/// Logs notes, which stop nothing.
pub(super) fn warn_of(notes: &[String]) {
    for note in notes {
        tracing::warn!("{note}");
    }
}

/// Parts of requests that the log hides: those that the settings name, and always the headers of tokens and
/// identities.
pub(super) fn redaction(settings: &Settings) -> Redaction {
    let issuers = settings.server.jwt.configs.iter();
    let headers = issuers
        .flat_map(|issuer| [issuer.header.clone(), issuer.identity_header.clone()])
        .filter(|header| !header.is_empty());
    telemetry::redaction(&settings.logging.masking, headers.collect())
}
