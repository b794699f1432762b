//! `helm upgrade` from the older chart finds its objects, and asks for no change that Kubernetes refuses.

use serde_json::Value;

use crate::CHART;
use crate::helm::{Helm, Objects};

fn older(release: &str) -> Vec<Value> {
    let full = if release.contains("hyperfleet-api") {
        release.to_owned()
    } else {
        format!("{release}-hyperfleet-api")
    };
    let text = include_str!("../fixtures/older-chart.yaml");
    let rules = text.find("- kind").unwrap();
    let text = text[rules..]
        .replace("FULLNAME", &full)
        .replace("RELEASE", release);
    yaml_serde::from_str(&text).unwrap()
}

fn rendered(helm: &Helm, release: &str) -> Objects {
    helm.case(release, format!("{CHART}/ci/older-values.yaml").as_ref())
}

#[test]
fn every_object_of_the_older_chart_is_there_with_its_selectors_and_labels() {
    let Some(helm) = Helm::found() else { return };
    for release in ["hyperfleet-api", "prod", "my-hyperfleet-api-2"] {
        let objects = rendered(&helm, release);
        for was in older(release) {
            let (kind, name) = (was["kind"].as_str().unwrap(), was["name"].as_str().unwrap());
            let object = objects.get(kind, name);
            let labels = &object["metadata"]["labels"];
            assert_eq!(
                labels["app.kubernetes.io/name"], "hyperfleet-api",
                "{kind} {name}"
            );
            assert_eq!(
                labels["app.kubernetes.io/instance"], release,
                "{kind} {name}"
            );
            assert_eq!(
                labels["app.kubernetes.io/managed-by"], "Helm",
                "{kind} {name}"
            );
            if !was["component"].is_null() {
                assert_eq!(
                    labels["app.kubernetes.io/component"], was["component"],
                    "{kind} {name}"
                );
            }
            match kind {
                "Deployment" => {
                    assert_eq!(
                        object["spec"]["selector"]["matchLabels"], was["selector"],
                        "{name}"
                    );
                    let pods = &object["spec"]["template"]["metadata"]["labels"];
                    for (label, value) in was["selector"].as_object().unwrap() {
                        assert_eq!(&pods[label], value, "{name}: {label}");
                    }
                }
                "Service" => {
                    assert_eq!(object["spec"]["selector"], was["selector"], "{name}");
                    for (port, number) in was["ports"].as_object().unwrap() {
                        let port = crate::helm::named(&object["spec"]["ports"], port);
                        assert_eq!(&port["port"], number, "{name}");
                    }
                }
                "Secret" => {
                    let keys = object["stringData"].as_object().unwrap();
                    let keys: Vec<&String> = keys.keys().collect();
                    assert_eq!(serde_json::json!(keys), was["keys"], "{name}");
                    assert_eq!(object["type"], "Opaque");
                }
                _ => {}
            }
        }
    }
}

#[test]
fn the_volume_of_the_older_postgresql_stays_where_its_data_is_read() {
    let Some(helm) = Helm::found() else { return };
    let objects = rendered(&helm, "prod");
    let claim = objects.get("PersistentVolumeClaim", "prod-hyperfleet-api-postgresql");
    // What a claim asks for can't change: the older chart asked for this, and named no class.
    assert_eq!(
        claim["spec"]["accessModes"],
        serde_json::json!(["ReadWriteOnce"])
    );
    assert_eq!(claim["spec"]["resources"]["requests"]["storage"], "1Gi");
    assert!(claim["spec"]["storageClassName"].is_null());
    let deployment = objects.get("Deployment", "prod-hyperfleet-api-postgresql");
    assert_eq!(deployment["spec"]["strategy"]["type"], "Recreate");
    let pod = &deployment["spec"]["template"]["spec"];
    let data = crate::helm::named(&pod["containers"][0]["volumeMounts"], "data");
    assert_eq!(data["mountPath"], "/var/lib/postgresql/data");
    let claimed = &crate::helm::named(&pod["volumes"], "data")["persistentVolumeClaim"];
    assert_eq!(claimed["claimName"], "prod-hyperfleet-api-postgresql");
}

#[test]
fn labels_that_are_added_reach_no_selector() {
    let Some(helm) = Helm::found() else { return };
    let objects = helm.rendered("labels: {team: fleet}\npodLabels: {tier: api}");
    let deployment = objects.deployment();
    assert_eq!(deployment["metadata"]["labels"]["team"], "fleet");
    let selector = &deployment["spec"]["selector"]["matchLabels"];
    assert_eq!(selector.as_object().unwrap().len(), 3, "{selector}");
}
