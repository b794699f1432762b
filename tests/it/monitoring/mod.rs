//! Dashboards, recording rules and alerts of `charts/hyperfleet/files`: what they say is true of the programs and
//! the manual.

mod answered;
mod dashboards;
mod metrics;
mod rules;

use hyperfleet_testkit::monitoring_files;
use serde_json::Value;

/// Files of dashboards.
const DASHBOARDS: &[&str] = &["hyperfleet-api.json", "fleet.json", "fleet-adapter.json"];
/// Values of the variables of dashboards that select everything.
const ALL: &[(&str, &str)] = &[
    ("namespace", ".*"),
    ("job", ".*"),
    ("instance", ".*"),
    ("__rate_interval", "15s"),
];

/// The groups of a file of rules.
fn groups_of(file: &str) -> Vec<Value> {
    let path = monitoring_files().join("rules").join(file);
    let text = std::fs::read_to_string(path).unwrap();
    let file: Value = yaml_serde::from_str(&text).unwrap();
    file["groups"].as_array().unwrap().clone()
}

/// The rules of a file, group by group.
fn rules_of(file: &str) -> Vec<Value> {
    let groups = groups_of(file).into_iter();
    let rules = groups.flat_map(|group| group["rules"].as_array().unwrap().clone());
    rules.collect()
}
