//! What the program says of itself: its log, its traces, its metrics.

mod collector;
mod export;
mod format;
mod log;
mod metrics;
mod panics;
mod queue;
mod traces;

use anyhow::Context as _;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

pub use metrics::Metrics;
pub(crate) use traces::{FLUSH_TIME_MAX, Traces};

use crate::config::{Level, Logging, Settings, Tracing};
use crate::http::{Build, Masks};
use format::Constants;

/// What was started. Every clone is the same one.
#[derive(Clone)]
pub(crate) struct Telemetry {
    /// To be ended before the program does, or the last spans are lost.
    pub(crate) traces: Traces,
    /// What is counted.
    pub(crate) metrics: Metrics,
}

/// What is said, and as which program.
pub(crate) struct Told<'a> {
    /// What all series are said to be of.
    pub(crate) component: &'static str,
    /// What this instance is called in its log; empty for nothing.
    pub(crate) hostname: &'a str,
    pub(crate) logging: &'a Logging,
    /// Whether the level may be changed later, which costs a little with every line.
    pub(crate) has_changing_level: bool,
    pub(crate) shows_statements: bool,
    pub(crate) tracing: &'a Tracing,
}

/// Starts the log, what is counted and, where a collector is named, traces.
///
/// # Errors
///
/// The machine has no thread to write the log with.
pub(crate) fn start(settings: &Settings, build: &Build) -> anyhow::Result<Telemetry> {
    let told = Told {
        component: metrics::API,
        hostname: &settings.server.hostname,
        logging: &settings.logging,
        has_changing_level: false,
        shows_statements: settings.database.debug,
        tracing: &settings.tracing,
    };
    start_as(&told, build)
}

/// The same for a program with other settings.
///
/// # Errors
///
/// The machine has no thread to write the log with.
pub(crate) fn start_as(told: &Told<'_>, build: &Build) -> anyhow::Result<Telemetry> {
    let metrics = Metrics::start_as(told.component, build);
    let constants = Constants {
        version: build.version,
        hostname: told.hostname.to_owned(),
    };
    let log = log::layer(told, &constants);
    let (log, mut notes) = log.context("cannot start the log")?;
    let (traces, odd) = traces::start(told.tracing, build.version);
    notes.extend(odd);
    // Fails only if a log was started before, as in tests: that one stays.
    let _ = tracing_subscriber::registry()
        .with(log)
        .with(traces.layer())
        .try_init();
    panics::tell();
    log::check_is_heard();
    for note in notes {
        tracing::warn!("{note}");
    }
    Ok(Telemetry { traces, metrics })
}

/// Logs from this level on from now on; gives whether that counts: `RUST_LOG` has the last word, and a log whose level
/// does not change has none.
pub(crate) fn set_level(level: Level) -> bool {
    log::set_level(level)
}

/// Waits until the log is written, as long as it is being read.
pub(crate) fn flush() {
    log::flush();
}

/// Says why the program ends, whatever else waits to be written, and waits until it is.
pub(crate) fn say_last(say: impl FnOnce()) -> bool {
    log::say_last(say)
}

/// What the log does not show of requests where nobody presents a token.
pub(crate) fn masks_without_tokens(logging: &Logging) -> Masks {
    let masking = &logging.masking;
    if !masking.enabled {
        return Masks::new(&[], &[]);
    }
    Masks::new(&masking.headers, &masking.fields)
}

/// What the log does not show of requests: what the settings name, and always the headers of tokens
/// and identities.
pub(crate) fn masks(settings: &Settings) -> Masks {
    let masking = &settings.logging.masking;
    let issuers = settings.server.jwt.configs.iter();
    let mut headers: Vec<_> = issuers
        .flat_map(|issuer| [issuer.header.clone(), issuer.identity_header.clone()])
        .filter(|header| !header.is_empty())
        .collect();
    if !masking.enabled {
        return Masks::new(&headers, &[]);
    }
    headers.extend_from_slice(&masking.headers);
    Masks::new(&headers, &masking.fields)
}
