//! The API's own metrics. Those of the older service come first, with its names and labels, which dashboards and
//! alerts know.

use hyperfleet_server_kit::telemetry::MetricKind::{Counter, Gauge};
use hyperfleet_server_kit::telemetry::{Metric, MetricKind, MetricTable};

/// Duration of statements, in seconds.
const STATEMENT_SECONDS: MetricKind =
    MetricKind::Histogram(&[0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0]);

/// The API's metrics beside the metrics that every program has.
pub const METRIC_TABLES: &[MetricTable] = &[API_METRICS, hyperfleet_fleet_adapter::METRICS];

#[rustfmt::skip]
const API_METRICS: MetricTable = &[
    Metric::new("hyperfleet_api_ready", Gauge, &[],
        "Whether this instance is ready, as /readyz says: 1 or 0."),
    Metric::new("hyperfleet_api_reconciliation_started_total", Counter, &["resource_type", "is_delete"],
        "Resources whose condition Reconciled became False."),
    Metric::new("hyperfleet_api_resource_pending_reconciliation", Gauge, &["resource_type", "is_delete"],
        "Resources whose condition Reconciled is False; no series where there are none."),
    Metric::new("hyperfleet_api_resource_pending_reconciliation_stuck", Gauge, &["resource_type", "is_delete"],
        "Resources whose condition Reconciled has been False for longer than metrics.reconciliation_stuck_threshold."),
    Metric::new("hyperfleet_api_resource_pending_reconciliation_stuck_duration_seconds", Gauge, &["resource_type", "is_delete"],
        "Seconds since the oldest stuck resource became unreconciled; 0 if none is stuck."),
    Metric::new("hyperfleet_api_finalizing_resources_unlisted", Gauge, &["resource_type"],
        "Resources that have been finalizing for ten minutes, if no list or watch of this instance has included finalizing resources of their kind; otherwise 0."),
    Metric::new("hyperfleet_db_query_duration_seconds", STATEMENT_SECONDS, &["operation", "table"],
        "Duration of statements, including the network."),
    Metric::new("hyperfleet_db_errors_total", Counter, &["operation", "error_type"],
        "Failed statements. A name that is in use counts as constraint_violation; a lock that another transaction holds does not count."),
    Metric::new("hyperfleet_db_connections_open", Gauge, &[],
        "Connections to the database."),
    Metric::new("hyperfleet_db_connections_in_use", Gauge, &[],
        "Connections to the database in use."),
    Metric::new("hyperfleet_db_connections_max", Gauge, &[],
        "Maximum number of connections for requests: database.pool.max_connections."),
    Metric::new("hyperfleet_db_connections_waiting", Gauge, &[],
        "Requests waiting for a connection."),
    Metric::new("hyperfleet_db_searches_waiting", Gauge, &[],
        "Searches and other long lists that wait because the limit for them is reached."),
    Metric::new("hyperfleet_db_changes_waiting", Gauge, &[],
        "Writes that wait for a row lock and exceed the limit of connections for such writes."),
    Metric::new("hyperfleet_db_connection_wait_seconds", STATEMENT_SECONDS, &[],
        "Time to get a connection, without the time that searches and writes wait because of their own limits."),
    Metric::new("hyperfleet_api_auth_failures_total", Counter, &["reason"],
        "Requests refused for a missing or invalid token, or without an identity."),
    Metric::new("hyperfleet_api_jwks_refreshes_total", Counter, &["issuer", "source", "outcome"],
        "Fetches and reads of issuers' keys by outcome: success, or the reason of the failure."),
    Metric::new("hyperfleet_api_jwks_last_success_timestamp_seconds", Gauge, &["issuer", "source"],
        "When keys of an issuer were last read from its address or file, in seconds since 1970."),
    Metric::new("hyperfleet_api_jwks_keys", Gauge, &["issuer"],
        "Usable keys of an issuer; with 0 all its tokens are refused."),
    Metric::new("hyperfleet_api_reports_total", Counter, &["resource_type", "outcome"],
        "Reports of adapters: accepted, repeated, same_time (not stored: other conditions at the time of the stored report), rejected, or discarded and why."),
    Metric::new("hyperfleet_api_unrequired_reports_total", Counter, &["resource_type"],
        "Accepted and repeated reports of adapters that the kind does not require. Kinds that require no adapters are not counted."),
    Metric::new("hyperfleet_api_audit_entries_total", Counter, &["action"],
        "Entries of the audit trail."),
    Metric::new("hyperfleet_api_audit_unsealed_seconds", Gauge, &[],
        "Age of the oldest entry of the audit trail that is not sealed; 0 if all are."),
    Metric::new("hyperfleet_api_hard_deletes_total", Counter, &["resource_type"],
        "Resources removed after their adapters were done."),
    Metric::new("hyperfleet_api_force_deletes_total", Counter, &["resource_type"],
        "Resources removed by force, before their adapters were done."),
    Metric::new("hyperfleet_api_watchers", Gauge, &[],
        "Watches in progress."),
    Metric::new("hyperfleet_api_watch_events_total", Counter, &["type"],
        "Changes sent to watchers: ADDED, MODIFIED or DELETED."),
    Metric::new("hyperfleet_api_watch_lag_seconds", Gauge, &[],
        "How long the oldest change has waited that was not handed to watchers, because a transaction is open or the database does not answer; 0 if none waits."),
    Metric::new("hyperfleet_api_watch_catch_ups_total", Counter, &[],
        "Reads of changes by watchers that were behind."),
    Metric::new("hyperfleet_api_watches_ended_total", Counter, &["reason"],
        "Watches that the service ended, by reason: gone (the position), behind, unauthorized, failed."),
    Metric::new("hyperfleet_api_condition_rule_failures_total", Counter, &["kind", "type"],
        "Failed evaluations of condition rules."),
    Metric::new("hyperfleet_api_reconciliation_refresh_errors_total", Counter, &[],
        "Failed updates of the pending gauges, which keep their values."),
    Metric::new("hyperfleet_api_reconciliation_refresh_timestamp_seconds", Gauge, &[],
        "When the pending gauges were last updated, in seconds since 1970."),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;
    use hyperfleet_fleet::{agent, engine};
    use hyperfleet_server_kit::telemetry::KIT_METRICS;

    /// Every metric of this program and of fleetd.
    fn all() -> impl Iterator<Item = &'static Metric> {
        [
            KIT_METRICS,
            API_METRICS,
            hyperfleet_fleet_adapter::METRICS,
            engine::METRICS,
            agent::METRICS,
        ]
        .into_iter()
        .flatten()
    }

    #[test]
    fn the_manual_has_every_metric_and_no_other() {
        let expected = all().map(|metric| {
            let kind = match metric.kind {
                Counter => "counter",
                Gauge => "gauge",
                MetricKind::Histogram(_) => "histogram",
            };
            let labels: Vec<_> = metric.labels.iter().map(|l| format!("`{l}`")).collect();
            let (name, labels, help) = (metric.name, labels.join(", "), metric.help);
            format!("| `{name}` | {kind} | {labels} | {help} |")
        });
        let expected: BTreeSet<_> = expected.collect();
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/metrics.md");
        let text = std::fs::read_to_string(file).unwrap();
        let kinds = ["counter", "gauge", "histogram"];
        let is_row = |line: &&str| line.split(" | ").nth(1).is_some_and(|k| kinds.contains(&k));
        let found = text.lines().filter(is_row).map(ToOwned::to_owned).collect();
        assert_eq!(expected, found);
    }

    /// Every text in the source that is the name of a metric.
    fn names(folder: &Path, names: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                self::names(&path, names);
                continue;
            }
            let source = std::fs::read_to_string(path).unwrap();
            let texts = source.split('"').map(ToOwned::to_owned);
            names.extend(texts.filter(|text| {
                let is_word = text.chars().all(|c| c.is_ascii_lowercase() || c == '_');
                is_word
                    && !text.ends_with('_')
                    && ["hyperfleet_api_", "hyperfleet_db_", "hyperfleet_adapter_"]
                        .iter()
                        .any(|prefix| text.starts_with(prefix))
            }));
        }
    }

    #[test]
    fn whatever_is_counted_is_described() {
        let mut found = Vec::new();
        for folder in ["src", "crates"] {
            names(
                &Path::new(env!("CARGO_MANIFEST_DIR")).join(folder),
                &mut found,
            );
        }
        assert!(found.len() > API_METRICS.len(), "{found:?}");
        for name in found {
            let is_known = all().any(|metric| metric.name == name);
            assert!(is_known, "{name} has no row in a table");
        }
    }

    #[test]
    fn every_name_is_there_once_and_is_a_good_one() {
        let mut names = BTreeSet::new();
        for metric in all() {
            let name = metric.name;
            assert!(names.insert(name), "{name}");
            let prefixes = ["hyperfleet_", "fleet_engine_", "fleet_agent_"];
            assert!(
                prefixes.iter().any(|prefix| name.starts_with(prefix)),
                "{name}"
            );
            let is_counter = metric.kind == Counter;
            assert_eq!(name.ends_with("_total"), is_counter, "{name}");
            assert!(metric.help.ends_with('.'), "{name}");
        }
    }
}
