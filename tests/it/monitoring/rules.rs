//! Rules and alerts: Prometheus' own tool takes them, they do as their tests say, and their runbooks are there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use hyperfleet_testkit::{monitoring_files, prometheus_program};
use serde_json::Value;

use super::{groups_of, rules_of};

const TESTS: &[&str] = &["recording.yaml", "api.yaml", "fleet.yaml"];
/// Alerts of the chart's own template, whose values set their thresholds.
const OF_THE_CHART: &[&str] = &[
    "HyperFleetResourceReconciliationStuckWarning",
    "HyperFleetResourceReconciliationStuckCritical",
];
const RUNBOOKS: &str = "docs/operations/runbooks.md";

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Runs promtool on these files; `None` where it is missing.
fn promtool(folder: &Path, arguments: &[&str]) -> Option<()> {
    let program = prometheus_program("promtool")?;
    let mut command = Command::new(program);
    let output = command
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success(), "promtool {arguments:?}: {said}");
    Some(())
}

#[test]
fn promtool_takes_every_rule() {
    let folder = monitoring_files().join("rules");
    let arguments = [
        "check",
        "rules",
        "--lint-fatal",
        "recording.yaml",
        "alerts.yaml",
    ];
    let _ = promtool(&folder, &arguments);
}

#[test]
fn rules_and_alerts_do_as_their_tests_say() {
    let arguments = [&["test", "rules"], TESTS].concat();
    let _ = promtool(&root("tests/fixtures/rules"), &arguments);
}

/// Every check of the rule tests: its expression, and how many series it expects.
fn checks() -> Vec<(String, usize)> {
    let mut checks = Vec::new();
    for file in TESTS {
        let text = std::fs::read_to_string(root("tests/fixtures/rules").join(file)).unwrap();
        let file: Value = yaml_serde::from_str(&text).unwrap();
        for test in file["tests"].as_array().unwrap() {
            for check in test["promql_expr_test"].as_array().into_iter().flatten() {
                let expected = check["exp_samples"].as_array().map_or(0, Vec::len);
                checks.push((check["expr"].as_str().unwrap().to_owned(), expected));
            }
        }
    }
    checks
}

#[test]
fn every_alert_has_a_case_that_fires_and_one_that_does_not() {
    let checks = checks();
    let alerts = rules_of("alerts.yaml");
    assert!(alerts.len() > 30, "{}", alerts.len());
    for alert in &alerts {
        let name = alert["alert"].as_str().unwrap();
        let asked = format!("ALERTS{{alertname=\"{name}\",alertstate=\"firing\"}}");
        let of_it: Vec<_> = checks.iter().filter(|(expr, _)| *expr == asked).collect();
        assert!(
            of_it.iter().any(|(_, series)| *series > 0),
            "{name} never fires"
        );
        assert!(
            of_it.iter().any(|(_, series)| *series == 0),
            "{name} always fires"
        );
    }
}

#[test]
fn every_recording_rule_has_a_case() {
    let checks = checks();
    for rule in rules_of("recording.yaml") {
        let name = rule["record"].as_str().unwrap();
        assert!(checks.iter().any(|(expr, _)| expr.contains(name)), "{name}");
    }
}

#[test]
fn alerts_are_complete_and_none_has_the_name_of_another() {
    let mut names: BTreeSet<_> = OF_THE_CHART.iter().map(ToString::to_string).collect();
    for alert in rules_of("alerts.yaml") {
        let name = alert["alert"].as_str().unwrap();
        assert!(names.insert(name.to_owned()), "{name} is there twice");
        let severity = alert["labels"]["severity"].as_str();
        let severity = severity.unwrap_or_else(|| panic!("{name} has no severity"));
        assert!(
            ["critical", "warning", "info"].contains(&severity),
            "{name}"
        );
        for text in ["summary", "description", "runbook_url"] {
            let text = alert["annotations"][text].as_str().unwrap_or_default();
            assert!(!text.is_empty(), "{name}");
        }
    }
}

/// The chart puts all groups into one file, together with a group of its own; Prometheus refuses two of one name.
#[test]
fn no_two_groups_have_one_name() {
    let mut names = BTreeSet::from(["hyperfleet-api-reconciliation".to_owned()]);
    for file in ["recording.yaml", "alerts.yaml"] {
        for group in groups_of(file) {
            let name = group["name"].as_str().unwrap();
            assert!(names.insert(name.to_owned()), "{name} is there twice");
        }
    }
}

/// Sections of the runbooks: the anchor of each, and its text.
fn sections() -> Vec<(String, String)> {
    let text = std::fs::read_to_string(root(RUNBOOKS)).unwrap();
    let sections = text.split("\n## ").skip(1);
    let sections = sections.map(|section| {
        let (title, text) = section.split_once('\n').unwrap();
        let anchor = title.to_lowercase().replace(' ', "-");
        (anchor, text.to_owned())
    });
    sections.collect()
}

#[test]
fn every_alert_has_a_runbook_and_every_runbook_an_alert() {
    let sections = sections();
    let mut used = BTreeSet::new();
    let alerts = rules_of("alerts.yaml");
    let linked = alerts.iter().map(|alert| {
        let url = alert["annotations"]["runbook_url"].as_str().unwrap();
        let (document, anchor) = url.split_once('#').unwrap();
        assert_eq!(document, RUNBOOKS);
        (alert["alert"].as_str().unwrap(), anchor)
    });
    let of_the_chart = OF_THE_CHART
        .iter()
        .map(|name| (*name, "resources-are-stuck"));
    for (name, anchor) in linked.chain(of_the_chart) {
        let section = sections.iter().find(|(title, _)| title == anchor);
        let (_, text) = section.unwrap_or_else(|| panic!("{name}: no section {anchor}"));
        assert!(
            text.contains(&format!("`{name}`")),
            "{anchor} names no {name}"
        );
        used.insert(anchor);
    }
    for (anchor, _) in &sections {
        assert!(used.contains(anchor.as_str()), "no alert leads to {anchor}");
    }
}
