//! Dashboards as Grafana reads them.

use std::collections::BTreeSet;

use hyperfleet_testkit::monitoring_files;
use serde_json::Value;

use super::DASHBOARDS;

/// Panels of the older dashboard; people look for them by name.
const OLDER: &[&str] = &[
    "Request rate",
    "API status",
    "Latency",
    "5xx by path",
    "Reconciliation started",
    "Pending",
    "Stuck",
    "Stuck for",
    "Query duration",
    "Errors",
    "Connections",
    "Top 10 paths",
];

fn dashboard(file: &str) -> Value {
    let path = monitoring_files().join("dashboards").join(file);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn panels(dashboard: &Value) -> impl Iterator<Item = &Value> {
    dashboard["panels"].as_array().unwrap().iter()
}

#[test]
fn every_dashboard_is_tested() {
    let folder = monitoring_files().join("dashboards");
    let files = std::fs::read_dir(folder).unwrap();
    let files = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let expected = DASHBOARDS.iter().map(ToString::to_string);
    assert_eq!(files.collect::<BTreeSet<_>>(), expected.collect());
}

#[test]
fn dashboards_have_what_grafana_finds_them_by() {
    let mut ids = BTreeSet::new();
    for file in DASHBOARDS {
        let dashboard = dashboard(file);
        assert!(ids.insert(dashboard["uid"].as_str().unwrap().to_owned()));
        assert!(dashboard["id"].is_null(), "an id is of one Grafana");
        let variables = dashboard["templating"]["list"].as_array().unwrap();
        let names: Vec<_> = variables
            .iter()
            .map(|v| v["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["datasource", "namespace", "job", "instance"]);
    }
    assert!(ids.contains("hyperfleet-api"), "links lead to it");
}

#[test]
fn every_panel_says_what_it_shows_and_reads_the_chosen_source() {
    for file in DASHBOARDS {
        let dashboard = dashboard(file);
        let mut ids = BTreeSet::new();
        for panel in panels(&dashboard) {
            let title = panel["title"].as_str().unwrap();
            assert!(ids.insert(panel["id"].as_u64().unwrap()), "{title}");
            if panel["type"] == "row" {
                continue;
            }
            assert!(
                !panel["description"].as_str().unwrap().is_empty(),
                "{title}"
            );
            assert!(
                panel["fieldConfig"]["defaults"]["unit"].is_string(),
                "{title}"
            );
            let targets = panel["targets"].as_array().unwrap();
            assert!(!targets.is_empty(), "{title}");
            for reader in targets.iter().chain([panel]) {
                assert_eq!(reader["datasource"]["uid"], "${datasource}", "{title}");
            }
        }
    }
}

#[test]
fn no_panel_covers_another() {
    for file in DASHBOARDS {
        let dashboard = dashboard(file);
        let mut cells = BTreeSet::new();
        for panel in panels(&dashboard) {
            let [x, y, w, h] = ["x", "y", "w", "h"].map(|n| panel["gridPos"][n].as_u64().unwrap());
            assert!(x + w <= 24, "{}", panel["title"]);
            for (column, row) in (x..x + w).flat_map(|c| (y..y + h).map(move |r| (c, r))) {
                assert!(cells.insert((column, row)), "{file}: {}", panel["title"]);
            }
        }
    }
}

#[test]
fn what_the_older_dashboard_showed_is_there() {
    let dashboard = dashboard("hyperfleet-api.json");
    assert_eq!(dashboard["title"], "HyperFleet API Metrics");
    let titles: BTreeSet<_> = panels(&dashboard)
        .filter_map(|p| p["title"].as_str())
        .collect();
    for title in OLDER {
        assert!(titles.contains(title), "{title}");
    }
}
