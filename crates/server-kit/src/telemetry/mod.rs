//! What a program says of itself: its log, its traces, its metrics.

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

pub use log::{flush, say_last, set_level};
pub use metrics::{GaugeFamily, KIT_METRICS, Metric, MetricKind, MetricTable, Metrics};
pub use outgoing::{TraceContext, client_span};
pub use traces::{FLUSH_TIME_MAX, Traces};

use crate::http::Masks;
use crate::program::Build;
use crate::settings::{Logging, Masking, Tracing};

/// What was started. Every clone is the same one.
#[derive(Clone)]
pub struct Telemetry {
    /// To be ended before the program does, or the last spans are lost.
    pub traces: Traces,
    pub metrics: Metrics,
}

/// What a program says, and how.
pub struct Told<'a> {
    pub build: &'a Build,
    /// Instance name in logs; empty for none.
    pub hostname: &'a str,
    pub logging: &'a Logging,
    /// Whether the level may be changed later, which costs a little with every line.
    pub has_changing_level: bool,
    /// A target whose lines below `warn` are shown only where the flag beside it says so.
    pub verbose_target: Option<(&'static str, bool)>,
    pub tracing: &'a Tracing,
    /// What the program counts beside [`KIT_METRICS`].
    pub tables: &'static [MetricTable],
    /// Whether a panic of this thread is expected: its catcher says what there is to say.
    pub expects_panic: fn() -> bool,
}

/// Starts the log, what is counted and, where a collector is named, traces.
///
/// # Errors
///
/// The machine has no thread to write the log with.
pub fn start(told: &Told<'_>) -> anyhow::Result<Telemetry> {
    let metrics = Metrics::start(told.build, told.tables);
    let (log, mut notes) = log::layer(told).context("cannot start the log")?;
    let (traces, odd) = traces::start(told.tracing, told.build.version);
    notes.extend(odd);
    // Fails only if a log was started before, as in tests: that one stays.
    let _ = tracing_subscriber::registry()
        .with(log)
        .with(traces.layer())
        .try_init();
    panics::tell(told.expects_panic);
    log::check_is_heard();
    for note in notes {
        tracing::warn!("{note}");
    }
    Ok(Telemetry { traces, metrics })
}

/// What the log does not show of requests: what the settings name, and always these headers, which
/// carry credentials.
pub fn masks(masking: &Masking, mut headers: Vec<String>) -> Masks {
    if !masking.enabled {
        return Masks::new(&headers, &[]);
    }
    headers.extend_from_slice(&masking.headers);
    Masks::new(&headers, &masking.fields)
}
