//! Values, their schema and the settings of the program know the same keys.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::CHART;
use crate::helm::Helm;

/// Settings that are no values: secrets, which come from a Secret, what other values say, and what is not for `serve`.
const NO_VALUES: &[&str] = &[
    "database.password",
    "database.url",
    "import.from",
    "server.openapi_schema_path",
    "tracing.enabled",
    "tracing.service_name",
];

fn read(file: &str) -> String {
    fs::read_to_string(format!("{CHART}/{file}")).unwrap()
}

fn known() -> Value {
    serde_json::from_str(&read("files/known-values.json")).unwrap()
}

/// The paths of a tree of keys, down to where anything goes.
fn paths(tree: &Value, path: &str, into: &mut BTreeSet<String>) {
    match tree {
        Value::Object(members) => {
            for (key, below) in members {
                let dot = if path.is_empty() { "" } else { "." };
                paths(below, &format!("{path}{dot}{key}"), into);
            }
        }
        _ => {
            into.insert(path.to_owned());
        }
    }
}

#[test]
fn every_value_of_the_schema_has_a_default_and_a_description() {
    let mut in_schema = BTreeSet::new();
    paths(&known(), "", &mut in_schema);
    // Values of a parent chart.
    in_schema.remove("global");
    let text = read("README.md");
    let cells = text.lines().filter_map(|line| line.strip_prefix("| `"));
    let described = cells.filter_map(|rest| rest.split_once('`'));
    let described: BTreeSet<String> = described.map(|(path, _)| path.to_owned()).collect();
    assert_eq!(described, in_schema);
}

/// `values.yaml` is itself valid, which helm checks; here, that it says nothing that the schema does not know.
#[test]
fn every_setting_of_the_program_is_a_value() {
    let mut values = BTreeSet::new();
    paths(&known()["config"], "", &mut values);
    let check = [
        "config",
        "check",
        "-o",
        "json",
        "--server-jwt-enabled=false",
    ];
    let mut program = Command::new(env!("CARGO_BIN_EXE_hyperfleet-api"));
    let output = program.args(check).env_clear().output().unwrap();
    let settings: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let keys = settings
        .iter()
        .map(|setting| setting["key"].as_str().unwrap());
    let missing: Vec<&str> = keys
        .filter(|key| !values.contains(*key) && !NO_VALUES.contains(key))
        .collect();
    assert!(missing.is_empty(), "not in values.yaml: {missing:?}");
}

#[test]
fn the_example_of_the_readme_renders() {
    let Some(helm) = Helm::found() else { return };
    let readme = read("README.md");
    let (_, rest) = readme.split_once("```yaml\n").unwrap();
    let (example, _) = rest.split_once("```").unwrap();
    let objects = helm.rendered(&example.replace("jwt:", "jwt:\n      enabled: null"));
    assert_eq!(objects.deployment()["spec"]["replicas"], 3);
    assert!(
        objects
            .config()
            .unwrap()
            .contains("issuer_url: https://sso.example.com")
    );
}

#[test]
fn the_chart_is_of_this_version_of_the_program() {
    let chart: Value = yaml_serde::from_str(&read("Chart.yaml")).unwrap();
    assert_eq!(chart["appVersion"], env!("CARGO_PKG_VERSION"));
    // The older chart's name, which its objects are found by.
    assert_eq!(chart["name"], "hyperfleet-api");
}
