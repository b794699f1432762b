//! Every metric: what it is called, which labels it has, what it says. The older service's names and
//! labels come first, as dashboards and alerts know them. `docs/observability.md` shows this table.

use metrics::{describe_counter, describe_gauge, describe_histogram};

/// How a metric is read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Type {
    /// It only grows.
    Counter,
    /// It is so at the moment.
    Gauge,
    /// How long things took, in buckets.
    Histogram(&'static [f64]),
}

/// One metric.
#[derive(Debug, Clone, Copy)]
pub(super) struct Metric {
    pub(super) name: &'static str,
    pub(super) of: Type,
    /// Besides `component` and `version`, which every one has.
    pub(super) labels: &'static [&'static str],
    pub(super) help: &'static str,
}

/// Of requests, in seconds.
const REQUESTS: Type = Type::Histogram(&[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
]);
/// Of statements, in seconds.
const STATEMENTS: Type = Type::Histogram(&[0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0]);

const fn metric(
    name: &'static str,
    of: Type,
    labels: &'static [&'static str],
    help: &'static str,
) -> Metric {
    Metric {
        name,
        of,
        labels,
        help,
    }
}

use Type::{Counter, Gauge};

/// All of them.
#[rustfmt::skip]
pub(super) const CATALOGUE: &[Metric] = &[
    metric("hyperfleet_api_build_info", Gauge, &["commit", "go_version"],
           "Which program this is; always 1. go_version says what compiled it."),
    metric("hyperfleet_api_requests_total", Counter, &["method", "path", "code"],
           "Requests that were answered. path is the route with - for each id, /- where there is none; code 499 where the client left first."),
    metric("hyperfleet_api_request_duration_seconds", REQUESTS, &["method", "path", "code"],
           "How long requests took to be answered."),
    metric("hyperfleet_api_reconciliation_started_total", Counter, &["resource_type", "is_delete"],
           "Resources whose condition Reconciled became False."),
    metric("hyperfleet_api_resource_pending_reconciliation", Gauge, &["resource_type", "is_delete"],
           "Resources whose condition Reconciled is False; no series where there are none."),
    metric("hyperfleet_api_resource_pending_reconciliation_stuck", Gauge, &["resource_type", "is_delete"],
           "Of these, the ones that have been so for longer than metrics.reconciliation_stuck_threshold."),
    metric("hyperfleet_api_resource_pending_reconciliation_stuck_duration_seconds", Gauge, &["resource_type", "is_delete"],
           "For how long the first of the stuck ones has been so; 0 where none is."),
    metric("hyperfleet_db_query_duration_seconds", STATEMENTS, &["operation", "table"],
           "How long statements took, their way to the database and back included."),
    metric("hyperfleet_db_errors_total", Counter, &["operation", "error_type"],
           "Statements that failed; names that are taken count as constraint_violation."),
    metric("hyperfleet_db_connections_open", Gauge, &[],
           "Connections to the database."),
    metric("hyperfleet_db_connections_in_use", Gauge, &[],
           "Connections to the database that are used at the moment."),
    metric("hyperfleet_db_connections_max", Gauge, &[],
           "Most connections that requests may use: database.pool.max_connections."),
    metric("hyperfleet_db_connections_waiting", Gauge, &[],
           "Requests that wait for a connection."),
    metric("hyperfleet_db_connection_wait_seconds", STATEMENTS, &[],
           "How long connections took to be had."),
    metric("hyperfleet_api_auth_failures_total", Counter, &["reason"],
           "Requests without a good token, or whose token does not say who is calling."),
    metric("hyperfleet_api_jwks_refreshes_total", Counter, &["issuer", "source", "outcome"],
           "How often keys of issuers were fetched or read anew: success, or why not."),
    metric("hyperfleet_api_jwks_last_success_timestamp_seconds", Gauge, &["issuer", "source"],
           "When keys of an issuer were last had from its address or file, in seconds since 1970."),
    metric("hyperfleet_api_jwks_keys", Gauge, &["issuer"],
           "Keys of an issuer that can be used; with 0 none of its tokens is taken."),
    metric("hyperfleet_api_tls_certificate_expiry_timestamp_seconds", Gauge, &["listener"],
           "When the certificate of a listener expires, in seconds since 1970."),
    metric("hyperfleet_api_tls_certificate_reload_failures_total", Counter, &["listener"],
           "Looks at the files of a certificate, one every two seconds, that found nothing to use; the old one stays in use."),
    metric("hyperfleet_api_requests_refused_total", Counter, &["reason"],
           "Requests that were not let in: starting, rate (of one caller), in_flight (of all), memory (held for all), watchers (of fleet)."),
    metric("hyperfleet_api_requests_in_flight", Gauge, &[],
           "Requests under way."),
    metric("hyperfleet_api_buffered_bytes", Gauge, &[],
           "Bytes of large bodies and answers that are held for clients."),
    metric("hyperfleet_api_reports_total", Counter, &["resource_type", "outcome"],
           "Reports of adapters: accepted, repeated, rejected, or discarded and why."),
    metric("hyperfleet_api_audit_entries_total", Counter, &["action"],
           "Entries of the audit trail."),
    metric("hyperfleet_api_hard_deletes_total", Counter, &["resource_type"],
           "Resources removed because all work was done."),
    metric("hyperfleet_api_force_deletes_total", Counter, &["resource_type"],
           "Resources removed although work was not done."),
    metric("hyperfleet_api_condition_rule_failures_total", Counter, &["kind", "type"],
           "Rules of conditions that could not be computed."),
    metric("hyperfleet_api_panics_total", Counter, &[],
           "Panics. Each is a defect: the log says where."),
    metric("hyperfleet_api_log_lines_dropped_total", Counter, &[],
           "Lines of the log that nobody took in time, or that could not be written."),
    metric("hyperfleet_api_reconciliation_refresh_errors_total", Counter, &[],
           "How often the pending gauges could not be brought up to date; they keep their values then."),
    metric("hyperfleet_api_reconciliation_refresh_timestamp_seconds", Gauge, &[],
           "When the pending gauges were last brought up to date, in seconds since 1970."),
    metric("hyperfleet_api_trace_export_errors_total", Counter, &[],
           "Batches of spans that the collector did not take."),
];

