//! Fleet's API beside that of clusters: behind the same doors, in its own words.

use std::time::Duration;

use hyperfleet_auth::Authentication;
use hyperfleet_server_kit::http::{Admission, Gate, Limits};
use serde_json::{Value, json};

use super::signer::Signer;
use super::world::{ISSUER, authenticator, claims, of_file, slow};
use crate::support::{
    ACME, Answer, SYSTEM, TestApi, TestClock, TestFleet, Walls, http_client, tenancy,
};

fn clock() -> TestClock {
    TestClock::at("2026-01-01T10:00:00Z")
}

fn unit() -> Value {
    json!({"options": [{"section": "Service", "name": "ExecStart", "value": "/bin/true"}]})
}

async fn send(
    api: &TestApi,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &Value,
) -> Answer {
    let url = format!("http://{}{path}", api.address());
    let mut request = http_client().request(method.parse().unwrap(), url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    if !body.is_null() {
        request = request.header("content-type", "application/json");
        request = request.body(body.to_string());
    }
    Answer::of(request.send().await.unwrap()).await
}

fn code(answer: &Answer) -> (u16, u64) {
    let error = answer.body["error"]
        .as_object()
        .unwrap_or_else(|| panic!("{answer:?}"));
    let members: Vec<_> = error.keys().collect();
    assert_eq!(members, ["code", "message"]);
    (answer.status, error["code"].as_u64().unwrap())
}

#[tokio::test]
async fn a_request_without_token_gets_fleets_error() {
    let fleet = TestFleet::spawn().await;
    let folder = tempfile::tempdir().unwrap();
    let signer = Signer::rsa("a");
    let issuers = [of_file(ISSUER, &folder, &[&signer])];
    let clock = clock();
    let authenticator = authenticator(&issuers, slow(), &clock);
    authenticator.fetch_keys_once(Duration::from_secs(20)).await;
    let api = TestApi::spawn_beside(&fleet.fleet, clock, |api| {
        api.authentication = Authentication::On(authenticator);
    });
    let api = api.await;
    let path = "/fleet/v1/units/a.service";
    for (method, path) in [
        ("GET", "/fleet/v1/units"),
        ("GET", "/fleet/v1/units?watch=true"),
        ("GET", path),
        ("PUT", path),
        ("DELETE", "/v1-alpha/units/a.service"),
        ("GET", "/fleet/v1/units/a.service/explain"),
        ("GET", "/v1-alpha/state"),
        ("GET", "/fleet/v1/state/a.service"),
        ("GET", "/fleet/v1/machines"),
        ("PATCH", "/fleet/v1/machines"),
    ] {
        for bearer in [None, Some("Bearer x.y.z")] {
            let headers: Vec<_> = bearer.map(|b| ("authorization", b)).into_iter().collect();
            let refused = send(&api, method, path, &headers, &json!([])).await;
            assert_eq!(code(&refused), (401, 401), "{method} {path}");
            assert!(
                refused
                    .header("www-authenticate")
                    .unwrap()
                    .starts_with("Bearer")
            );
            assert_eq!(refused.header("content-type"), Some("application/json"));
        }
    }
    // What says nothing of units is for anybody.
    for path in ["/fleet/v1/discovery", "/v1-alpha/openapi"] {
        assert_eq!(send(&api, "GET", path, &[], &Value::Null).await.status, 200);
    }
    let bearer = format!("Bearer {}", signer.sign(&claims()));
    let headers = [("authorization", bearer.as_str())];
    assert_eq!(send(&api, "PUT", path, &headers, &unit()).await.status, 201);
    assert_eq!(
        send(&api, "GET", path, &headers, &Value::Null).await.status,
        200
    );
}

#[tokio::test]
async fn it_has_its_prefixes_and_leaves_all_else_to_the_other_api() {
    let fleet = TestFleet::spawn().await;
    let api = TestApi::spawn_beside(&fleet.fleet, clock(), |_| {}).await;
    let get = async |path: &str| send(&api, "GET", path, &[], &Value::Null).await;
    for path in [
        "/fleet/v1/units",
        "/v1-alpha/units",
        "/fleet/v1/machines?alt=json",
    ] {
        let answer = get(path).await;
        assert_eq!((answer.status, &*answer.bytes), (200, &b"{}"[..]), "{path}");
        assert_eq!(answer.header("server"), Some("fleetd/1.2.3"));
    }
    // One trailing slash is ignored elsewhere, and never a part of fleet's paths.
    for path in ["/fleet/v1/units/", "/fleet/v1/", "/v1-alpha/nothing"] {
        assert_eq!(code(&get(path).await), (404, 404), "{path}");
    }
    for path in [
        "/units",
        "/fleet",
        "/metrics",
        "/machines",
        "/fleet/v1x/units",
    ] {
        let other = get(path).await;
        assert_eq!(other.problem(), (404, "NTF-000"), "{path}");
    }
    let clusters = get("/api/hyperfleet/v1/clusters/").await;
    assert_eq!((clusters.status, clusters.header("server")), (200, None));
}

#[tokio::test]
async fn with_tenants_only_system_identities_reach_fleet() {
    let fleet = TestFleet::spawn().await;
    for walls in [Walls::Down, Walls::Up] {
        let api = TestApi::spawn_beside(&fleet.fleet, clock(), |api| api.tenancy = tenancy(walls));
        let api = api.await;
        for (method, path) in [
            ("GET", "/fleet/v1/units"),
            ("GET", "/fleet/v1/state?watch=true"),
            ("PUT", "/fleet/v1/units/a.service"),
            ("DELETE", "/fleet/v1/units/a.service"),
            ("PATCH", "/fleet/v1/machines"),
        ] {
            for headers in [ACME, &[]] {
                let refused = send(&api, method, path, headers, &json!([])).await;
                assert_eq!(code(&refused), (403, 403), "{method} {path} {headers:?}");
            }
        }
        let path = "/fleet/v1/units/a.service";
        assert_eq!(send(&api, "PUT", path, SYSTEM, &unit()).await.status, 201);
        assert_eq!(
            send(&api, "DELETE", path, SYSTEM, &Value::Null)
                .await
                .status,
            204
        );
    }
}

#[tokio::test]
async fn what_is_refused_for_others_sake_is_in_fleets_words_too() {
    let fleet = TestFleet::spawn().await;
    let starting = Admission::new(Gate::starting(), &Limits::default());
    let rare = Limits {
        rate_per_second: 1,
        rate_burst: 1,
        ..Limits::default()
    };
    let rare = Admission::new(Gate::serving(), &rare);
    for (admission, status, header) in [(starting, 503, "retry-after"), (rare, 429, "ratelimit")] {
        let api = TestApi::spawn_beside(&fleet.fleet, clock(), |api| {
            api.admission = admission.clone();
        });
        let api = api.await;
        let mut refused = None;
        for _ in 0..100 {
            let answer = send(&api, "GET", "/fleet/v1/units", &[], &Value::Null).await;
            if answer.status != 200 {
                refused = Some(answer);
                break;
            }
        }
        let refused = refused.expect("a caller is refused");
        assert_eq!(code(&refused), (status, status.into()));
        assert!(refused.header(header).is_some(), "{refused:?}");
        assert_eq!(refused.header("content-type"), Some("application/json"));
    }
}
