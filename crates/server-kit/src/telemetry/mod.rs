//! Telemetry of a program: log, traces and metrics.

mod collector;
mod export;
mod format;
mod log;
mod metrics;
mod outgoing;
mod panics;
mod queue;
mod traces;

use anyhow::Context as _;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

pub use log::{flush, log_last, set_level};
pub use metrics::{GaugeFamily, KIT_METRICS, Metric, MetricKind, MetricTable, Metrics};
pub use outgoing::{TraceContext, client_span};
pub use traces::{FLUSH_TIME_MAX, Traces};

use crate::http::Redaction;
use crate::program::Build;
use crate::settings::{Logging, RedactionSettings, Tracing};

/// The started telemetry. Clones share it.
#[derive(Clone)]
pub struct Telemetry {
    /// End it before the program ends, or the last spans are lost.
    pub traces: Traces,
    pub metrics: Metrics,
}

/// Settings of the telemetry.
pub struct TelemetrySettings<'a> {
    pub build: &'a Build,
    /// Instance name in logs; empty for none.
    pub hostname: &'a str,
    pub logging: &'a Logging,
    /// Whether the level may change at run time, which costs a little per line.
    pub has_changing_level: bool,
    /// A target whose lines below `warn` are logged only if the flag is set.
    pub verbose_target: Option<(&'static str, bool)>,
    pub tracing: &'a Tracing,
    /// The program's metrics beside [`KIT_METRICS`].
    pub tables: &'static [MetricTable],
    /// Whether a panic of this thread is expected: its catcher logs it.
    pub expects_panic: fn() -> bool,
}

/// Starts the log, the metrics and, if a collector is configured, traces.
///
/// # Errors
/// The thread that writes the log cannot be started.
pub fn start(settings: &TelemetrySettings<'_>) -> anyhow::Result<Telemetry> {
    let metrics = Metrics::start(settings.build, settings.tables);
    let (log, mut notes) = log::layer(settings).context("cannot start the log")?;
    let (traces, odd) = traces::start(settings.tracing, settings.build.version);
    notes.extend(odd);
    // Fails only if a log was started before, as in tests: that one stays.
    let _ = tracing_subscriber::registry()
        .with(log)
        .with(traces.layer())
        .try_init();
    panics::install_hook(settings.expects_panic);
    log::check_shows_program();
    for note in notes {
        tracing::warn!("{note}");
    }
    Ok(Telemetry { traces, metrics })
}

/// What the log hides of requests: the configured names, and always these headers with credentials.
pub fn redaction(masking: &RedactionSettings, mut headers: Vec<String>) -> Redaction {
    if !masking.enabled {
        return Redaction::new(&headers, &[]);
    }
    headers.extend_from_slice(&masking.headers);
    Redaction::new(&headers, &masking.fields)
}
