use std::net::SocketAddr;

use hyperfleet_fleet_adapter::workloads::{WorkloadConfig, Workloads};
use serde_json::{Value, json};

use super::AdapterPlan;
use super::render::rendered;
use crate::config::{OutputFormat, Settings};

fn workload() -> WorkloadConfig {
    WorkloadConfig {
        kind: "NodePool".to_owned(),
        replicas: "resource.spec.replicas".to_owned(),
        unit: "${resource.name}-${index}.service".to_owned(),
        file: "[Service]\nExecStart=/usr/bin/node --of=${owner.name}\n".to_owned(),
        ..WorkloadConfig::default()
    }
}

type Change = fn(&mut Settings);

/// Settings with which the adapter runs beside the API.
fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.server.jwt.enabled = false;
    settings.fleet.enabled = true;
    settings.fleet.adapter.enabled = true;
    settings.fleet.adapter.workloads = vec![workload()];
    settings
}

fn embedded(settings: &Settings) -> Result<Option<AdapterPlan>, String> {
    let kinds = settings.registry().unwrap();
    AdapterPlan::embedded(settings, Some(&kinds)).map_err(|error| error.to_string())
}

fn standalone(settings: &Settings) -> Result<AdapterPlan, String> {
    let kinds = settings.registry().unwrap();
    AdapterPlan::standalone(settings, Some(&kinds)).map_err(|error| error.to_string())
}

#[test]
fn the_adapter_beside_the_api_calls_its_listener_unless_a_url_is_set() {
    for (listener, url, expected) in [
        ("127.0.0.1:8000", "", "http://127.0.0.1:8000"),
        ("0.0.0.0:8001", "", "http://127.0.0.1:8001"),
        ("[::]:8002", "", "http://[::1]:8002"),
        (
            "127.0.0.1:8000",
            "https://api.example.com",
            "https://api.example.com",
        ),
    ] {
        let mut settings = settings();
        settings.fleet.adapter.api_url = url.to_owned();
        let plan = embedded(&settings).unwrap().unwrap();
        let listener: SocketAddr = listener.parse().unwrap();
        assert_eq!(plan.api_url(Some(listener)), expected);
    }
}

#[test]
fn settings_that_cannot_work_are_refused_by_name() {
    let changes: [(Change, &str); 9] = [
        (
            |s| s.fleet.enabled = false,
            "fleet.adapter.enabled is true, but fleet.enabled is false",
        ),
        (
            |s| s.server.tls.enabled = true,
            "fleet.adapter.api_url is not set, but server.tls.enabled",
        ),
        (
            |s| s.server.jwt.enabled = true,
            "fleet.adapter.token_file is not set, but server.jwt",
        ),
        (
            |s| s.fleet.adapter.name = "a/b".to_owned(),
            "fleet.adapter.name is \"a/b\"",
        ),
        (
            |s| s.fleet.adapter.api_url = "nowhere".to_owned(),
            "fleet.adapter.api_url: \"nowhere\"",
        ),
        (
            |s| s.fleet.adapter.token_file = "/nowhere".into(),
            "fleet.adapter.token_file: cannot read",
        ),
        (
            |s| s.fleet.adapter.workloads.clear(),
            "fleet.adapter.workloads is empty",
        ),
        (
            |s| s.fleet.adapter.workloads[0].kind = "Rack".to_owned(),
            "workloads[0]: the kind \"Rack\"",
        ),
        (
            |s| s.fleet.adapter.workloads[0].when = "(".to_owned(),
            "fleet.adapter.workloads[0]: `when`",
        ),
    ];
    for (change, error) in changes {
        let mut settings = settings();
        change(&mut settings);
        let said = embedded(&settings).map(|_| ()).unwrap_err();
        assert!(said.contains(error), "{said}");
    }
}

#[test]
fn invalid_workloads_are_reported_while_the_adapter_is_off() {
    let mut settings = Settings::default();
    let unnamed = WorkloadConfig {
        unit: "${".to_owned(),
        ..workload()
    };
    let updated_never = WorkloadConfig {
        max_unavailable: 0,
        ..workload()
    };
    settings.fleet.adapter.workloads = vec![unnamed, workload(), updated_never];
    let said = embedded(&settings).map(|_| ()).unwrap_err();
    for error in [
        "fleet.adapter.workloads[0]: ",
        "fleet.adapter.workloads[2]: ",
    ] {
        assert!(said.contains(error), "{said}");
    }
    assert!(!said.contains("workloads[1]"), "{said}");
    settings.fleet.adapter.workloads = vec![workload()];
    assert!(embedded(&settings).unwrap().is_none());
}

#[test]
fn a_standalone_adapter_needs_a_url_and_not_fleet_enabled() {
    let mut settings = settings();
    settings.fleet.enabled = false;
    let said = standalone(&settings).map(|_| ()).unwrap_err();
    assert!(
        said.starts_with("fleet.adapter.api_url is not set"),
        "{said}"
    );
    settings.fleet.adapter.api_url = "http://127.0.0.1:8000".to_owned();
    let plan = standalone(&settings).unwrap();
    assert_eq!(plan.api_url(None), "http://127.0.0.1:8000");
}

fn render(resource: &Value, format: OutputFormat) -> Result<String, String> {
    let workloads = Workloads::compile("fleet", &[workload()]).unwrap();
    let owner = json!({"name": "cluster"});
    rendered(&workloads, resource, &owner, format).map_err(|error| error.to_string())
}

#[test]
fn units_of_a_resource_are_printed_with_their_names() {
    let resource = json!({"kind": "NodePool", "name": "np", "spec": {"replicas": 2}});
    let text = render(&resource, OutputFormat::Text).unwrap();
    assert!(text.starts_with("# np-1.service\n[Service]\n"), "{text}");
    assert!(text.contains("\n\n# np-2.service\n"), "{text}");
    assert_eq!(
        text.matches("ExecStart=/usr/bin/node --of=cluster\n")
            .count(),
        2
    );
    let json: Value =
        serde_json::from_str(&render(&resource, OutputFormat::Json).unwrap()).unwrap();
    assert_eq!(json["units"][1]["name"], "np-2.service");
}

#[test]
fn a_resource_without_units_and_one_that_cannot_have_them_differ() {
    let cluster = json!({"kind": "Cluster", "name": "c", "spec": {}});
    let text = render(&cluster, OutputFormat::Text);
    assert_eq!(text.as_deref(), Ok("# no units for this Cluster\n"));
    let pool = json!({"kind": "NodePool", "name": "np", "spec": {}});
    let said = render(&pool, OutputFormat::Text).unwrap_err();
    assert!(
        said.contains("TemplateFailed") && said.contains("replicas"),
        "{said}"
    );
    assert_eq!(
        render(&json!({}), OutputFormat::Text).unwrap_err(),
        "the resource has no kind"
    );
}
