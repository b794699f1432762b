//! Dashboards and rules ask for what the programs document, and for nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use hyperfleet_testkit::{dashboard_queries, metric_names};

use super::{ALL, DASHBOARDS, rules_of};

/// Series that Prometheus makes itself.
const OF_PROMETHEUS: &[&str] = &["up", "ALERTS"];
/// Every series of the process that is asked for; `docs/reference/metrics.md` names their common beginning.
const OF_THE_PROCESS: &[&str] = &[
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
    "process_open_fds",
    "process_max_fds",
    "process_start_time_seconds",
];

/// Metrics of the manual, with the kind of each.
fn documented() -> BTreeMap<String, String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/metrics.md");
    let text = std::fs::read_to_string(file).unwrap();
    let rows = text.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
        let (kind, _) = rest.split_once(" | ")?;
        ["counter", "gauge", "histogram"]
            .contains(&kind)
            .then(|| (name.to_owned(), kind.to_owned()))
    });
    rows.collect()
}

/// The metric that a series is of: histograms have three series each.
fn is_documented(metrics: &BTreeMap<String, String>, series: &str) -> bool {
    let suffixes = ["_bucket", "_sum", "_count"];
    let base = suffixes.iter().find_map(|s| series.strip_suffix(s));
    let is_histogram = |name| metrics.get(name).is_some_and(|kind| kind == "histogram");
    match base {
        Some(base) if is_histogram(base) => true,
        _ => metrics.get(series).is_some_and(|kind| kind != "histogram"),
    }
}

#[test]
fn every_metric_of_dashboards_and_rules_is_documented() {
    let metrics = documented();
    let rules = [rules_of("recording.yaml"), rules_of("alerts.yaml")].concat();
    let recorded: BTreeSet<_> = rules.iter().filter_map(|r| r["record"].as_str()).collect();
    let of_rules = rules.iter().map(|rule| {
        let name = rule["record"].as_str().or(rule["alert"].as_str());
        (
            name.unwrap().to_owned(),
            rule["expr"].as_str().unwrap().to_owned(),
        )
    });
    let panels = DASHBOARDS
        .iter()
        .flat_map(|file| dashboard_queries(file, ALL));
    let of_panels = panels.map(|query| (query.name, query.expression));
    let mut seen = BTreeSet::new();
    for (place, expression) in of_rules.chain(of_panels) {
        for name in metric_names(&expression) {
            let is_known = recorded.contains(name.as_str())
                || OF_PROMETHEUS.contains(&name.as_str())
                || OF_THE_PROCESS.contains(&name.as_str())
                || is_documented(&metrics, &name);
            assert!(is_known, "{place}: {name} is in no table of the manual");
            seen.insert(name);
        }
    }
    assert!(seen.len() > 60, "it looks at the wrong places: {seen:?}");
}

/// Metrics that no dashboard shows and no alert reads would not be missed.
#[test]
fn every_documented_metric_is_in_a_dashboard_or_an_alert() {
    let rules = [rules_of("recording.yaml"), rules_of("alerts.yaml")].concat();
    let of_rules = rules
        .iter()
        .map(|rule| rule["expr"].as_str().unwrap().to_owned());
    let panels = DASHBOARDS
        .iter()
        .flat_map(|file| dashboard_queries(file, ALL));
    let expressions = of_rules.chain(panels.map(|query| query.expression));
    let used: BTreeSet<_> = expressions.flat_map(|e| metric_names(&e)).collect();
    for (name, kind) in documented() {
        let series = if kind == "histogram" {
            format!("{name}_bucket")
        } else {
            name
        };
        assert!(used.contains(&series), "nobody looks at {series}");
    }
}
