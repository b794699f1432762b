//! Exports spans to a collector. An unreachable collector costs requests nothing: spans wait in a bounded
//! queue, and spans that do not fit are dropped.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use opentelemetry_otlp::SpanExporter as Otlp;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use tokio::runtime::Handle;

/// A failure is logged at most this often.
const LOG_PERIOD: Duration = Duration::from_mins(5);

/// Exports on the service's own runtime: the thread that collects spans has none, and the clients of both
/// protocols need one.
pub(super) struct Exporter {
    otlp: Arc<Otlp>,
    runtime: Handle,
    logged_at: Mutex<Option<Instant>>,
}

impl Exporter {
    /// Exports on this runtime.
    pub(super) fn new(otlp: Otlp, runtime: Handle) -> Self {
        Self {
            otlp: Arc::new(otlp),
            runtime,
            logged_at: Mutex::new(None),
        }
    }

    fn log_error(&self, error: &OTelSdkError) {
        metrics::counter!("hyperfleet_api_trace_export_errors_total").increment(1);
        let mut logged_at = self
            .logged_at
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if logged_at.is_none_or(|at| at.elapsed() >= LOG_PERIOD) {
            *logged_at = Some(Instant::now());
            let error = error as &dyn std::error::Error;
            tracing::warn!(
                error,
                "spans lost: the collector refused them or is unreachable"
            );
        }
    }
}

impl SpanExporter for Exporter {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let otlp = Arc::clone(&self.otlp);
        let sending = self.runtime.spawn(async move { otlp.export(batch).await });
        let lost = |error| Err(OTelSdkError::InternalFailure(format!("{error}")));
        let result = sending.await.unwrap_or_else(lost);
        result.inspect_err(|error| self.log_error(error))
    }

    fn set_resource(&mut self, resource: &Resource) {
        // Before the first batch there is no other reference.
        if let Some(otlp) = Arc::get_mut(&mut self.otlp) {
            otlp.set_resource(resource);
        }
    }
}

/// Without the headers for the collector, which may contain a token.
impl fmt::Debug for Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Exporter")
    }
}
