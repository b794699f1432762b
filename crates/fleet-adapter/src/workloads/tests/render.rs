use hyperfleet_fleet_model::unit::canonical;
use serde_json::json;

use super::*;

fn config() -> WorkloadConfig {
    let file = "[Service]\n\
                ExecStart=/usr/bin/node-agent --pool ${resource.id} --region ${owner.spec.region}\n\
                Environment=TIER=${resource.spec.?tier.orValue(\"\")}\n\
                [X-Fleet]\n\
                MachineMetadata=region=${owner.spec.region}\n\
                Conflicts=np-${resource.name}-${short_id}@*.service\n";
    WorkloadConfig {
        kind: "NodePool".to_owned(),
        when: "has(resource.spec.runtime) && resource.spec.runtime == \"systemd\"".to_owned(),
        replicas: "has(resource.spec.replicas) ? int(resource.spec.replicas) : 1".to_owned(),
        unit: "np-${resource.name}-${short_id}@${index}.service".to_owned(),
        file: file.to_owned(),
        ..WorkloadConfig::default()
    }
}

const ID: &str = "0199a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b";

fn render_with(
    config: WorkloadConfig,
    spec: &Value,
    owner: &Value,
) -> Result<Rendered, Unrenderable> {
    let workloads = Workloads::compile("fleet", &[config]).unwrap();
    let resource =
        json!({"id": ID, "name": "pool", "kind": "NodePool", "spec": spec, "status": {}});
    workloads.render(&RenderInput {
        kind: "NodePool",
        id: ID,
        path: "/api/hyperfleet/v1/clusters/1/nodepools/2",
        resource: &resource,
        owner,
    })
}

fn render(spec: &Value) -> Result<Rendered, Unrenderable> {
    render_with(config(), spec, &json!({"spec": {"region": "eu"}}))
}

fn units(rendered: Rendered) -> Vec<DesiredUnit> {
    match rendered {
        Rendered::NotApplicable => Vec::new(),
        Rendered::Units(workloads) => workloads.into_iter().flat_map(|w| w.units).collect(),
    }
}

#[test]
fn a_resource_gets_a_unit_for_each_replica_with_its_owner() {
    let units = units(render(&json!({"runtime": "systemd", "replicas": 2})).unwrap());
    let names: Vec<&str> = units.iter().map(|unit| unit.name.as_str()).collect();
    assert_eq!(
        names,
        ["np-pool-2e3f4a5b@1.service", "np-pool-2e3f4a5b@2.service"]
    );
    assert_eq!(
        canonical(&units[1].options),
        "[Service]\n\
         ExecStart=/usr/bin/node-agent --pool 0199a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b --region eu\n\
         Environment=TIER=\n\n\
         [X-Fleet]\nMachineMetadata=region=eu\nConflicts=np-pool-2e3f4a5b@*.service\n\n\
         [X-HyperFleet]\nAdapter=fleet\nResource=0199a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b\n\
         Path=/api/hyperfleet/v1/clusters/1/nodepools/2\nWorkload=1\nIndex=2\n"
    );
}

#[test]
fn where_no_workload_applies_there_is_nothing_to_do() {
    assert_eq!(render(&json!({})), Ok(Rendered::NotApplicable));
    let workloads = Workloads::compile("fleet", &[config()]).unwrap();
    let empty = json!({});
    let rendered = workloads.render(&RenderInput {
        kind: "Cluster",
        id: ID,
        path: "/",
        resource: &empty,
        owner: &Value::Null,
    });
    assert_eq!(rendered, Ok(Rendered::NotApplicable));
}

/// Whatever a spec contains, the options of the file are those of the template.
#[test]
fn no_spec_adds_an_option_an_argument_or_a_specifier() {
    let hostile = [
        "x\nExecStartPost=/bin/evil",
        "x\r\n[Service]",
        "x\\",
        "x\\\n",
        "x --evil",
        "\" --evil \"",
        "' --evil '",
        "; /bin/evil",
        ";",
        "%n %i %% %",
        "$PATH ${PATH} `id`",
        "\u{2028}ExecStartPost=/bin/evil",
        "\0",
        "\\x0aExecStartPost=/bin/evil",
    ];
    let plain = units(render(&json!({"runtime": "systemd", "tier": "x"})).unwrap());
    let shape = |unit: &DesiredUnit| {
        let options = unit.options.iter();
        options
            .map(|o| (o.section.clone(), o.name.clone()))
            .collect::<Vec<_>>()
    };
    for value in hostile {
        let Ok(rendered) = render(&json!({"runtime": "systemd", "tier": value})) else {
            continue;
        };
        let unit = units(rendered).remove(0);
        assert_eq!(shape(&unit), shape(&plain[0]), "{value:?}");
        let assigned = &unit.options[1].value;
        assert!(
            !assigned.contains([' ', '"', '\'', ';']),
            "{value:?} gives {assigned}"
        );
        assert!(
            !assigned.replace("%%", "").contains('%'),
            "{value:?} gives {assigned}"
        );
        assert!(!assigned.ends_with('\\'), "{value:?} gives {assigned}");
    }
    for region in ["eu\" \"disk=ssd", "%H", "*", "a b", ""] {
        let rendered = render_with(
            config(),
            &json!({"runtime": "systemd"}),
            &json!({"spec": {"region": region}}),
        );
        let fault = rendered.unwrap_err();
        assert_eq!(fault.reason, "TemplateFailed");
        assert!(
            fault
                .message
                .contains("MachineMetadata: ${owner.spec.region}"),
            "{}",
            fault.message
        );
    }
}

