//! Paths, and the responses to every other method and path.

use hyperfleet_fleet::api::Hosts;
use serde_json::Value;

use super::{error, unit};
use hyperfleet_testkit::{TestFleet, Then, http_client_builder, send_raw_to, shared_etcd};

const GET: &str = "only GET supported against this resource";
const UNIT: &str = "only GET, PUT and DELETE supported against this resource";
const MACHINES: &str = "only GET and PATCH supported against this resource";
const DISCOVERY: &str = "only HTTP GET supported against this resource";

/// Path below a prefix, its methods, and the response to others.
const ROUTES: [(&str, &[&str], u16, &str); 9] = [
    ("", &[], 405, ""),
    ("/units", &["GET"], 405, GET),
    ("/units/a.service", &["GET", "PUT", "DELETE"], 405, UNIT),
    ("/units/a%40b.service", &["GET", "PUT", "DELETE"], 405, UNIT),
    ("/units/a.service/explain", &["GET"], 405, GET),
    ("/state", &["GET"], 405, GET),
    ("/state/a.service", &["GET"], 405, GET),
    ("/machines", &["GET", "PATCH"], 405, MACHINES),
    ("/discovery", &["GET"], 400, DISCOVERY),
];
const METHODS: [&str; 8] = [
    "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW",
];
const PREFIXES: [&str; 3] = ["/fleet/v1", "/v1-alpha", ""];

#[tokio::test]
async fn every_other_method_learns_the_allowed_ones() {
    let fleet = TestFleet::spawn().await;
    for prefix in PREFIXES {
        for (path, methods, status, text) in ROUTES {
            let path = format!(
                "{prefix}{}",
                if prefix.is_empty() && path.is_empty() {
                    "/"
                } else {
                    path
                }
            );
            for method in METHODS.iter().filter(|m| !methods.contains(m)) {
                let answer = fleet.send(method, &path, &[], "").await;
                assert_eq!(answer.status, status, "{method} {path}");
                assert_eq!(answer.header("content-type"), Some("application/json"));
                assert_eq!(answer.header("server"), Some("fleetd/1.2.3"), "{path}");
                assert_eq!(answer.header("allow"), Some(&*methods.join(", ")));
                if *method != "HEAD" {
                    assert_eq!(answer.body, error(status, text), "{method} {path}");
                }
            }
        }
    }
}

#[tokio::test]
async fn what_has_no_route_is_not_found_and_nothing_is_said_of_it() {
    let fleet = TestFleet::spawn().await;
    for prefix in PREFIXES {
        for path in [
            "/units/",
            "/units/a/b",
            "/units/a.service/",
            "/units/a.service/explain/",
            "/state/",
            "/state/a/b",
            "/machines/",
            "/machines/x",
            "/discovery/",
            "/openapi/",
            "/nothing",
            "/units.json",
            "/Units",
        ] {
            let path = format!("{prefix}{path}");
            for method in ["GET", "PUT", "DELETE"] {
                let answer = fleet.send(method, &path, &[], "").await;
                assert_eq!(answer.body, error(404, ""), "{method} {path}");
                assert_eq!(answer.status, 404, "{method} {path}");
            }
        }
    }
    for path in [
        "/fleet",
        "/fleet/v1/",
        "//units",
        "/fleet//v1/units",
        "/v1-alpha/",
        "/fleet/v2/units",
        "/fleet/v1x/units",
        "/v1-alphax",
    ] {
        assert_eq!(fleet.get(path).await.body, error(404, ""), "{path}");
    }
}

