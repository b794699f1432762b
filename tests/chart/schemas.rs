//! Every object fits the API that it is for: Kubernetes' own schemas, and those of the operators.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Map, Value, json};

use crate::helm::Helm;
use crate::{CHART, cases};

/// Google's definition is in no Go module that can be had; `monitoring` looks at the object itself.
const WITHOUT_SCHEMA: &str = "PodMonitoring";

#[test]
fn every_object_of_every_case_fits_its_schema() {
    let Some(helm) = Helm::found() else { return };
    let folder = tempfile::tempdir().unwrap();
    write_kubernetes(&helm.schemas(), folder.path());
    write_operators(&helm.schemas(), folder.path());
    for case in cases() {
        let said = misfits(&helm, folder.path(), &helm.case("test", &case));
        assert_eq!(said, None, "{}", case.display());
    }
}

#[test]
fn every_object_fits_the_oldest_kubernetes() {
    let Some(helm) = Helm::found() else { return };
    let chart = std::fs::read_to_string(format!("{CHART}/Chart.yaml")).unwrap();
    let chart: Value = yaml_serde::from_str(&chart).unwrap();
    let oldest = chart["kubeVersion"].as_str().unwrap();
    let oldest = oldest.trim_start_matches(">=").trim_end_matches(".0-0");
    let folder = tempfile::tempdir().unwrap();
    write_kubernetes(&helm.schemas_of(oldest), folder.path());
    write_operators(&helm.schemas(), folder.path());
    for case in cases() {
        let mut args = vec![
            format!("--values={}", case.display()),
            format!("--kube-version={oldest}.16"),
        ];
        let result = helm.template("test", &args);
        if case.ends_with("external-database-values.yaml") {
            let said = result.err().unwrap();
            assert!(
                said.contains("nativeSidecars needs Kubernetes 1.28"),
                "{said}"
            );
            continue;
        }
        let said = misfits(&helm, folder.path(), &result.unwrap());
        assert_eq!(said, None, "{}", case.display());
        // What an older Kubernetes lacks is there where it is known.
        args.push("--set=podDisruptionBudget.enabled=true".to_owned());
        let policy = |version: &str| {
            args[1] = format!("--kube-version={version}");
            let objects = helm.template("test", &args).unwrap();
            objects.get("PodDisruptionBudget", "test-hyperfleet-api")["spec"]["unhealthyPodEvictionPolicy"].clone()
        };
        assert_eq!(
            ["1.26.15", "v1.27.3-gke.100"].map(policy),
            [Value::Null, "AlwaysAllow".into()]
        );
    }
}

/// What kubeconform says against objects.
fn misfits(helm: &Helm, schemas: &Path, objects: &[Value]) -> Option<String> {
    let location = format!("{}/{{{{.ResourceKind}}}}.json", schemas.display());
    let mut program = helm.kubeconform();
    program.args(["-strict", "-summary", "-skip", WITHOUT_SCHEMA]);
    program.args(["-schema-location", &location]);
    let pipes = program.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = pipes.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    for object in objects {
        writeln!(input, "---\n{object}").unwrap();
    }
    drop(input);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    (!output.status.success()).then_some(said)
}

#[test]
fn the_schemas_refuse_what_kubernetes_does_not_know() {
    let Some(helm) = Helm::found() else { return };
    let folder = tempfile::tempdir().unwrap();
    write_kubernetes(&helm.schemas(), folder.path());
    write_operators(&helm.schemas(), folder.path());
    let read = |kind: &str| {
        let text = std::fs::read(folder.path().join(format!("{kind}.json"))).unwrap();
        jsonschema::validator_for(&serde_json::from_slice(&text).unwrap()).unwrap()
    };
    let service = |spec: Value| json!({"apiVersion": "v1", "kind": "Service", "spec": spec});
    assert!(read("service").is_valid(&service(json!({"type": "ClusterIP"}))));
    assert!(!read("service").is_valid(&service(json!({"typo": "ClusterIP"}))));
    let monitor = |spec: Value| json!({"apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor", "spec": spec});
    let good = json!({"selector": {}, "endpoints": [{"port": "metrics"}]});
    assert!(read("servicemonitor").is_valid(&monitor(good)));
    let typo = json!({"selector": {}, "endpoints": [{"prot": "metrics"}]});
    assert!(!read("servicemonitor").is_valid(&monitor(typo)));
}

