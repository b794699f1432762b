//! Headers for caches on the way: a response is only for its caller, whichever header authenticates it.

use std::collections::BTreeSet;

use hyperfleet_auth::IssuerConfig;
use serde_json::{Value, json};

use super::signer::Signer;
use super::world::{ISSUER, ask, claims, of_file, service, slow, with};
use crate::support::{Answer, TestApi};

const SECOND: &str = "https://second.example";

/// One issuer's tokens come in the usual header; the other's in one of its own, with an identity in a third.
async fn served(folder: &tempfile::TempDir, signer: &Signer) -> TestApi {
    let second = IssuerConfig {
        header: "X-Second-Token".to_owned(),
        identity_header: "X-Caller".to_owned(),
        ..of_file(SECOND, folder, &[signer])
    };
    service(&[of_file(ISSUER, folder, &[signer]), second], slow()).await
}

/// The names in all of its `Vary`, in small letters; each may be there once.
fn varies_by(answer: &Answer) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for value in answer.headers.get_all("vary") {
        for name in value.to_str().unwrap().split(',') {
            let name = name.trim().to_lowercase();
            assert!(names.insert(name.clone()), "{name} is there twice");
        }
    }
    names
}

#[tokio::test]
async fn responses_vary_by_identity_headers_and_are_not_cached() {
    let folder = tempfile::tempdir().unwrap();
    let signer = Signer::p256("key");
    let api = served(&folder, &signer).await;
    let (first, second) = (signer.sign(&claims()), signer.sign(&with("iss", SECOND)));
    let (first, second) = (format!("Bearer {first}"), format!("Bearer {second}"));
    let usual = [("authorization", first.as_str())];
    let other = [("x-second-token", second.as_str()), ("x-caller", "eve")];
    let made = |name: &str| json!({"kind": "Cluster", "name": name, "spec": {}});
    for (method, path, headers, body, status) in [
        ("GET", "/clusters", &usual[..], Value::Null, 200),
        ("GET", "/clusters", &other[..], Value::Null, 200),
        ("HEAD", "/clusters", &other[..], Value::Null, 200),
        ("GET", "/audit", &other[..], Value::Null, 200),
        ("POST", "/clusters", &other[..], made("one"), 201),
        ("POST", "/clusters", &other[..], made("one"), 409),
        ("GET", "/clusters/nobody", &usual[..], Value::Null, 404),
        ("GET", "/clusters?page=0", &usual[..], Value::Null, 400),
        ("GET", "/clusters", &[], Value::Null, 401),
        ("GET", "/nowhere", &[], Value::Null, 404),
        ("PUT", "/clusters", &[], Value::Null, 405),
    ] {
        let answer = ask(&api, method, path, headers, &body).await;
        let at = format!("{method} {path}: {}", answer.body);
        assert_eq!(answer.status, status, "{at}");
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{at}");
        let mut expected = vec!["authorization", "x-second-token", "x-caller"];
        if status < 300 {
            expected.push("accept-encoding");
        }
        let expected = expected.into_iter().map(ToOwned::to_owned).collect();
        assert_eq!(varies_by(&answer), expected, "{at}");
    }
    let mut packed = other.to_vec();
    packed.push(("accept-encoding", "gzip"));
    let packed = ask(&api, "GET", "/clusters", &packed, &Value::Null).await;
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert_eq!(varies_by(&packed).len(), 4);
}

#[tokio::test]
async fn public_responses_are_cacheable_and_revalidated() {
    let folder = tempfile::tempdir().unwrap();
    let signer = Signer::p256("key");
    let api = served(&folder, &signer).await;
    let packed = [("accept-encoding", "gzip")];
    for path in ["/openapi", "/openapi.html", "/openapi/swagger-ui.css"] {
        for headers in [&[][..], &packed[..]] {
            let answer = ask(&api, "GET", path, headers, &Value::Null).await;
            assert_eq!(answer.status, 200, "{path}");
            assert_eq!(answer.header("cache-control"), Some("no-cache"), "{path}");
            let expected = BTreeSet::from(["accept-encoding".to_owned()]);
            assert_eq!(varies_by(&answer), expected, "{path}");
        }
    }
    // A client that has the document gets 304, with the same headers.
    let document = ask(&api, "GET", "/openapi", &[], &Value::Null).await;
    let known = [("if-none-match", document.header("etag").unwrap())];
    let known = ask(&api, "GET", "/openapi", &known, &Value::Null).await;
    assert_eq!((known.status, known.bytes.len()), (304, 0));
    for name in ["cache-control", "vary", "etag"] {
        assert_eq!(known.header(name), document.header(name), "{name}");
    }
}

#[tokio::test]
async fn without_tokens_nobody_keeps_an_answer_either() {
    let api = TestApi::spawn().await;
    let made = api.cluster("one").await;
    for path in [made.as_str(), "/clusters", "/audit", "/resources"] {
        let answer = api.get(path).await;
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{path}");
        let expected = ["authorization", "accept-encoding"].map(ToOwned::to_owned);
        assert_eq!(varies_by(&answer), BTreeSet::from(expected), "{path}");
    }
    let removed = api.delete(&made).await;
    assert_eq!(removed.header("cache-control"), Some("no-store"));
}
