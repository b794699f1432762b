//! What helm says after an install: how to call the service, and what to look at.

use std::path::Path;
use std::process::Command;

use crate::CHART;
use crate::helm::Helm;

/// helm shows notes only after an install: here a copy of the chart renders them as a file.
fn notes(helm: &Helm, values: &str) -> String {
    notes_with(helm, values, &[])
}

fn notes_with(helm: &Helm, values: &str, more: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let chart = folder.path().join("chart");
    let copied = Command::new("cp").args(["-r", CHART]).arg(&chart).status();
    assert!(copied.unwrap().success());
    let template = r#"{{ include (print $.Template.BasePath "/NOTES.txt") . }}"#;
    std::fs::write(chart.join("templates/notes.yaml"), template).unwrap();
    let file = folder.path().join("values.yaml");
    std::fs::write(&file, values).unwrap();
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let mut args = ["template", "test"].map(str::to_owned).to_vec();
    args.push(text(&chart));
    args.extend(
        [
            "--namespace=fleet",
            "--show-only=templates/notes.yaml",
            "--debug",
        ]
        .map(str::to_owned),
    );
    args.push(format!("--values={CHART}/ci/default-values.yaml"));
    args.push(format!("--values={}", text(&file)));
    args.extend(more.iter().copied().map(str::to_owned));
    // It is no YAML, which --debug shows all the same.
    let output = helm.command(&args).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn they_say_how_to_call_the_service() {
    let Some(helm) = Helm::found() else { return };
    let said = notes(&helm, "");
    for expected in [
        "rollout status deployment/test-hyperfleet-api",
        "port-forward service/hyperfleet-api 8000:8000",
        "Inside the cluster: http://hyperfleet-api.fleet.svc:8000",
    ] {
        assert!(said.contains(expected), "{expected}\n{said}");
    }
    let other = "service: {name: mine}\nconfig: {server: {tls: {enabled: true}}}\ntls: {api: {secretName: s}}";
    let said = notes(&helm, other);
    assert!(said.contains("https://mine.fleet.svc:8000"), "{said}");
}

#[test]
fn they_name_what_is_not_for_production() {
    let Some(helm) = Helm::found() else { return };
    let external = "database: {external: {enabled: true, secretName: s}}\n";
    for (values, expected) in [
        ("", "Authentication is off"),
        ("", "a restart of its pod loses all data"),
        (external, "Connections to the database are not encrypted"),
        (
            "database: {postgresql: {enabled: false}}",
            "Nothing migrates the schema",
        ),
        (
            "podDisruptionBudget: {enabled: true, minAvailable: 1}",
            "keeps nodes from being drained",
        ),
        (
            "podDisruptionBudget: {enabled: true, maxUnavailable: 0%}",
            "maxUnavailable=0% keeps nodes from being drained",
        ),
        (
            "monitoring: {tracing: {enabled: true}}",
            "No traces are sent",
        ),
        (
            "database: {external: {enabled: true, secretName: s}}\nnetworkPolicy: {enabled: true, egress: {enabled: true}}",
            "The network policy opens port 5432 for the database",
        ),
    ] {
        let said = notes(&helm, values);
        assert!(said.contains(expected), "{values}: {expected}\n{said}");
    }
    let good = format!(
        "{external}config: {{server: {{jwt: {{enabled: true, configs: [{{issuer_url: https://a, jwk_cert_url: https://a/k}}]}}}}, database: {{ssl: {{mode: verify-full}}}}}}"
    );
    let said = notes(&helm, &good);
    assert!(
        said.contains("curl") && !said.contains("Look at this"),
        "{said}"
    );
}

#[test]
fn they_name_the_switch_for_openshift() {
    let Some(helm) = Helm::found() else { return };
    let openshift = ["--api-versions=security.openshift.io/v1"];
    let switch = "set openshift=true";
    assert!(!notes(&helm, "").contains(switch));
    assert!(notes_with(&helm, "", &openshift).contains(switch));
    assert!(!notes_with(&helm, "openshift: true", &openshift).contains(switch));
}
