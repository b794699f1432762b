//! The queries of a Grafana dashboard.

use serde_json::Value;

use super::prometheus::{NamedQuery, monitoring_files};

/// Every query of a dashboard, with these values of its variables.
pub fn dashboard_queries(file: &str, variables: &[(&str, &str)]) -> Vec<NamedQuery> {
    let path = monitoring_files().join("dashboards").join(file);
    let text = std::fs::read_to_string(path).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let queries = panels.iter().flat_map(|panel| {
        let targets = panel["targets"].as_array().into_iter().flatten();
        targets.map(|target| {
            let title = panel["title"].as_str().unwrap();
            let expression = target["expr"].as_str().unwrap();
            let legend = target["legendFormat"].as_str().unwrap();
            NamedQuery {
                name: format!("{file}, {title}, {legend}"),
                expression: with_variables(expression, variables),
            }
        })
    });
    queries.collect()
}

fn with_variables(expression: &str, variables: &[(&str, &str)]) -> String {
    let mut text = expression.to_owned();
    for (name, value) in variables {
        text = text.replace(&format!("${name}"), value);
    }
    assert!(!text.contains('$'), "a variable without a value: {text}");
    text
}