/// A file for each kind, as kubeconform looks for them.
fn write_kubernetes(from: &Path, to: &Path) {
    let text = std::fs::read(from.join("swagger.json")).unwrap();
    let document: Value = serde_json::from_slice(&text).unwrap();
    let definitions = document["definitions"].as_object().unwrap();
    for (name, definition) in definitions {
        let kinds = definition["x-kubernetes-group-version-kind"].as_array();
        // Groups that we use have one version that is not "alpha" or "beta", so a kind's name is enough.
        let stable = kinds.filter(|kinds| kinds.len() == 1 && !name.contains("beta"));
        let Some(kind) = stable.and_then(|kinds| kinds[0]["kind"].as_str()) else {
            continue;
        };
        if !name.contains("alpha") && !name.contains("autoscaling.v1.") && !name.contains("events")
        {
            write(to, kind, &with_definitions(name, definitions));
        }
    }
}

/// The same for the definitions of the operators.
fn write_operators(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        if path
            .extension()
            .is_some_and(|extension| extension == "yaml")
        {
            let text = std::fs::read_to_string(path).unwrap();
            let definition: Value = yaml_serde::from_str(&text).unwrap();
            let kind = definition["spec"]["names"]["kind"].as_str().unwrap();
            let versions = definition["spec"]["versions"].as_array().unwrap();
            let stored = versions.iter().find(|version| version["storage"] == true);
            let mut schema = stored.unwrap()["schema"]["openAPIV3Schema"].clone();
            schema["properties"]["metadata"] =
                json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
            close(&mut schema);
            write(to, kind, &schema);
        }
    }
}

fn write(folder: &Path, kind: &str, schema: &Value) {
    let file = folder.join(format!("{}.json", kind.to_lowercase()));
    std::fs::write(file, schema.to_string()).unwrap();
}

/// A definition of Kubernetes with all that it refers to.
fn with_definitions(name: &str, all: &Map<String, Value>) -> Value {
    let mut needed = Map::new();
    let mut ahead = BTreeSet::from([name.to_owned()]);
    while let Some(name) = ahead.pop_first() {
        let mut definition = all[&name].clone();
        let text = definition.to_string();
        let references = text.split("#/definitions/").skip(1);
        let references = references.map(|rest| rest.split('"').next().unwrap().to_owned());
        close(&mut definition);
        needed.insert(name, definition);
        ahead.extend(references.filter(|name| !needed.contains_key(name)));
    }
    // Quantities and times are texts or numbers; in the document they are texts only.
    for (name, definition) in &mut needed {
        if name.ends_with("resource.Quantity") || name.ends_with("intstr.IntOrString") {
            *definition = json!({"type": ["string", "integer", "number"]});
        }
    }
    json!({"$schema": "http://json-schema.org/draft-07/schema#", "$ref": format!("#/definitions/{name}"), "definitions": needed})
}

/// Objects have no members but those that are described, as with `kubectl apply --validate=strict`.
fn close(schema: &mut Value) {
    if let Value::Object(members) = schema {
        let described = members.contains_key("properties");
        let is_open = members.get("x-kubernetes-preserve-unknown-fields") == Some(&true.into());
        if members.get("x-kubernetes-int-or-string") == Some(&true.into()) {
            members.remove("type");
        }
        if described && !is_open && !members.contains_key("additionalProperties") {
            members.insert("additionalProperties".to_owned(), false.into());
        }
        members.values_mut().for_each(close);
    } else if let Value::Array(items) = schema {
        items.iter_mut().for_each(close);
    }
}