#[tokio::test]
async fn answers_say_which_program_they_are_of_and_are_plain_json() {
    let fleet = TestFleet::spawn().await;
    assert_eq!(fleet.put("/units/a.service", &unit("1")).await.status, 201);
    for path in [
        "/units",
        "/units/a.service",
        "/state",
        "/machines",
        "/discovery",
        "/openapi",
        "/units/a.service/explain",
    ] {
        for prefix in PREFIXES {
            // Unknown parameters and bodies of a GET are ignored.
            let path = format!("{prefix}{path}?alt=json&x=%zz");
            let headers = [("accept-encoding", "gzip"), ("content-type", "text/plain")];
            let answer = fleet.send("GET", &path, &headers, "{not json").await;
            assert_eq!(answer.status, 200, "{path}");
            assert_eq!(
                answer.header("content-type"),
                Some("application/json"),
                "{path}"
            );
            assert_eq!(answer.header("server"), Some("fleetd/1.2.3"), "{path}");
            assert_eq!(answer.header("content-encoding"), None, "{path}");
            // No newline at the end, and every name in its place.
            let sorted: Value = serde_json::from_slice(&answer.bytes).unwrap();
            assert_eq!(sorted.to_string().into_bytes(), answer.bytes, "{path}");
        }
    }
}

#[tokio::test]
async fn while_it_is_not_known_what_there_is_every_path_says_so() {
    let fleet = TestFleet::unconnected(shared_etcd().await, 100, |_| {});
    let text = "fleet server unable to communicate with etcd";
    for path in [
        "/fleet/v1/units",
        "/v1-alpha/state",
        "/machines",
        "/discovery",
        "/",
        "/nothing",
        "/units//",
    ] {
        for method in ["GET", "PUT", "OPTIONS"] {
            let answer = fleet.send(method, path, &[], "").await;
            assert_eq!(answer.body, error(503, text), "{method} {path}");
            assert_eq!(answer.status, 503, "{method} {path}");
            assert_eq!(answer.header("server"), None, "{method} {path}");
            assert_eq!(answer.header("content-type"), Some("application/json"));
        }
    }
    assert_eq!(fleet.get("/metrics").await.status, 200);
    fleet.connect().await;
    assert_eq!(fleet.get("/units").await.bytes, b"{}");
}

/// A page of the web can make its own name mean this machine.
#[tokio::test]
async fn a_server_is_called_by_its_own_names() {
    let own = Hosts::Own(Some("node1".to_owned()));
    let fleet = TestFleet::spawn_with(|api| api.hosts = own).await;
    for (head, status) in [
        ("GET /units HTTP/1.1\r\nHost: 127.0.0.1:8001", 200),
        ("GET /units HTTP/1.1\r\nHost: localhost", 200),
        ("GET /units HTTP/1.1\r\nHost: NODE1:8001", 200),
        ("GET /units HTTP/1.0", 200),
        ("GET /units HTTP/1.1\r\nHost: evil.example", 421),
        (
            "GET http://evil.example/units HTTP/1.1\r\nHost: localhost",
            421,
        ),
        (
            "PUT /fleet/v1/units/a.service HTTP/1.1\r\nHost: evil.example",
            421,
        ),
    ] {
        let head = format!("{head}\r\nConnection: close\r\n\r\n");
        let answer = send_raw_to(fleet.address(), head.as_bytes(), Then::Wait).await;
        let answer = answer.unwrap();
        assert_eq!(answer.status, status, "{head}");
        if status != 200 {
            assert_eq!(answer.body["error"]["code"], status, "{head}");
        }
    }
    let socket = fleet.socket();
    let client = http_client_builder().unix_socket(socket).build();
    let request = client.unwrap().get("http://evil.example/units");
    assert_eq!(request.send().await.unwrap().status(), 200);
}

/// What is asked of a server as a whole has a path that begins with no slash.
#[tokio::test]
async fn a_star_is_a_path_that_is_not_there() {
    let fleet = TestFleet::spawn().await;
    for method in ["GET", "OPTIONS"] {
        let answer = fleet.raw(method, "*").await;
        assert_eq!(answer.body, error(404, ""), "{method}");
    }
}

#[tokio::test]
async fn metrics_are_text_whatever_the_method() {
    let fleet = TestFleet::spawn().await;
    for method in ["GET", "POST", "OPTIONS"] {
        let answer = fleet.send(method, "/metrics", &[], "").await;
        assert_eq!(
            (answer.status, &*answer.bytes),
            (200, &b"a_metric 1\n"[..]),
            "{method}"
        );
        assert_eq!(answer.header("server"), Some("fleetd/1.2.3"));
        let kind = answer.header("content-type").unwrap();
        assert!(kind.starts_with("text/plain; version=0.0.4"), "{kind}");
    }
}