#[test]
fn an_error_names_the_workload_and_the_expression() {
    let systemd = |more: Value| {
        let mut spec = json!({"runtime": "systemd"});
        spec.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        render(&spec).unwrap_err()
    };
    for (spec, reason, text) in [
        (
            json!({"replicas": -1}),
            "InvalidReplicas",
            "replicas: give 0 to 1000",
        ),
        (
            json!({"replicas": 1001}),
            "InvalidReplicas",
            "replicas: give 0 to 1000",
        ),
        (
            json!({"replicas": "many"}),
            "TemplateFailed",
            "workload 1 of NodePool: replicas:",
        ),
        (
            json!({"replicas": [1]}),
            "TemplateFailed",
            "workload 1 of NodePool: replicas:",
        ),
    ] {
        let fault = systemd(spec);
        assert_eq!(fault.reason, reason);
        assert!(fault.message.contains(text), "{}", fault.message);
    }
    let one_name = WorkloadConfig {
        unit: "np.service".to_owned(),
        ..config()
    };
    let owner = json!({"spec": {"region": "eu"}});
    let spec = json!({"runtime": "systemd", "replicas": 2});
    let fault = render_with(one_name, &spec, &owner).unwrap_err();
    assert!(
        fault.message.contains("two replicas are called np.service"),
        "{}",
        fault.message
    );
    let no_name = WorkloadConfig {
        unit: "${resource.name}".to_owned(),
        ..config()
    };
    let fault = render_with(no_name, &spec, &owner).unwrap_err();
    assert_eq!(fault.reason, "InvalidUnit");
    let fault = render_with(config(), &spec, &Value::Null).unwrap_err();
    assert!(
        fault.message.contains("${owner.spec.region}"),
        "{}",
        fault.message
    );
}

#[test]
fn faults_of_the_configuration_are_found_at_start() {
    let base = config;
    let with_file = |file: &str| WorkloadConfig {
        file: file.to_owned(),
        ..base()
    };
    for (config, fault) in [
        (
            WorkloadConfig {
                kind: String::new(),
                ..base()
            },
            "has no kind",
        ),
        (
            WorkloadConfig {
                max_unavailable: 0,
                ..base()
            },
            "max_unavailable",
        ),
        (
            WorkloadConfig {
                when: "nobody".to_owned(),
                ..base()
            },
            "`when` names \"nobody\"",
        ),
        (
            WorkloadConfig {
                replicas: String::new(),
                ..base()
            },
            "`replicas` is empty",
        ),
        (
            WorkloadConfig {
                unit: "${".to_owned(),
                ..base()
            },
            "`unit` has \"${\" without an end",
        ),
        (with_file(""), "`file` has no option"),
        (with_file("[Service"), "`file`: "),
        (
            with_file("[Service]\n${resource.name}=x"),
            "only values may have them",
        ),
        (
            with_file("[${resource.name}]\na=x"),
            "only values may have them",
        ),
        (
            with_file("[X-HyperFleet]\nAdapter=x"),
            "which the adapter writes",
        ),
        (with_file("[X-Fleet]\nGlobal=true"), "`file` has Global"),
        (
            with_file("[Service]\nExecStart=/x ${1 +}"),
            "`file`: ExecStart has \"${1 +}\"",
        ),
    ] {
        let faults = Workloads::compile("fleet", &[config]).unwrap_err();
        let text = faults.to_string();
        assert!(text.starts_with("fleet.adapter.workloads[0]: "), "{text}");
        assert_eq!(
            (text.lines().count(), text.contains(fault)),
            (1, true),
            "{text}"
        );
    }
}

#[test]
fn continued_lines_are_one_and_states_are_left_out() {
    let config = WorkloadConfig {
        file: "[Service]\nExecStart=/x \\\n  ${resource.spec.label} \\\n  --sandbox\n".to_owned(),
        ..config()
    };
    let spec = json!({"runtime": "systemd", "label": "#x"});
    let units = units(render_with(config.clone(), &spec, &Value::Null).unwrap());
    assert_eq!(units[0].options[0].value, "/x    \\x23x    --sandbox");
    let config = WorkloadConfig {
        when: "has(resource.status)".to_owned(),
        ..config
    };
    let rendered = render_with(config, &spec, &Value::Null);
    assert_eq!(rendered, Ok(Rendered::NotApplicable));
}

#[test]
fn short_ids_differ_between_resources_of_one_moment() {
    assert_eq!(short_id(ID), "2e3f4a5b");
    assert_eq!(short_id("2abCdef"), "2abCdef");
    assert_eq!(short_id("a-b-c-d-1-2-3-4-5"), "bcd12345");
}
