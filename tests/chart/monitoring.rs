//! The objects for Prometheus and Grafana.

use std::path::Path;

use hyperfleet_testkit::files_below;
use serde_json::{Value, json};

use crate::CHART;
use crate::helm::{Helm, Objects};

fn files(folder: &str, extension: &str) -> Vec<std::path::PathBuf> {
    let folder = Path::new(CHART).join("files").join(folder);
    let files = folder.is_dir().then(|| files_below(&folder));
    let files = files.unwrap_or_default().into_iter();
    files
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect()
}

fn rules(objects: &Objects) -> &Vec<Value> {
    let rule = objects.get("PrometheusRule", "test-hyperfleet-api");
    rule["spec"]["groups"].as_array().unwrap()
}

#[test]
fn the_two_alerts_of_the_older_chart_follow_its_values() {
    let Some(helm) = Helm::found() else { return };
    let objects = helm.rendered(
        "monitoring: {prometheusRule: {enabled: true, rules: {reconciliationStuck: {for: 7m, runbookUrl: https://a}, reconciliationTimeout: {durationSeconds: 99}}}}",
    );
    let group = &rules(&objects)[0];
    assert_eq!(group["name"], "hyperfleet-api-reconciliation");
    let (warning, critical) = (&group["rules"][0], &group["rules"][1]);
    assert_eq!(
        warning["alert"],
        "HyperFleetResourceReconciliationStuckWarning"
    );
    assert_eq!(
        (&warning["for"], &warning["annotations"]["runbook_url"]),
        (&json!("7m"), &json!("https://a"))
    );
    assert_eq!(
        critical["alert"],
        "HyperFleetResourceReconciliationStuckCritical"
    );
    assert!(critical["expr"].as_str().unwrap().ends_with("> 99"));
    // The threshold that the alert names is the one that the program uses.
    let description = warning["annotations"]["description"].as_str().unwrap();
    assert!(description.contains("10m"), "{description}");
    assert!(
        objects
            .config()
            .unwrap()
            .contains("reconciliation_stuck_threshold: 10m")
    );
}

#[test]
fn every_file_of_rules_and_every_dashboard_is_taken() {
    let Some(helm) = Helm::found() else { return };
    let objects =
        helm.rendered("monitoring: {prometheusRule: {enabled: true}, dashboard: {enabled: true}}");
    let mut names: Vec<Value> = vec!["hyperfleet-api-reconciliation".into()];
    for file in files("rules", "yaml") {
        let text = std::fs::read_to_string(file).unwrap();
        let rules: Value = yaml_serde::from_str(&text).unwrap();
        let groups = rules["groups"].as_array().unwrap();
        names.extend(groups.iter().map(|group| group["name"].clone()));
    }
    let mut rendered: Vec<Value> = rules(&objects)
        .iter()
        .map(|group| group["name"].clone())
        .collect();
    names.sort_by_key(Value::to_string);
    rendered.sort_by_key(Value::to_string);
    assert_eq!(rendered, names);
    let map = objects.get("ConfigMap", "test-hyperfleet-api-dashboard");
    assert_eq!(map["metadata"]["labels"]["grafana_dashboard"], "1");
    let dashboards = files("dashboards", "json");
    assert_eq!(map["data"].as_object().unwrap().len(), dashboards.len());
    for file in dashboards {
        let name = file.file_name().unwrap().to_str().unwrap();
        let rendered: Value = serde_json::from_str(map["data"][name].as_str().unwrap()).unwrap();
        let text = std::fs::read(&file).unwrap();
        assert_eq!(
            rendered,
            serde_json::from_slice::<Value>(&text).unwrap(),
            "{name}"
        );
    }
}

#[test]
fn scrapes_speak_tls_where_metrics_do() {
    let Some(helm) = Helm::found() else { return };
    let monitors = "monitoring: {serviceMonitor: {enabled: true}, podMonitoring: {enabled: true, tlsConfig: {insecureSkipVerify: true}}}\n";
    let secure = "config: {metrics: {tls: {enabled: true}}}\ntls: {metrics: {secretName: m}}\n";
    let plain = helm.rendered(monitors);
    let secure = helm.rendered(&format!("{monitors}{secure}"));
    for kind in ["ServiceMonitor", "PodMonitoring"] {
        let endpoint = |objects: &Objects| {
            objects.get(kind, "test-hyperfleet-api")["spec"]["endpoints"][0].clone()
        };
        assert!(endpoint(&plain)["scheme"].is_null());
        assert_eq!(endpoint(&secure)["scheme"], "https");
        assert_eq!(endpoint(&secure)["port"], "metrics");
    }
    let pods = secure.get("PodMonitoring", "test-hyperfleet-api");
    assert_eq!(pods["apiVersion"], "monitoring.googleapis.com/v1");
    assert_eq!(
        pods["spec"]["endpoints"][0]["tls"],
        json!({"insecureSkipVerify": true})
    );
    assert_eq!(pods["spec"]["endpoints"][0]["interval"], "30s");
    assert_eq!(
        pods["spec"]["selector"],
        secure.deployment()["spec"]["selector"]
    );
}

#[test]
fn traces_are_sent_where_a_collector_is_named() {
    let Some(helm) = Helm::found() else { return };
    let variable = |objects: &Objects, name: &str| {
        let variables = objects.container()["env"].as_array().unwrap();
        let found = variables.iter().find(|variable| variable["name"] == name);
        found.map(|variable| variable["value"].clone())
    };
    let off = helm.rendered("");
    assert_eq!(
        variable(&off, "HYPERFLEET_TRACING_ENABLED"),
        Some("false".into())
    );
    assert_eq!(variable(&off, "OTEL_EXPORTER_OTLP_ENDPOINT"), None);
    let on = helm.rendered(
        "monitoring: {tracing: {enabled: true, otlpEndpoint: http://c:4317, samplerArg: '0.5'}}",
    );
    assert_eq!(
        variable(&on, "HYPERFLEET_TRACING_ENABLED"),
        Some("true".into())
    );
    assert_eq!(
        variable(&on, "OTEL_EXPORTER_OTLP_ENDPOINT"),
        Some("http://c:4317".into())
    );
    assert_eq!(variable(&on, "OTEL_TRACES_SAMPLER_ARG"), Some("0.5".into()));
}
