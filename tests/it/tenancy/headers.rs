//! What headers say, over a bare connection: proxies and libraries would mend some of it.

use serde_json::{Value, json};

use super::kinds;
use crate::support::{RawAnswer, TestApi, Walls};

/// Lists clusters with these headers.
async fn ask(api: &TestApi, headers: &str) -> RawAnswer {
    let path = "/api/hyperfleet/v1/clusters";
    let answer = api.request_raw("GET", path, headers, b"").await;
    answer.unwrap_or_else(|| panic!("no answer to {headers:?}"))
}

/// What a refusal says.
fn refusal(answer: &RawAnswer) -> (u16, &str, &str) {
    let text = |member: &str| answer.body[member].as_str().unwrap_or_default();
    (answer.status, text("code"), text("detail"))
}

const INVALID: &str = "tenant header \"X-Org\" has an invalid value";
const MISSING: &str = "required tenant header \"X-Org\" is missing";

#[tokio::test]
async fn a_request_without_a_clear_tenant_is_refused() {
    let long = format!("X-Org: {}\r\n", "a".repeat(64));
    for walls in [Walls::Down, Walls::Up] {
        let api = TestApi::spawn_for(&kinds(), walls).await;
        for (headers, detail) in [
            ("", MISSING),
            ("X-Org:\r\n", MISSING),
            ("X-Org: \t \r\n", MISSING),
            ("X-Project: web\r\n", MISSING),
            ("X-System: false\r\n", MISSING),
            ("X-Organisation: acme\r\n", MISSING),
            ("X-Org: a b\r\n", INVALID),
            ("X-Org: a,b\r\n", INVALID),
            ("X-Org: a\tb\r\n", INVALID),
            ("X-Org: %61\r\n", INVALID),
            ("X-Org: acm\u{e9}\r\n", INVALID),
            ("X-Org: \u{fe0e}acme\r\n", INVALID),
            ("X-Org: \"acme\"\r\n", INVALID),
            ("X-Org: acme' or '1'='1\r\n", INVALID),
            ("X-Org: {\"org\":\"acme\"}\r\n", INVALID),
            (&long, INVALID),
            ("X-Org: acme\r\nX-Org: beta\r\n", INVALID),
            ("X-Org: acme\r\nx-org: acme\r\n", INVALID),
            ("X-Org: acme\r\nX-ORG:\r\n", INVALID),
            (
                "X-Org: acme\r\nX-Project: w/b\r\n",
                "tenant header \"X-Project\" has an invalid value",
            ),
            (
                "X-Org: acme\r\nX-System: true\r\nX-System: true\r\n",
                "tenant header \"X-System\" has an invalid value",
            ),
        ] {
            let answer = ask(&api, headers).await;
            let expected = (403, "HYPERFLEET-AUZ-001", detail);
            assert_eq!(refusal(&answer), expected, "{headers:?}");
            let kind = "https://api.hyperfleet.io/errors/permission-denied";
            assert_eq!(answer.body["type"], kind);
            assert_eq!(answer.body["title"], "Permission Denied");
        }
    }
}

