//! Descriptions of the metrics that `crates/adapter` counts.

use hyperfleet_server_kit::telemetry::MetricKind::{Counter, Gauge};
use hyperfleet_server_kit::telemetry::{Metric, MetricKind, MetricTable};

/// Buckets for the work on one resource.
const WORK_SECONDS: MetricKind = MetricKind::Histogram(&[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
]);

/// Metrics of an adapter beside those of every program.
#[rustfmt::skip]
pub const METRICS: MetricTable = &[
    Metric::new("hyperfleet_adapter_leading", Gauge, &[],
        "Whether this replica of the adapter works: 1 or 0."),
    Metric::new("hyperfleet_adapter_queue_waiting", Gauge, &[],
        "Resources waiting for work."),
    Metric::new("hyperfleet_adapter_queue_working", Gauge, &[],
        "Resources being worked on."),
    Metric::new("hyperfleet_adapter_reconciles_total", Counter, &["kind", "outcome"],
        "Work on resources: reported, unchanged, discarded, gone or failed."),
    Metric::new("hyperfleet_adapter_reconcile_duration_seconds", WORK_SECONDS, &["kind"],
        "Duration of the work on a resource, including requests."),
    Metric::new("hyperfleet_adapter_lists_total", Counter, &["kind", "what", "outcome"],
        "Lists of changes and of all resources: done or failed."),
    Metric::new("hyperfleet_adapter_following", Gauge, &["kind"],
        "Whether a watch shows the changes of the kind: 1, or 0 while they are polled."),
];
