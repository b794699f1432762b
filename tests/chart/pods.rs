//! Pods meet the pod security standard "restricted", those of PostgreSQL and of migrations too.

use serde_json::{Value, json};

use crate::cases;
use crate::helm::Helm;

/// The pod specs of an object, if it has any.
fn pods(objects: &[Value]) -> impl Iterator<Item = (&str, &Value)> {
    let workloads = objects
        .iter()
        .filter(|object| object["kind"] == "Deployment" || object["kind"] == "Job");
    workloads.map(|object| {
        let name = object["metadata"]["name"].as_str().unwrap();
        (name, &object["spec"]["template"]["spec"])
    })
}

fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["initContainers", "containers"].map(|list| pod[list].as_array());
    lists.into_iter().flatten().flatten()
}

#[test]
fn every_pod_meets_the_restricted_standard() {
    let Some(helm) = Helm::found() else { return };
    let mut seen = Vec::new();
    for case in cases() {
        for (name, pod) in pods(&helm.case("test", &case)) {
            for member in ["hostNetwork", "hostPID", "hostIPC"] {
                assert!(pod[member].is_null(), "{name}: {member}");
            }
            for container in containers(pod) {
                let at = format!("{}: {name}: {}", case.display(), container["name"]);
                let own = &container["securityContext"];
                let shared = &pod["securityContext"];
                let or_shared = |member: &str| match &own[member] {
                    Value::Null => &shared[member],
                    value => value,
                };
                assert_eq!(or_shared("runAsNonRoot"), true, "{at}");
                assert_eq!(
                    or_shared("seccompProfile")["type"],
                    "RuntimeDefault",
                    "{at}"
                );
                assert_eq!(own["allowPrivilegeEscalation"], false, "{at}");
                assert_eq!(own["capabilities"], json!({"drop": ["ALL"]}), "{at}");
                assert_eq!(own["readOnlyRootFilesystem"], true, "{at}");
                seen.push(container["name"].as_str().unwrap().to_owned());
            }
        }
    }
    for name in ["hyperfleet-api", "db-migrate", "postgresql"] {
        assert!(seen.iter().any(|seen| seen == name), "{name} in {seen:?}");
    }
}

/// Whether a key of an object, at any depth, is one of these.
fn has_key(value: &Value, keys: &[&str]) -> bool {
    match value {
        Value::Object(members) => members
            .iter()
            .any(|(key, below)| keys.contains(&key.as_str()) || has_key(below, keys)),
        Value::Array(items) => items.iter().any(|item| has_key(item, keys)),
        _ => false,
    }
}

#[test]
fn openshift_chooses_the_ids_of_every_pod() {
    let Some(helm) = Helm::found() else { return };
    let ids = ["runAsUser", "runAsGroup", "fsGroup"];
    let own = "securityContext: {runAsUser: 7, runAsGroup: 7}\n";
    let external = "database: {external: {enabled: true, secretName: s}}\nmigration: {mode: job}\n";
    for values in [own.to_owned(), format!("{own}{external}")] {
        let fixed = helm.rendered(&values);
        assert!(pods(&fixed).all(|(_, pod)| has_key(pod, &ids)));
        let objects = helm.rendered(&format!("{values}openshift: true"));
        assert_eq!(pods(&objects).count(), 2);
        for (name, pod) in pods(&objects) {
            assert!(!has_key(pod, &ids), "{name}: {pod}");
            assert_eq!(pod["securityContext"]["runAsNonRoot"], true, "{name}");
        }
    }
}

#[test]
fn pods_have_no_token_of_the_cluster_unless_asked_for() {
    let Some(helm) = Helm::found() else { return };
    for (_, pod) in pods(&helm.rendered("")) {
        assert_eq!(pod["automountServiceAccountToken"], false);
    }
    let asked = helm.rendered("serviceAccount: {automountServiceAccountToken: true}");
    assert_eq!(asked.pod()["automountServiceAccountToken"], true);
    // The cluster itself as issuer: its authority is beside the token.
    let authority = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";
    let issuer = format!(
        "{{issuer_url: https://kubernetes.default.svc, jwk_cert_url: https://kubernetes.default.svc/openid/v1/jwks, jwk_cert_ca_file: {authority}}}"
    );
    let needed = helm.rendered(&format!(
        "config: {{server: {{jwt: {{enabled: true, configs: [{issuer}]}}}}}}"
    ));
    assert_eq!(needed.pod()["automountServiceAccountToken"], true);
}

#[test]
fn every_mount_has_its_volume() {
    let Some(helm) = Helm::found() else { return };
    for case in cases() {
        for (name, pod) in pods(&helm.case("test", &case)) {
            let volumes = pod["volumes"].as_array().unwrap();
            for container in containers(pod) {
                for mount in container["volumeMounts"].as_array().into_iter().flatten() {
                    let is_there = volumes.iter().any(|volume| volume["name"] == mount["name"]);
                    assert!(is_there, "{}: {name}: {mount}", case.display());
                }
            }
        }
    }
}
