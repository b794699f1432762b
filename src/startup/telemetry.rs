//! The log, the traces and the metrics of the API's commands.

use super::BUILD;
use super::metrics::METRIC_TABLES;
use crate::config::{Loaded, Settings};
use crate::domain::mapping;
use hyperfleet_server_kit::http::Masks;
use hyperfleet_server_kit::telemetry::{self, Telemetry, Told};

/// The target of single statements.
const STATEMENTS: &str = "hyperfleet::sql";

/// Starts them by these settings.
pub(super) fn start(settings: &Settings) -> anyhow::Result<Telemetry> {
    telemetry::start(&Told {
        build: &BUILD,
        hostname: &settings.server.hostname,
        logging: &settings.logging,
        has_changing_level: false,
        verbose_target: Some((STATEMENTS, settings.database.debug)),
        tracing: &settings.tracing,
        tables: METRIC_TABLES,
        // The rule fails, and the log says so.
        expects_panic: mapping::is_evaluating,
    })
}

/// Starts them, and logs the settings.
pub(super) fn start_with(loaded: &Loaded) -> anyhow::Result<Telemetry> {
    let telemetry = start(&loaded.settings)?;
    tracing::info!(settings = loaded.summary(), "settings");
    warn_of(&loaded.notes);
    Ok(telemetry)
}

/// Logs what is odd, but stops nothing.
pub(super) fn warn_of(notes: &[String]) {
    for note in notes {
        tracing::warn!("{note}");
    }
}

/// What the log does not show of requests: what the settings name, and always the headers of tokens
/// and identities.
pub(super) fn masks(settings: &Settings) -> Masks {
    let issuers = settings.server.jwt.configs.iter();
    let headers = issuers
        .flat_map(|issuer| [issuer.header.clone(), issuer.identity_header.clone()])
        .filter(|header| !header.is_empty());
    telemetry::masks(&settings.logging.masking, headers.collect())
}
