//! What the chart takes from the cluster: passwords that are there, and settings that others keep.
//!
//! The cluster is a small server here, which answers what helm asks before it renders.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

use crate::CHART;
use crate::helm::{Helm, Objects};

/// `kept`, as Secrets hold it.
const KEPT: &str = "a2VwdA==";

/// Answers every request of one run of helm; the address that it listens on.
fn cluster(text: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    // It ends with the test: nothing is left when the process ends.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            answer(stream.unwrap(), text);
        }
    });
    address
}

fn answer(mut stream: TcpStream, text: &str) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let request = lines.next().unwrap().unwrap();
    // The rest of the head.
    lines.find(|line| line.as_ref().unwrap().is_empty());
    let path = request.split([' ', '?']).nth(1).unwrap();
    let (status, body) = match found(path, text) {
        Some(body) => ("200 OK", body),
        None => (
            "404 Not Found",
            json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}),
        ),
    };
    let body = body.to_string();
    let length = body.len();
    write!(stream, "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}").unwrap();
}

fn found(path: &str, text: &str) -> Option<Value> {
    let kind = |kind: &str, name: &str| json!({"kind": kind, "name": name, "namespaced": true, "verbs": ["get"]});
    let object = path.strip_prefix("/api/v1/namespaces/fleet/");
    match (path, object) {
        ("/version", _) => Some(json!({"major": "1", "minor": "33", "gitVersion": "v1.33.4"})),
        ("/api", _) => Some(json!({"kind": "APIVersions", "versions": ["v1"]})),
        ("/apis", _) => Some(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": []})),
        ("/api/v1", _) => Some(
            json!({"kind": "APIResourceList", "groupVersion": "v1", "resources": [kind("Secret", "secrets"), kind("ConfigMap", "configmaps")]}),
        ),
        (_, Some("secrets/test-hyperfleet-api-db-secrets")) => {
            Some(json!({"kind": "Secret", "apiVersion": "v1", "data": {"db.password": KEPT}}))
        }
        (_, Some("configmaps/mine")) => {
            Some(json!({"kind": "ConfigMap", "apiVersion": "v1", "data": {"config.yaml": text}}))
        }
        _ => None,
    }
}

fn rendered(helm: &Helm, text: &'static str, values: &[&str]) -> Objects {
    let mut args = vec![
        format!("--values={CHART}/ci/default-values.yaml"),
        "--dry-run=server".to_owned(),
        format!("--kube-apiserver={}", cluster(text)),
    ];
    args.extend(values.iter().map(|value| format!("--set={value}")));
    helm.template("test", &args).unwrap()
}

#[test]
fn an_upgrade_keeps_the_password_that_is_in_the_cluster() {
    let Some(helm) = Helm::found() else { return };
    let password = |values: &[&str]| {
        let objects = rendered(&helm, "", values);
        objects.get("Secret", "test-hyperfleet-api-db-secrets")["stringData"]["db.password"].clone()
    };
    assert_eq!(password(&[]), "kept");
    assert_eq!(password(&["database.postgresql.password=given"]), "given");
}

#[test]
fn pods_are_replaced_when_a_config_map_of_others_changes() {
    let Some(helm) = Helm::found() else { return };
    let checksum = |text| {
        let objects = rendered(&helm, text, &["config.existingConfigMap=mine"]);
        let pods = &objects.deployment()["spec"]["template"]["metadata"];
        pods["annotations"]["checksum/config"].clone()
    };
    assert_eq!(checksum("one"), checksum("one"));
    assert_ne!(checksum("one"), checksum("two"));
}
