//! Paths, methods and headers: what is the same for every route.

use serde_json::json;

use crate::support::{Answer, TestApi};

const METHODS: [&str; 9] = [
    "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW",
];

/// The server with one cluster and one node pool, and every path that it serves for them, each
/// with the methods it has.
async fn served() -> (TestApi, Vec<(String, &'static str)>) {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("served").await;
    let nested = api.nodepool(&cluster, "workers").await;
    let (_, id) = nested.rsplit_once('/').unwrap();
    let items = [
        cluster.clone(),
        nested.clone(),
        format!("/nodepools/{id}"),
        format!("/resources/{id}"),
    ];
    let lists = [
        "/clusters".to_owned(),
        format!("{cluster}/nodepools"),
        "/nodepools".to_owned(),
        "/resources".to_owned(),
    ];
    let mut paths = Vec::new();
    for list in lists {
        paths.push((list, "GET, HEAD, POST"));
    }
    for item in items {
        paths.push((format!("{item}/explain"), "GET, HEAD"));
        paths.push((format!("{item}/statuses"), "GET, HEAD, PUT"));
        paths.push((format!("{item}/force-delete"), "POST"));
        paths.push((item, "DELETE, GET, HEAD, PATCH"));
    }
    paths.push(("/audit".to_owned(), "GET, HEAD"));
    let lease = json!({"holder": "a", "duration_seconds": 60});
    assert_eq!(api.put("/leases/served", lease).await.status, 200);
    paths.push(("/leases/served".to_owned(), "DELETE, GET, HEAD, PUT"));
    (api, paths)
}

/// A request with headers of its own, to a path below the host.
async fn request(api: &TestApi, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    let host = api.base.strip_suffix("/api/hyperfleet/v1").unwrap();
    let url = format!("{host}{path}");
    let mut request = api.client.request(method.parse().unwrap(), url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    Answer::of(request.send().await.unwrap()).await
}

fn full(path: &str) -> String {
    format!("/api/hyperfleet/v1{path}")
}

#[tokio::test]
async fn a_wrong_method_gets_the_allowed_ones() {
    let (api, mut paths) = served().await;
    for (path, _) in &mut paths {
        *path = full(path);
    }
    paths.push(("/api/hyperfleet".to_owned(), "GET, HEAD"));
    for (path, allow) in paths {
        for method in METHODS {
            if allow.split(", ").any(|allowed| allowed == method) {
                continue;
            }
            let answer = request(&api, method, &path, &[]).await;
            let at = format!("{method} {path}");
            assert_eq!(answer.status, 405, "{at}");
            assert_eq!(answer.header("allow"), Some(allow), "{at}");
            assert_eq!(
                answer.header("content-type"),
                Some("application/problem+json"),
                "{at}"
            );
            if method != "HEAD" {
                assert_eq!(answer.problem(), (405, "VAL-008"), "{at}");
                assert_eq!(answer.body["instance"], path, "{at}");
            }
        }
    }
}

#[tokio::test]
async fn a_right_method_is_never_refused_as_such() {
    let (api, paths) = served().await;
    for (path, allow) in paths {
        // Deleting comes last: other methods need what it removes.
        for method in allow.split(", ").filter(|method| *method != "DELETE") {
            let answer = request(&api, method, &full(&path), &[]).await;
            let is_served = [200, 400, 404, 409].contains(&answer.status);
            assert!(is_served, "{method} {path}: {}", answer.status);
        }
    }
}

#[tokio::test]
async fn a_path_that_leads_nowhere_is_named() {
    let api = TestApi::spawn().await;
    for path in [
        "/",
        "/clusters",
        "/api",
        "/api/hyperfleet/v2",
        "/api/hyperfleet/v1",
        "/api/hyperfleet/v1/errors",
        "/api/hyperfleet/v1/Clusters",
        "/api/hyperfleet/v1/channels",
        "/api/hyperfleet/v1/clusters/1/2",
        "/api/hyperfleet/v1/clusters/1/nodepools/2/nodepools",
        "/api/hyperfleet/v1/nodepools/1/clusters",
        "/api/hyperfleet/v1/resources/1/nodepools",
        "/api/hyperfleet/v1/audit/1",
    ] {
        for method in ["GET", "POST", "DELETE", "OPTIONS"] {
            let answer = request(&api, method, path, &[]).await;
            let at = format!("{method} {path}");
            assert_eq!(answer.problem(), (404, "NTF-000"), "{at}");
            assert_eq!(answer.body["title"], "Endpoint Not Found", "{at}");
            assert_eq!(
                answer.detail(),
                format!("The requested endpoint '{path}' does not exist"),
                "{at}"
            );
            assert_eq!(answer.body["instance"], path, "{at}");
            assert_eq!(
                answer.header("content-type"),
                Some("application/problem+json")
            );
        }
    }
}

#[tokio::test]
async fn head_answers_as_get_does_without_the_body() {
    let (api, paths) = served().await;
    let gets = paths.iter().filter(|(_, allow)| allow.contains("GET"));
    let mut paths: Vec<_> = gets.map(|(path, _)| full(path)).collect();
    paths.push("/api/hyperfleet".to_owned());
    paths.push(full("/clusters/nobody"));
    paths.push(full("/nowhere"));
    for path in paths {
        let id = [("x-request-id", "the-same")];
        let mut get = request(&api, "GET", &path, &id).await;
        let mut head = request(&api, "HEAD", &path, &id).await;
        assert_eq!(head.status, get.status, "{path}");
        assert!(head.bytes.is_empty(), "{path}");
        assert!(!get.bytes.is_empty(), "{path}");
        for answer in [&mut get, &mut head] {
            answer.headers.remove("date");
            if path.ends_with("/audit") {
                // Its position may have moved in between: transactions of other databases move it, too.
                answer.headers.remove("content-length");
            }
        }
        assert_eq!(head.headers, get.headers, "{path}");
    }
}

#[tokio::test]
async fn two_slashes_lead_nowhere() {
    let (api, paths) = served().await;
    for (path, _) in paths {
        for path in [full(&format!("{path}//")), full(&format!("/{path}"))] {
            let answer = request(&api, "GET", &path, &[]).await;
            assert_eq!(answer.problem(), (404, "NTF-000"), "{path}");
        }
    }
}

#[tokio::test]
async fn an_id_of_any_shape_is_merely_not_there() {
    let api = TestApi::spawn().await;
    for (segment, id) in [
        ("1", "1"),
        ("statuses", "statuses"),
        ("a%20b", "a b"),
        ("%C3%A9", "é"),
        // A slash inside a segment stays as it was written.
        ("..%2F..%2Fetc", "..%2F..%2Fetc"),
        ("'%20OR%20'1'='1", "' OR '1'='1"),
        (
            "019B7654-0000-7000-8000-000000000000",
            "019B7654-0000-7000-8000-000000000000",
        ),
    ] {
        let answer = request(&api, "GET", &full(&format!("/clusters/{segment}")), &[]).await;
        assert_eq!(answer.problem(), (404, "NTF-001"), "{segment}");
        assert_eq!(
            answer.detail(),
            format!("Cluster with id='{id}' not found"),
            "{segment}"
        );
    }
}

#[tokio::test]
async fn the_service_says_what_it_is() {
    let api = TestApi::spawn().await;
    let answer = request(
        &api,
        "GET",
        "/api/hyperfleet",
        &[("accept-encoding", "gzip")],
    )
    .await;
    assert_eq!(answer.status, 200);
    let text = r#"{"id":"hyperfleet","href":"/api/hyperfleet","kind":"API","version":"1.2.3","build_time":"now"}"#;
    assert_eq!(String::from_utf8(answer.bytes.clone()).unwrap(), text);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("vary"), None);
    assert_eq!(answer.header("content-encoding"), None);
    assert!(answer.header("x-request-id").is_some());
}

#[tokio::test]
async fn answers_say_that_they_depend_on_the_caller() {
    let (api, paths) = served().await;
    for (path, _) in paths.iter().filter(|(_, allow)| allow.contains("GET")) {
        assert_eq!(
            api.get(path).await.header("vary"),
            Some("Authorization"),
            "{path}"
        );
    }
    for answer in [
        api.get("/clusters/nobody").await,
        api.get("/clusters?page=0").await,
        api.post("/clusters", json!({})).await,
        api.made("/clusters", "Cluster", "another").await,
    ] {
        assert_eq!(answer.header("vary"), Some("Authorization"));
    }
}

#[tokio::test]
async fn no_header_that_the_older_service_never_sent_is_sent() {
    let api = TestApi::spawn().await;
    let made = api.made("/clusters", "Cluster", "plain").await;
    let missing = api.get("/clusters/nobody").await;
    for answer in [made, missing] {
        for name in [
            "location",
            "www-authenticate",
            "retry-after",
            "access-control-allow-origin",
            "server",
        ] {
            assert_eq!(answer.header(name), None, "{name}");
        }
    }
}

#[tokio::test]
async fn a_valid_request_id_is_used() {
    let api = TestApi::spawn().await;
    let longest = "x".repeat(128);
    for id in ["1", "abc-DEF_0.9", "--", &longest] {
        for path in ["/api/hyperfleet", "/api/hyperfleet/v1/clusters", "/nowhere"] {
            let answer = request(&api, "GET", path, &[("x-request-id", id)]).await;
            assert_eq!(answer.header("x-request-id"), Some(id), "{path}");
        }
    }
}

#[tokio::test]
async fn an_insane_request_id_is_replaced_by_a_new_one() {
    let api = TestApi::spawn().await;
    let too_long = "x".repeat(129);
    let mut seen = Vec::new();
    for id in ["", "a b", "a/b", "ü", "a\tb", "{}", &too_long] {
        let answer = request(&api, "GET", "/nowhere", &[("x-request-id", id)]).await;
        let new = answer.header("x-request-id").unwrap().to_owned();
        let uuid: uuid::Uuid = new.parse().unwrap();
        assert_eq!(uuid.get_version_num(), 7, "{id:?}");
        assert_eq!(uuid.to_string(), new, "{id:?}");
        assert!(!seen.contains(&new), "{new} twice");
        seen.push(new);
    }
}
