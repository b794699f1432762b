//! What the chart takes from the cluster: the password of the release, and nothing else.
//!
//! The cluster is a small server here, which answers what helm asks before it renders.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

use crate::cases;
use crate::helm::{Helm, Objects};

/// `kept`, as Secrets hold it.
const EXISTING: &str = "a2VwdA==";

const SECRET: &str = "test-hyperfleet-api-db-secrets";

/// What is in the namespace before the release.
#[derive(Clone, Copy)]
enum Namespace {
    Missing,
    Empty,
    /// With the Secret of an earlier release, and a `ConfigMap` of others.
    Used,
}

/// Answers every request of one run of helm; the address that it listens on.
fn cluster(namespace: Namespace) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    // It ends with the test: nothing is left when the process ends.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            answer(stream.unwrap(), namespace);
        }
    });
    address
}

fn answer(mut stream: TcpStream, namespace: Namespace) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let request = lines.next().unwrap().unwrap();
    // The rest of the head.
    lines.find(|line| line.as_ref().unwrap().is_empty());
    let path = request.split([' ', '?']).nth(1).unwrap();
    let (status, body) = match found(path, namespace) {
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

fn found(path: &str, namespace: Namespace) -> Option<Value> {
    let kind = |kind: &str, name: &str| json!({"kind": kind, "name": name, "namespaced": true, "verbs": ["get"]});
    let object = path.strip_prefix("/api/v1/namespaces/fleet/");
    match (path, object) {
        ("/version", _) => Some(json!({"major": "1", "minor": "33", "gitVersion": "v1.33.4"})),
        ("/api", _) => Some(json!({"kind": "APIVersions", "versions": ["v1"]})),
        ("/apis", _) => Some(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": []})),
        ("/api/v1", _) => Some(
            json!({"kind": "APIResourceList", "groupVersion": "v1", "resources": [kind("Secret", "secrets"), kind("ConfigMap", "configmaps")]}),
        ),
        _ => stored(object?, namespace),
    }
}

/// An object in the namespace.
fn stored(object: &str, namespace: Namespace) -> Option<Value> {
    let map = |data: Value| json!({"kind": "ConfigMap", "apiVersion": "v1", "data": data});
    match (object, namespace) {
        (_, Namespace::Missing) => None,
        ("configmaps/kube-root-ca.crt", _) => Some(map(json!({"ca.crt": "PEM"}))),
        ("configmaps/mine", Namespace::Used) => Some(map(json!({"config.yaml": "{}"}))),
        ("secrets/test-hyperfleet-api-db-secrets", Namespace::Used) => {
            Some(json!({"kind": "Secret", "apiVersion": "v1", "data": {"db.password": EXISTING}}))
        }
        _ => None,
    }
}

/// As `helm upgrade --install` renders, with what it finds in the cluster.
fn render(helm: &Helm, namespace: Namespace, values: &str) -> Result<Objects, String> {
    let server = format!("--kube-apiserver={}", cluster(namespace));
    helm.render_with(values, &["--dry-run=server", &server])
}

/// The chart makes the password, unless the values have one.
fn postgresql(password: &str) -> String {
    format!("database: {{postgresql: {{password: '{password}'}}}}")
}

fn password(objects: &Objects) -> String {
    let password = &objects.get("Secret", SECRET)["stringData"]["db.password"];
    password.as_str().unwrap().to_owned()
}

#[test]
fn an_install_makes_a_random_password() {
    let Some(helm) = Helm::found() else { return };
    let made = || password(&render(&helm, Namespace::Empty, &postgresql("")).unwrap());
    let (one, other) = (made(), made());
    assert_eq!(one.len(), 32);
    assert_ne!(one, other);
}

#[test]
fn an_upgrade_keeps_the_password_that_is_in_the_cluster() {
    let Some(helm) = Helm::found() else { return };
    for (configured, expected) in [("", "kept"), ("given", "given")] {
        let objects = render(&helm, Namespace::Used, &postgresql(configured)).unwrap();
        assert_eq!(password(&objects), expected);
    }
}

#[test]
fn without_a_cluster_no_password_is_made() {
    let Some(helm) = Helm::found() else { return };
    // `helm template` and a namespace that `--create-namespace` has yet to create look the same to a chart.
    for result in [
        helm.render(&postgresql("")),
        render(&helm, Namespace::Missing, &postgresql("")),
    ] {
        let said = result.err().unwrap();
        for expected in [
            "database.postgresql has no password",
            "namespace fleet",
            "set database.postgresql.existingSecret",
        ] {
            assert!(said.contains(expected), "{expected}:\n{said}");
        }
    }
}

#[test]
fn every_case_renders_twice_the_same() {
    let Some(helm) = Helm::found() else { return };
    for case in cases() {
        let render = || Value::from(helm.case("test", &case).to_vec());
        assert_eq!(render(), render(), "{}", case.display());
    }
}

#[test]
fn a_cluster_changes_nothing_where_the_values_say_it_all() {
    let Some(helm) = Helm::found() else { return };
    for values in [
        "database: {postgresql: {existingSecret: mine}}",
        "config: {existingConfigMap: mine}\nvalidationSchema: {enabled: true, existingConfigMap: mine}",
    ] {
        let with = render(&helm, Namespace::Used, values).unwrap();
        assert_eq!(with.to_vec(), helm.rendered(values).to_vec(), "{values}");
    }
}
