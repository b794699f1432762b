//! The metrics of the API, beside the metrics that every program has.

mod hidden_deletions;
mod table;
mod unreconciled;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hidden_deletions::HiddenDeletions;
use hyperfleet_server_kit::http::{Gate, Readiness};
use hyperfleet_server_kit::telemetry::{GaugeFamily, Metrics};
use hyperfleet_service::app::Service;
pub use table::METRIC_TABLES;

/// The metrics of the API. Cheap to clone.
#[derive(Clone)]
pub struct ApiMetrics {
    metrics: Metrics,
    unreconciled: Arc<Mutex<Vec<GaugeFamily>>>,
    hidden_deletions: Arc<Mutex<HiddenDeletions>>,
}

impl ApiMetrics {
    /// Adds the gauges of [`ApiMetrics::refresh`] to these.
    pub fn new(metrics: Metrics) -> Self {
        let unreconciled: Arc<Mutex<Vec<GaugeFamily>>> = Arc::default();
        let source = Arc::clone(&unreconciled);
        metrics.add_source(move || lock(&source).clone());
        Self {
            metrics,
            unreconciled,
            hidden_deletions: Arc::default(),
        }
    }

    /// Shows the connections of this service from now on.
    pub fn show(&self, service: &Service) {
        let service = service.clone();
        self.metrics.add_source(move || connections(&service));
    }

    /// Shows whether this gate lets requests in.
    pub(super) fn show_readiness(&self, gate: Gate) {
        self.metrics.add_source(move || {
            let is_ready = gate.readiness() == Readiness::Ready;
            vec![GaugeFamily {
                name: "hyperfleet_api_ready",
                series: vec![(Vec::new(), if is_ready { 1.0 } else { 0.0 })],
            }]
        });
    }

    /// All series, as text in the format of Prometheus.
    pub fn render(&self) -> String {
        self.metrics.render()
    }
}

fn connections(service: &Service) -> Vec<GaugeFamily> {
    let connections = service.connections();
    let values = [
        ("hyperfleet_db_connections_open", connections.open),
        ("hyperfleet_db_connections_in_use", connections.in_use),
        ("hyperfleet_db_connections_max", connections.max),
        ("hyperfleet_db_connections_waiting", connections.waiting),
        (
            "hyperfleet_db_searches_waiting",
            connections.searches_waiting,
        ),
        ("hyperfleet_db_changes_waiting", connections.changes_waiting),
    ];
    #[expect(clippy::cast_precision_loss, reason = "there are few connections")]
    let family = |(name, value)| GaugeFamily {
        name,
        series: vec![(Vec::new(), value as f64)],
    };
    values.map(family).into()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
