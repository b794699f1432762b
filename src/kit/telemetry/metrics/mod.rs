//! What is counted, as Prometheus reads it.
//!
//! Everybody counts through the facade `metrics`; here is where that goes. Reading it asks nobody
//! anything: it works while the database is down, and costs it nothing.

mod catalogue;
mod unreconciled;

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use metrics_process::Collector;

use crate::app::Service;
use crate::fleet::engine;
use crate::http::Build;
use crate::kit::clock::Clock;

/// What the series of the service are said to be of.
pub(super) const API: &str = "api";
/// How often what was observed is sorted into buckets; until then it takes room.
const UPKEEP_PERIOD: Duration = Duration::from_secs(5);

/// There is one recorder in a process, whoever asks for it first.
static RECORDER: OnceLock<PrometheusHandle> = OnceLock::new();

/// The metrics of a service. Cheap to clone.
#[derive(Clone)]
pub struct Metrics(Arc<Parts>);

struct Parts {
    recorder: PrometheusHandle,
    process: Collector,
    /// The labels that every series has, as text.
    common: String,
    /// Whose connections are shown.
    service: Mutex<Option<Service>>,
    unreconciled: Mutex<Vec<Gauge>>,
}

/// The three gauges of one kind and state.
#[derive(Debug, Clone, PartialEq)]
struct Gauge {
    resource_type: String,
    is_delete: bool,
    pending: i64,
    stuck: i64,
    stuck_seconds: f64,
}

impl Metrics {
    /// Starts to keep what the service counts from now on. The first one of a process decides which
    /// program all series are said to be of.
    #[must_use]
    pub fn start(build: &Build) -> Self {
        Self::start_as(API, build)
    }

    /// The same for another program.
    pub(crate) fn start_as(component: &'static str, build: &Build) -> Self {
        let recorder = RECORDER.get_or_init(|| install(component, build));
        let labels = [
            ("commit", build.commit),
            ("go_version", env!("HYPERFLEET_BUILD_RUSTC")),
        ];
        metrics::gauge!("hyperfleet_api_build_info", &labels).set(1.0);
        // So that alerts on their growth have something to begin from.
        for name in ZERO_FROM_THE_START {
            metrics::counter!(*name).absolute(0);
        }
        Self(Arc::new(Parts {
            recorder: recorder.clone(),
            process: Collector::default(),
            common: format!("component=\"{component}\",version=\"{}\"", build.version),
            service: Mutex::default(),
            unreconciled: Mutex::default(),
        }))
    }

    /// Shows the connections of this service from now on.
    pub fn show(&self, service: &Service) {
        *lock(&self.0.service) = Some(service.clone());
    }

    /// Every metric of the service's own: its name, and the labels of its series besides the two
    /// that all have.
    pub fn catalogue() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
        let all = catalogue::CATALOGUE.iter();
        all.map(|metric| (metric.name, metric.labels))
    }

    /// All series, as text in the format of Prometheus.
    #[must_use]
    pub fn render(&self) -> String {
        self.0.process.collect();
        let mut text = self.0.recorder.render();
        self.push_connections(&mut text);
        self.push_unreconciled(&mut text);
        text
    }

    /// Keeps what is counted in order, for ever. To run for as long as anything is counted, be it
    /// read or not.
    pub async fn upkeep(self) {
        loop {
            tokio::time::sleep(UPKEEP_PERIOD).await;
            self.0.recorder.run_upkeep();
        }
    }

    /// Keeps the pending gauges up to date, for ever. What has not been reconciled for longer than
    /// `threshold` counts as stuck.
    pub async fn keep(self, service: Service, clock: Clock, threshold: Duration) {
        unreconciled::refresh(&self, &service, &clock, threshold).await;
    }

    fn push_connections(&self, text: &mut String) {
        let service = lock(&self.0.service).clone();
        let Some(connections) = service.map(|service| service.connections()) else {
            return;
        };
        for (name, value) in [
            ("hyperfleet_db_connections_open", connections.open),
            ("hyperfleet_db_connections_in_use", connections.in_use),
            ("hyperfleet_db_connections_max", connections.max),
            ("hyperfleet_db_connections_waiting", connections.waiting),
        ] {
            push_head(text, name);
            let _ = writeln!(text, "{name}{{{}}} {value}\n", self.0.common);
        }
    }

    fn push_unreconciled(&self, text: &mut String) {
        let gauges = lock(&self.0.unreconciled).clone();
        if gauges.is_empty() {
            return;
        }
        let mut push = |name: &str, value: fn(&Gauge) -> f64| {
            push_head(text, name);
            for gauge in &gauges {
                let (kind, is_delete) = (escaped(&gauge.resource_type), gauge.is_delete);
                let common = &self.0.common;
                let value = value(gauge);
                let _ = writeln!(
                    text,
                    "{name}{{{common},resource_type=\"{kind}\",is_delete=\"{is_delete}\"}} {value}"
                );
            }
            text.push('\n');
        };
        #[expect(clippy::cast_precision_loss, reason = "nobody has that many resources")]
        {
            push(unreconciled::PENDING, |gauge| gauge.pending as f64);
            push(unreconciled::STUCK, |gauge| gauge.stuck as f64);
        }
        push(unreconciled::STUCK_SECONDS, |gauge| gauge.stuck_seconds);
    }
}

/// Counters without labels that only grow when something is wrong.
const ZERO_FROM_THE_START: &[&str] = &[
    "hyperfleet_api_panics_total",
    "hyperfleet_api_log_lines_dropped_total",
    "hyperfleet_api_trace_export_errors_total",
    "hyperfleet_api_reconciliation_refresh_errors_total",
];

fn install(component: &'static str, build: &Build) -> PrometheusHandle {
    let mut builder = PrometheusBuilder::new()
        .add_global_label("component", component)
        .add_global_label("version", build.version);
    let of_catalogue = catalogue::CATALOGUE
        .iter()
        .filter_map(|metric| match metric.of {
            catalogue::Type::Histogram(buckets) => Some((metric.name, buckets)),
            _ => None,
        });
    let of_engine = engine::METRICS.iter().filter_map(|metric| match metric.of {
        engine::MetricType::Histogram(buckets) => Some((metric.name, buckets)),
        _ => None,
    });
    for (name, buckets) in of_catalogue.chain(of_engine) {
        builder = builder
            .set_buckets_for_metric(Matcher::Full(name.to_owned()), buckets)
            .unwrap_or_else(|error| unreachable!("there are buckets: {error}"));
    }
    let recorder = builder.build_recorder();
    let handle = recorder.handle();
    // Fails only if the process counts elsewhere already, as a test may: then nothing is shown.
    let _ = metrics::set_global_recorder(recorder);
    catalogue::describe();
    Collector::default().describe();
    handle
}

fn push_head(text: &mut String, name: &str) {
    let help = catalogue::find(name).map_or("", |metric| metric.help);
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
}

/// A value of a label, as the format wants it.
fn escaped(value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"");
    value.replace('\n', "\\n")
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
