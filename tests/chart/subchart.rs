//! The chart as a dependency of other charts: what they pass down, and several of it in one release.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::CHART;
use crate::helm::{Helm, Objects};

/// What a parent says about each dependency.
const VALUES: &str = "{image: {registry: r, repository: p, tag: v1}, config: {server: {jwt: {enabled: false}}}, database: {postgresql: {password: p}}, migration: {mode: initContainer}}";

/// A chart in this folder, with our chart under each of these names.
fn parent(helm: &Helm, folder: &Path, aliases: &[&str]) {
    let chart = std::fs::canonicalize(CHART).unwrap();
    let chart = chart.display();
    let dependencies = aliases.iter().map(|alias| {
        format!("  - {{name: hyperfleet-api, version: '*', repository: 'file://{chart}', alias: {alias}, condition: {alias}.enabled}}\n")
    });
    let head = "apiVersion: v2\nname: parent\nversion: 1.0.0\ndependencies:\n".to_owned();
    let text: String = std::iter::once(head).chain(dependencies).collect();
    std::fs::write(folder.join("Chart.yaml"), text).unwrap();
    let args = ["dependency", "update", folder.to_str().unwrap()].map(str::to_owned);
    let mut program = helm.command(&args);
    let output = program.env("HELM_CACHE_HOME", folder).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

fn render(helm: &Helm, folder: &Path, release: &str, values: &str) -> Result<Objects, String> {
    let file = folder.join("values.yaml");
    std::fs::write(&file, values).unwrap();
    helm.template_of(folder, release, &[])
}

/// Kinds and names; none may be there twice.
fn names(objects: &[Value]) -> BTreeSet<(String, String)> {
    let mut names = BTreeSet::new();
    for object in objects {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let name = (text(&object["kind"]), text(&object["metadata"]["name"]));
        assert!(names.insert(name.clone()), "twice: {name:?}");
    }
    names
}

#[test]
fn values_that_parents_pass_down_are_known() {
    let Some(helm) = Helm::found() else { return };
    let folder = tempfile::tempdir().unwrap();
    parent(&helm, folder.path(), &["hyperfleet-api"]);
    let values = format!("global: {{imageRegistry: x}}\nhyperfleet-api: {VALUES}\n");
    let objects = render(&helm, folder.path(), "test", &values).unwrap();
    // The objects have the names of a release of the chart itself.
    assert_eq!(names(&objects), names(&helm.rendered("")));
    let switched = |on: bool| {
        let own = VALUES.replacen('{', &format!("{{enabled: {on}, "), 1);
        render(
            &helm,
            folder.path(),
            "test",
            &format!("hyperfleet-api: {own}"),
        )
    };
    assert_eq!(names(&switched(true).unwrap()), names(&objects));
    assert!(switched(false).unwrap().is_empty());
}

#[test]
fn openshift_needs_no_null_in_a_parent() {
    let Some(helm) = Helm::found() else { return };
    let folder = tempfile::tempdir().unwrap();
    parent(&helm, folder.path(), &["hyperfleet-api"]);
    let own = VALUES.replacen('{', "{openshift: true, ", 1);
    let objects = render(
        &helm,
        folder.path(),
        "test",
        &format!("hyperfleet-api: {own}"),
    );
    let text = Value::from(objects.unwrap().to_vec()).to_string();
    for id in ["runAsUser", "runAsGroup", "fsGroup\""] {
        assert!(!text.contains(id), "{id}");
    }
}

#[test]
fn aliases_of_the_chart_share_no_object() {
    let Some(helm) = Helm::found() else { return };
    let every = VALUES.replacen(
        '{',
        "{networkPolicy: {enabled: true}, podDisruptionBudget: {enabled: true}, autoscaling: {enabled: true}, validationSchema: {enabled: true, content: a}, monitoring: {prometheusRule: {enabled: true}, dashboard: {enabled: true}}, ",
        1,
    );
    let long = "r".repeat(53);
    for (release, aliases) in [
        ("prod", ["fleet-api", "fleet-api-2"]),
        // Both are parts of the release's name.
        ("my-fleet-api", ["fleet", "fleet-api"]),
        // They begin alike where a name ends that is too long.
        (&long, ["hyperfleet-api-east", "hyperfleet-api-west"]),
        ("prod", ["fleetApi", "other_Api"]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        parent(&helm, folder.path(), &aliases);
        let values = aliases.map(|alias| format!("{alias}: {every}\n")).concat();
        let objects = render(&helm, folder.path(), release, &values).unwrap();
        for (kind, name) in names(&objects) {
            let is_label = name.len() <= 63
                && name
                    .chars()
                    .all(|char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '-')
                && !name.ends_with('-');
            // Names of other kinds may be longer, and have dots.
            let limited = ["Service", "Deployment", "Job"].contains(&kind.as_str());
            assert!(
                is_label || !limited && name == name.to_lowercase(),
                "{kind} {name}"
            );
        }
        let selectors = objects
            .iter()
            .filter(|object| object["kind"] == "Deployment");
        let selectors = selectors.map(|object| object["spec"]["selector"].to_string());
        assert_eq!(selectors.collect::<BTreeSet<_>>().len(), 4, "{aliases:?}");
    }
}