#[tokio::test]
async fn a_name_has_no_case_and_a_value_no_blanks_around_it() {
    let api = TestApi::spawn_for(&kinds(), Walls::Up).await;
    let longest = "a".repeat(63);
    for (number, (headers, tenancy)) in [
        ("x-org: acme\r\n", json!({"org": "acme"})),
        ("X-ORG:acme\r\n", json!({"org": "acme"})),
        ("X-Org: \t acme \t\r\n", json!({"org": "acme"})),
        ("X-Org: ACME\r\n", json!({"org": "ACME"})),
        ("X-Org: true\r\n", json!({"org": "true"})),
        (
            "X-Org: a.b_c-9\r\nX-Project: 0\r\n",
            json!({"org": "a.b_c-9", "project": "0"}),
        ),
        ("X-Org: acme\r\nX-Project:\r\n", json!({"org": "acme"})),
        ("X-Org: acme\r\nX-System: 1\r\n", json!({"org": "acme"})),
        (&format!("X-Org: {longest}\r\n"), json!({"org": longest})),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("cluster-{number}");
        let body = json!({"kind": "Cluster", "name": name, "spec": {}, "tenancy": {"org": "beta"}});
        let path = "/api/hyperfleet/v1/clusters";
        let body = body.to_string();
        let made = api.request_raw("POST", path, headers, body.as_bytes());
        let made = made.await.unwrap();
        assert_eq!(made.status, 201, "{headers:?}: {}", made.body);
        assert_eq!(made.body["tenancy"], tenancy, "{headers:?}");
        let list = ask(&api, headers).await;
        let found = list.body["items"].as_array().unwrap().iter();
        let names: Vec<&Value> = found.map(|item| &item["name"]).collect();
        assert!(names.contains(&&json!(name)), "{headers:?}");
        assert!(
            list.body["items"]
                .as_array()
                .unwrap()
                .iter()
                .all(|item| item["tenancy"] == tenancy),
            "{headers:?}"
        );
    }
}

#[tokio::test]
async fn without_tenancy_no_header_matters() {
    let api = TestApi::spawn_with(&kinds()).await;
    for headers in ["", "X-Org: a b\r\n", "X-System: true\r\n"] {
        assert_eq!(ask(&api, headers).await.status, 200, "{headers:?}");
        let path = "/api/hyperfleet/v1/clusters";
        let name = format!("c-{}", headers.len());
        let body = json!({"kind": "Cluster", "name": name, "spec": {}}).to_string();
        let made = api.request_raw("POST", path, headers, body.as_bytes());
        let made = made.await.unwrap();
        assert_eq!((made.status, &made.body["tenancy"]), (201, &json!({})));
    }
}

#[tokio::test]
async fn what_leads_nowhere_and_what_is_for_everybody_need_no_tenant() {
    let api = TestApi::spawn_for(&kinds(), Walls::Up).await;
    for (method, path, status) in [
        ("GET", "/nothing", 404),
        ("PUT", "/clusters", 405),
        ("GET", "/openapi", 200),
        ("GET", "/clusters", 403),
        ("HEAD", "/clusters", 403),
    ] {
        let answer = api.send(method, path, Value::Null).await;
        assert_eq!(answer.status, status, "{method} {path}");
    }
}

/// A refusal need not: no cache keeps one.
#[tokio::test]
async fn answers_say_which_headers_they_depend_on() {
    let api = TestApi::spawn_for(&kinds(), Walls::Up).await;
    for (path, status) in [("clusters", 200), ("clusters/nobody", 404)] {
        let path = format!("/api/hyperfleet/v1/{path}");
        let answer = api.request_raw("GET", &path, "X-Org: acme\r\n", b"").await;
        let answer = answer.unwrap();
        assert_eq!(answer.status, status);
        let head = answer.head.to_lowercase();
        let vary: Vec<_> = head.lines().filter(|l| l.starts_with("vary:")).collect();
        for name in ["authorization", "x-system", "x-org", "x-project"] {
            assert!(vary.iter().any(|line| line.contains(name)), "{head}");
        }
    }
}

#[tokio::test]
async fn the_tenant_of_a_body_is_nobodys_word() {
    let api = TestApi::spawn_for(&kinds(), Walls::Up).await;
    let acme = api.speaking(crate::support::ACME);
    let made = acme.made("/clusters", "Cluster", "ours").await;
    let path = format!("/clusters/{}", made.id());
    let body = json!({"tenancy": {"org": "beta"}, "labels": {"a": "b"}});
    let refused = acme.patch(&path, body).await;
    assert_eq!(refused.problem(), (400, "VAL-006"), "{}", refused.body);
    assert_eq!(acme.get(&path).await.body, made.body);
}
