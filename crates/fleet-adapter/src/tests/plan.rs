use hyperfleet_domain::entity_config;
use serde_json::json;

use super::*;
use crate::workloads::WorkloadConfig;

pub(crate) fn workload() -> WorkloadConfig {
    WorkloadConfig {
        kind: "NodePool".to_owned(),
        replicas: "resource.spec.replicas".to_owned(),
        unit: "${resource.name}-${index}.service".to_owned(),
        file: "[Service]\nExecStart=/usr/bin/node --of=${owner.name}\n".to_owned(),
        ..WorkloadConfig::default()
    }
}

type Change = fn(&mut Settings, &mut OwnApi);

const OWN_API: OwnApi = OwnApi {
    has_fleet: true,
    has_tls: false,
    needs_token: false,
};

/// Settings with which the adapter runs beside the API.
fn settings() -> Settings {
    let settings = json!({
        "enabled": true, "name": "fleet", "api_url": "", "token_file": "", "workers": 32,
        "poll_interval": "1s", "sweep_interval": "10m", "report_interval": "5m", "orphan_grace": "10m",
        "removal_limit": {"units": 10, "percent": 50}, "lease_time": "15s",
    });
    let mut settings: Settings = serde_json::from_value(settings).unwrap();
    settings.workloads = vec![workload()];
    settings
}

fn kinds() -> EntityRegistry {
    entity_config::registry(&entity_config::built_in()).unwrap()
}

fn program(kinds: &EntityRegistry) -> ProgramSettings<'_> {
    ProgramSettings {
        kinds: Some(kinds),
        hostname: "",
        key_prefix: "/fleet/v3/",
    }
}

fn embedded(settings: &Settings, api: OwnApi) -> Result<Option<AdapterPlan>, String> {
    AdapterPlan::embedded(settings, program(&kinds()), api).map_err(|error| error.to_string())
}

fn standalone(settings: &Settings) -> Result<AdapterPlan, String> {
    AdapterPlan::standalone(settings, program(&kinds())).map_err(|error| error.to_string())
}

#[test]
fn the_adapter_calls_the_api_beside_it_unless_a_url_is_set() {
    let own_url = || Some("http://127.0.0.1:8000".to_owned());
    let mut settings = settings();
    let plan = embedded(&settings, OWN_API).unwrap().unwrap();
    assert_eq!(plan.api_url(own_url()), "http://127.0.0.1:8000");
    settings.api_url = "https://api.example.com".to_owned();
    let plan = embedded(&settings, OWN_API).unwrap().unwrap();
    assert_eq!(plan.api_url(own_url()), "https://api.example.com");
}

#[test]
fn settings_that_cannot_work_are_refused_by_name() {
    let changes: [(Change, &str); 9] = [
        (
            |_, api| api.has_fleet = false,
            "fleet.adapter.enabled is true, but fleet.enabled is false",
        ),
        (
            |_, api| api.has_tls = true,
            "fleet.adapter.api_url is not set, but server.tls.enabled",
        ),
        (
            |_, api| api.needs_token = true,
            "fleet.adapter.token_file is not set, but server.jwt",
        ),
        (
            |s, _| s.name = "a/b".to_owned(),
            "fleet.adapter.name is \"a/b\"",
        ),
        (
            |s, _| s.api_url = "nowhere".to_owned(),
            "fleet.adapter.api_url: \"nowhere\"",
        ),
        (
            |s, _| s.token_file = "/nowhere".into(),
            "fleet.adapter.token_file: cannot read",
        ),
        (
            |s, _| s.workloads.clear(),
            "fleet.adapter.workloads is empty",
        ),
        (
            |s, _| s.workloads[0].kind = "Rack".to_owned(),
            "workloads[0]: the kind \"Rack\"",
        ),
        (
            |s, _| s.workloads[0].when = "(".to_owned(),
            "fleet.adapter.workloads[0]: `when`",
        ),
    ];
    for (change, error) in changes {
        let (mut settings, mut api) = (settings(), OWN_API);
        change(&mut settings, &mut api);
        let said = embedded(&settings, api).map(|_| ()).unwrap_err();
        assert!(said.contains(error), "{said}");
    }
}

#[test]
fn invalid_workloads_are_reported_while_the_adapter_is_off() {
    let mut settings = Settings {
        enabled: false,
        ..settings()
    };
    let unnamed = WorkloadConfig {
        unit: "${".to_owned(),
        ..workload()
    };
    let updated_never = WorkloadConfig {
        max_unavailable: 0,
        ..workload()
    };
    settings.workloads = vec![unnamed, workload(), updated_never];
    let said = embedded(&settings, OWN_API).map(|_| ()).unwrap_err();
    for error in [
        "fleet.adapter.workloads[0]: ",
        "fleet.adapter.workloads[2]: ",
    ] {
        assert!(said.contains(error), "{said}");
    }
    assert!(!said.contains("workloads[1]"), "{said}");
    settings.workloads = vec![workload()];
    assert!(embedded(&settings, OWN_API).unwrap().is_none());
}

#[test]
fn a_standalone_adapter_needs_a_url() {
    let mut settings = settings();
    let said = standalone(&settings).map(|_| ()).unwrap_err();
    assert!(
        said.starts_with("fleet.adapter.api_url is not set"),
        "{said}"
    );
    settings.api_url = "http://127.0.0.1:8000".to_owned();
    let plan = standalone(&settings).unwrap();
    assert_eq!(plan.api_url(None), "http://127.0.0.1:8000");
}
