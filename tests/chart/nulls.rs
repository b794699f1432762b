//! `null` in place of a value removes the chart's default. The chart then renders without it, or says which value it needs.

use serde_json::{Map, Value, json};

use crate::CHART;
use crate::helm::{Helm, Objects};

/// Nearly every object that the chart has.
const ENABLED: &str = "
config:
  server: {tls: {enabled: true, cert_file: /a, key_file: /b}, tenant: {enabled: true, dimensions: [{header: X-Org, key: org}]}}
  metrics: {tls: {enabled: true}}
  health: {tls: {enabled: true}}
  fleet: {enabled: true, adapter: {enabled: true}, etcd: {endpoints: ['https://etcd:2379']}}
validationSchema: {enabled: true, content: 'openapi: 3.0.3'}
database: {postgresql: {persistence: {enabled: true, storageClass: fast}}}
tls: {api: {secretName: a}, health: {secretName: a}, metrics: {secretName: a}}
certificate: {enabled: true, issuerRef: {name: a, kind: Issuer}}
etcd: {secretName: e, passwordKey: p}
autoscaling: {enabled: true}
podDisruptionBudget: {enabled: true}
networkPolicy: {enabled: true, egress: {enabled: true}}
monitoring:
  serviceMonitor: {enabled: true}
  podMonitoring: {enabled: true}
  prometheusRule: {enabled: true}
  tracing: {enabled: true, otlpEndpoint: 'http://collector:4317'}
";

/// The rest, with a database outside of the chart.
const EXTERNAL: &str = "
database: {external: {enabled: true, secretName: s, caSecretName: c}}
migration: {mode: job}
";

/// Each section of the values, and what the schema describes in it.
fn sections(schema: &Value, path: &mut Vec<String>, into: &mut Vec<(Vec<String>, Value)>) {
    for (key, below) in schema["properties"].as_object().into_iter().flatten() {
        if below["properties"].is_object() {
            path.push(key.clone());
            into.push((path.clone(), below.clone()));
            sections(below, path, into);
            path.pop();
        }
    }
}

/// `value` at the end of a path.
fn nested(path: &[String], value: Value) -> Value {
    let keys = path.iter().rev();
    keys.fold(value, |value, key| {
        Value::Object(Map::from_iter([(key.clone(), value)]))
    })
}

/// The path of a null, or of a text that is what a template makes of one.
fn null_in(value: &Value) -> Option<String> {
    let below = |key: String, value: &Value| null_in(value).map(|path| format!("{key}.{path}"));
    match value {
        Value::Null => Some("null".to_owned()),
        Value::String(text) => {
            let traces = ["null", "<nil>", "<no value>", "%!"];
            let is_trace = traces.iter().any(|trace| text.contains(trace));
            is_trace.then(|| text.clone())
        }
        Value::Object(members) => {
            let mut members = members.iter();
            members.find_map(|(key, value)| below(key.clone(), value))
        }
        Value::Array(items) => {
            let mut items = items.iter().enumerate();
            items.find_map(|(index, item)| below(index.to_string(), item))
        }
        _ => None,
    }
}

fn check(values: &Value, result: Result<Objects, String>) {
    match result {
        Ok(objects) => {
            let found = objects.iter().find_map(null_in);
            assert_eq!(found, None, "{values}");
        }
        Err(said) => {
            let is_named = said.contains("missing property '") || said.contains("\n- ");
            assert!(is_named, "{values}:\n{said}");
        }
    }
}

#[test]
fn null_leaves_no_null_in_any_object() {
    let Some(helm) = Helm::found() else { return };
    let schema = std::fs::read(format!("{CHART}/values.schema.json")).unwrap();
    let schema: Value = serde_json::from_slice(&schema).unwrap();
    let mut all = Vec::new();
    sections(&schema, &mut Vec::new(), &mut all);
    let mut values: Vec<Value> = Vec::new();
    all.push((Vec::new(), schema));
    for (path, section) in &all {
        let required = section["required"].as_array();
        let is_optional = |key: &str, below: &Value| {
            // A feature that is off hides what is made of its other values.
            key != "enabled"
                && !below["properties"].is_object()
                && !required.is_some_and(|required| required.contains(&key.into()))
        };
        let members = section["properties"].as_object().unwrap().iter();
        let optional = members.filter(|(key, below)| is_optional(key, below));
        let nulls = optional.map(|(key, _)| (key.clone(), Value::Null));
        values.push(nested(path, Value::Object(nulls.collect())));
        if !path.is_empty() {
            values.push(nested(path, Value::Null));
        }
    }
    assert!(values.len() > 100, "{}", values.len());
    let folder = tempfile::tempdir().unwrap();
    let bases = [("chart", ENABLED), ("external", EXTERNAL)].map(|(name, text)| {
        let file = folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        format!("--values={}", file.display())
    });
    let middle = values.len() / 2;
    std::thread::scope(|scope| {
        for half in [&values[..middle], &values[middle..]] {
            let (helm, bases) = (&helm, &bases);
            scope.spawn(move || {
                for values in half {
                    let text = values.to_string();
                    check(values, helm.render_with(&text, &[&bases[0]]));
                    if text.contains("database") || text.contains("migration") {
                        check(values, helm.render_with(&text, &[&bases[1]]));
                    }
                }
            });
        }
    });
}

#[test]
fn null_removes_what_a_default_says() {
    let Some(helm) = Helm::found() else { return };
    let ids = "podSecurityContext: {runAsUser: null, fsGroup: null}";
    let objects = helm.rendered(ids);
    let expected = json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}});
    assert_eq!(objects.pod()["securityContext"], expected);
    let objects = helm.rendered(
        "{podSecurityContext: null, securityContext: null, resources: null, affinity: null, probes: {startup: null}}",
    );
    assert!(objects.pod().get("securityContext").is_none());
    for member in ["securityContext", "resources"] {
        assert!(objects.container().get(member).is_none(), "{member}");
    }
    // The older chart's values decide nothing here either, where another ConfigMap does.
    helm.rendered("config: {existingConfigMap: mine, server: {jwt: null}}");
    let said = helm.render("config: {server: {jwt: null}}").err().unwrap();
    assert!(said.contains("authentication is not decided"), "{said}");
}

#[test]
fn values_that_the_chart_needs_cannot_be_null() {
    let Some(helm) = Helm::found() else { return };
    for (values, expected) in [
        ("replicaCount: null", "missing property 'replicaCount'"),
        ("config: {health: {port: null}}", "missing property 'port'"),
        ("config: {health: null}", "missing property 'health'"),
        (
            "terminationGracePeriodSeconds: null",
            "missing property 'terminationGracePeriodSeconds'",
        ),
    ] {
        let said = helm.render(values).err().unwrap();
        assert!(said.contains(expected), "{values}:\n{said}");
    }
}