/// Tells the recorder what they say.
pub(super) fn describe() {
    for metric in CATALOGUE {
        match metric.of {
            Type::Counter => describe_counter!(metric.name, metric.help),
            Type::Gauge => describe_gauge!(metric.name, metric.help),
            Type::Histogram(_) => describe_histogram!(metric.name, metric.help),
        }
    }
}

/// The metric of that name.
pub(super) fn find(name: &str) -> Option<&'static Metric> {
    CATALOGUE.iter().find(|metric| metric.name == name)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::path::Path;

    use super::*;

    fn table() -> String {
        let mut table = "| name | type | labels | says |\n| --- | --- | --- | --- |\n".to_owned();
        for metric in CATALOGUE {
            let of = match metric.of {
                Type::Counter => "counter",
                Type::Gauge => "gauge",
                Type::Histogram(_) => "histogram",
            };
            let labels: Vec<_> = metric.labels.iter().map(|l| format!("`{l}`")).collect();
            let (name, labels, help) = (metric.name, labels.join(", "), metric.help);
            writeln!(table, "| `{name}` | {of} | {labels} | {help} |").unwrap();
        }
        table
    }

    #[test]
    fn the_manual_has_the_table() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/observability.md");
        let text = std::fs::read_to_string(file).unwrap();
        assert!(text.contains(&table()), "expected:\n{}", table());
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
                    && (text.starts_with("hyperfleet_api_") || text.starts_with("hyperfleet_db_"))
            }));
        }
    }

    #[test]
    fn whatever_is_counted_is_described() {
        let mut found = Vec::new();
        names(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
            &mut found,
        );
        assert!(found.len() > CATALOGUE.len(), "{found:?}");
        for name in found {
            assert!(find(&name).is_some(), "{name} has no line in the catalogue");
        }
    }

    #[test]
    fn every_name_is_there_once_and_is_a_good_one() {
        for (index, metric) in CATALOGUE.iter().enumerate() {
            let name = metric.name;
            assert!(CATALOGUE[..index].iter().all(|m| m.name != name), "{name}");
            assert!(name.starts_with("hyperfleet_"), "{name}");
            let is_counter = metric.of == Type::Counter;
            assert_eq!(name.ends_with("_total"), is_counter, "{name}");
            assert!(metric.help.ends_with('.'), "{name}");
        }
    }
}
