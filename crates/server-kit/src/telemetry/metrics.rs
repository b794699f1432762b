//! Metrics in Prometheus' format.
//!
//! All code counts through the facade `metrics`; this is its recorder. A scrape sends no request to the database: it
//! works while the database is down, and costs it nothing.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use metrics::{describe_counter, describe_gauge, describe_histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use metrics_process::Collector;

use crate::program::Build;
use MetricKind::{Counter, Gauge, Histogram};

/// How often observations are sorted into buckets. Until then they use memory.
const UPKEEP_PERIOD: Duration = Duration::from_secs(5);

/// One recorder per process, created by the first start.
static RECORDER: OnceLock<PrometheusHandle> = OnceLock::new();

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MetricKind {
    /// It only grows.
    Counter,
    /// The current value.
    Gauge,
    /// Durations, in buckets with these upper bounds.
    Histogram(&'static [f64]),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metric {
    pub name: &'static str,
    pub kind: MetricKind,
    /// Beside `component` and `version`, which every metric has.
    pub labels: &'static [&'static str],
    pub help: &'static str,
}

/// Metrics of one part of a program. `docs/reference/metrics.md` lists them all.
pub type MetricTable = &'static [Metric];

impl Metric {
    pub const fn new(
        name: &'static str,
        kind: MetricKind,
        labels: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Self {
            name,
            kind,
            labels,
            help,
        }
    }

    fn describe(&self) {
        match self.kind {
            Counter => describe_counter!(self.name, self.help),
            Gauge => describe_gauge!(self.name, self.help),
            Histogram(_) => describe_histogram!(self.name, self.help),
        }
        // Starts at zero, so that alerts on growth work. Those with labels start where the label values are
        // known.
        if self.kind == Counter && self.labels.is_empty() {
            metrics::counter!(self.name).absolute(0);
        }
    }
}

/// For requests, in seconds.
const REQUEST_SECONDS: MetricKind = Histogram(&[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
]);

/// Metrics of every program.
#[rustfmt::skip]
pub const KIT_METRICS: MetricTable = &[
    Metric::new("hyperfleet_api_build_info", Gauge, &["commit", "go_version"],
        "Build information; always 1. go_version is the compiler."),
    Metric::new("hyperfleet_api_requests_total", Counter, &["method", "path", "code"],
        "Answered requests. path is the route with - for each id, /- without a route; code 499 if the client left first."),
    Metric::new("hyperfleet_api_request_duration_seconds", REQUEST_SECONDS, &["method", "path", "code"],
        "Time to answer requests."),
    Metric::new("hyperfleet_api_tls_certificate_expiry_timestamp_seconds", Gauge, &["listener"],
        "When the certificate of a listener expires, in seconds since 1970."),
    Metric::new("hyperfleet_api_tls_certificate_reload_failures_total", Counter, &["listener"],
        "Failed checks of a certificate's files, one every two seconds; the earlier certificate stays in use."),
    Metric::new("hyperfleet_api_requests_refused_total", Counter, &["reason"],
        "Refused requests by reason: starting, rate (of one caller), in_flight (of all), memory (for all clients), watchers (of lists and of fleet)."),
    Metric::new("hyperfleet_api_requests_in_flight", Gauge, &[],
        "Requests in progress."),
    Metric::new("hyperfleet_api_buffered_bytes", Gauge, &[],
        "Bytes of large bodies and answers that are held for clients."),
    Metric::new("hyperfleet_api_panics_total", Counter, &[],
        "Panics. Each is a defect; the log has its location."),
    Metric::new("hyperfleet_api_log_lines_dropped_total", Counter, &[],
        "Log lines that were dropped because the reader was too slow, or that could not be written."),
    Metric::new("hyperfleet_api_trace_export_errors_total", Counter, &[],
        "Batches of spans that could not be exported."),
];

/// All series of one gauge, read at a scrape.
#[derive(Debug, Clone, PartialEq)]
pub struct GaugeFamily {
    /// Name in a registered table.
    pub name: &'static str,
    /// Labels and value of each series.
    pub series: Vec<(Vec<(&'static str, String)>, f64)>,
}

type GaugeSource = Box<dyn Fn() -> Vec<GaugeFamily> + Send + Sync>;

/// The metrics of a program. Cheap to clone.
#[derive(Clone)]
pub struct Metrics(Arc<Parts>);

struct Parts {
    recorder: PrometheusHandle,
    process: Collector,
    /// The labels of every series, as text.
    common: String,
    tables: Vec<MetricTable>,
    sources: Mutex<Vec<GaugeSource>>,
}

impl Metrics {
    /// Starts to count the metrics of these tables and of [`KIT_METRICS`]. The first start of a process sets
    /// the program label of all series.
    pub fn start(build: &Build, tables: &[MetricTable]) -> Self {
        let tables = [&[KIT_METRICS], tables].concat();
        let recorder = RECORDER.get_or_init(|| install(build, &tables));
        let labels = [("commit", build.commit), ("go_version", build.compiler)];
        metrics::gauge!("hyperfleet_api_build_info", &labels).set(1.0);
        let (component, version) = (build.component, build.version);
        Self(Arc::new(Parts {
            recorder: recorder.clone(),
            process: Collector::default(),
            common: format!("component=\"{component}\",version=\"{version}\""),
            tables,
            sources: Mutex::default(),
        }))
    }

    /// Adds gauges that are read at each scrape.
    pub fn add_source(&self, source: impl Fn() -> Vec<GaugeFamily> + Send + Sync + 'static) {
        self.sources().push(Box::new(source));
    }

    /// All series in Prometheus' text format.
    pub fn render(&self) -> String {
        self.0.process.collect();
        let mut text = self.0.recorder.render();
        for family in self.sources().iter().flat_map(|source| source()) {
            self.push(&mut text, &family);
        }
        text
    }

    /// Sorts observations into buckets, forever. Must run while metrics are recorded.
    pub async fn upkeep(self) {
        loop {
            tokio::time::sleep(UPKEEP_PERIOD).await;
            self.0.recorder.run_upkeep();
        }
    }

    fn push(&self, text: &mut String, family: &GaugeFamily) {
        let name = family.name;
        let mut metrics = self.0.tables.iter().copied().flatten();
        let help = metrics
            .find(|metric| metric.name == name)
            .map_or("", |m| m.help);
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
        for (labels, value) in &family.series {
            let _ = write!(text, "{name}{{{}", self.0.common);
            for (label, value) in labels {
                let _ = write!(text, ",{label}=\"{}\"", escaped(value));
            }
            let _ = writeln!(text, "}} {value}");
        }
        text.push('\n');
    }

    fn sources(&self) -> MutexGuard<'_, Vec<GaugeSource>> {
        self.0
            .sources
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn install(build: &Build, tables: &[MetricTable]) -> PrometheusHandle {
    let mut builder = PrometheusBuilder::new()
        .add_global_label("component", build.component)
        .add_global_label("version", build.version);
    for metric in tables.iter().copied().flatten() {
        if let Histogram(buckets) = metric.kind {
            builder = builder
                .set_buckets_for_metric(Matcher::Full(metric.name.to_owned()), buckets)
                .unwrap_or_else(|error| unreachable!("there are buckets: {error}"));
        }
    }
    let recorder = builder.build_recorder();
    let handle = recorder.handle();
    // Fails only if the process already has another recorder, as in some tests. These metrics are then empty.
    let _ = metrics::set_global_recorder(recorder);
    for metric in tables.iter().copied().flatten() {
        metric.describe();
    }
    Collector::default().describe();
    handle
}

/// Escapes a label value for the format.
fn escaped(value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"");
    value.replace('\n', "\\n")
}
