//! Several issuers, each with its own header, and routes that ask nobody.

use hyperfleet_auth::IssuerConfig;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::signer::Signer;
use super::world::{ISSUER, NOW, ask, change, claims, key_set, of_file, read, service, slow, with};
use crate::support::{Answer, Problem as _, TestApi};

const SECOND: &str = "https://second.example/realm";

/// Of the second issuer.
fn second(member: &str, value: impl Into<Value>) -> Value {
    let mut claims = with("iss", SECOND);
    claims[member] = value.into();
    claims
}

struct World {
    api: TestApi,
    first: Signer,
    second: Signer,
    _folder: TempDir,
}

impl World {
    /// The second one's tokens come in this header.
    async fn new(header: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (Signer::p256("key"), Signer::p256("key"));
        let configs = [
            of_file(ISSUER, &folder, &[&first]),
            IssuerConfig {
                header: header.to_owned(),
                identity_claim: "sub".to_owned(),
                ..of_file(SECOND, &folder, &[&second])
            },
        ];
        Self {
            api: service(&configs, slow()).await,
            first,
            second,
            _folder: folder,
        }
    }

    async fn get(&self, headers: &[(&str, &str)]) -> Answer {
        ask(&self.api, "GET", "/clusters", headers, &Value::Null).await
    }
}

#[tokio::test]
async fn the_issuer_that_accepts_a_token_selects_the_identity() {
    let world = World::new("authorization").await;
    for (token, author) in [
        (world.first.sign(&with("sub", "s")), "ada@example.com"),
        (world.second.sign(&second("sub", "s")), "s"),
    ] {
        let bearer = format!("Bearer {token}");
        let name = format!("of-{}", author.len());
        let made = change(&world.api, &name, &[("authorization", &bearer)]).await;
        assert_eq!(made.status, 201, "{}", made.body);
        assert_eq!(made.body["created_by"], author);
    }
    // A key of one issuer is none of another.
    let crossed = world.first.sign(&second("sub", "s"));
    assert_eq!(read(&world.api, &crossed).await.problem(), (401, "AUT-002"));
}

#[tokio::test]
async fn entries_of_one_issuer_share_its_tokens_by_audience() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (Signer::p256("key"), Signer::p256("key"));
    let entry = |audience: &str, signer| IssuerConfig {
        audience: audience.to_owned(),
        ..of_file(ISSUER, &folder, &[signer])
    };
    let first = entry("people", &old);
    // A file of its own: each entry has its own keys.
    std::fs::rename(&first.jwk_cert_file, folder.path().join("people.json")).unwrap();
    let first = IssuerConfig {
        jwk_cert_file: folder.path().join("people.json"),
        ..first
    };
    let second = IssuerConfig {
        identity_claim: "sub".to_owned(),
        ..entry("machines", &new)
    };
    let api = service(&[first, second], slow()).await;
    let token = |signer: &Signer, audience: Value| {
        let mut claims = with("sub", "robot");
        claims["aud"] = audience;
        signer.sign(&claims)
    };
    for (token, author) in [
        (token(&old, json!("people")), "ada@example.com"),
        (token(&new, json!("machines")), "robot"),
        // For both: the first entry that takes it counts.
        (
            token(&old, json!(["machines", "people"])),
            "ada@example.com",
        ),
        (token(&new, json!(["people", "machines"])), "robot"),
    ] {
        let bearer = format!("Bearer {token}");
        for round in 0..2 {
            let name = format!("c{round}-{}", &token[token.len() - 8..].to_lowercase());
            let name = name.replace(['_', '-'], "x");
            let made = change(&api, &name, &[("authorization", &bearer)]).await;
            assert_eq!(made.status, 201, "{}", made.body);
            assert_eq!(made.body["created_by"], author);
        }
    }
    for token in [
        token(&new, json!("people")),
        token(&old, json!("machines")),
        token(&old, json!("others")),
        token(&old, Value::Null),
    ] {
        assert_eq!(read(&api, &token).await.problem(), (401, "AUT-002"));
    }
    let mut expired = with("aud", "machines");
    expired["exp"] = json!(NOW - 31);
    let expired = read(&api, &new.sign(&expired)).await;
    assert_eq!(expired.problem(), (401, "AUT-003"));
}

#[tokio::test]
async fn entries_of_an_issuer_read_their_own_headers() {
    let folder = tempfile::tempdir().unwrap();
    let (shared, machines) = (Signer::p256("shared"), Signer::p256("machines"));
    let people = of_file(ISSUER, &folder, &[&shared]);
    let file = folder.path().join("machines.json");
    std::fs::write(&file, key_set(&[&shared, &machines])).unwrap();
    let entries = [
        people.clone(),
        IssuerConfig {
            header: "x-machine".to_owned(),
            identity_claim: "sub".to_owned(),
            jwk_cert_file: file,
            ..people
        },
    ];
    let api = service(&entries, slow()).await;
    let claims = with("sub", "robot");
    let [shared, machines] = [shared, machines].map(|key| format!("Bearer {}", key.sign(&claims)));
    let (person, robot) = (Ok("ada@example.com"), Ok("robot"));
    let refused = Err((401, "AUT-002"));
    for (number, (authorization, machine, author)) in [
        // The header decides which entry names the caller.
        (Some(&shared), None, person),
        (None, Some(&shared), robot),
        (Some(&shared), Some(&shared), person),
        // Each entry has its own keys.
        (None, Some(&machines), robot),
        (Some(&machines), None, refused),
        (Some(&machines), Some(&machines), robot),
    ]
    .into_iter()
    .enumerate()
    {
        let headers = [("authorization", authorization), ("x-machine", machine)];
        let headers = headers
            .into_iter()
            .filter_map(|(n, v)| Some((n, v?.as_str())));
        let headers: Vec<_> = headers.collect();
        let made = change(&api, &format!("cluster-{number}"), &headers).await;
        match author {
            Ok(author) => {
                assert_eq!(made.status, 201, "{number}: {}", made.body);
                assert_eq!(made.body["created_by"], author, "{number}");
            }
            Err(problem) => assert_eq!(made.problem(), problem, "{number}"),
        }
    }
}

#[tokio::test]
async fn the_first_valid_token_counts_or_the_most_specific_refusal() {
    let world = World::new("x-second").await;
    let bearer = |token: &str| format!("Bearer {token}");
    let good = bearer(&world.first.sign(&claims()));
    let good_second = bearer(&world.second.sign(&second("sub", "s")));
    let expired = bearer(&world.first.sign(&with("exp", NOW - 31)));
    let expired_second = bearer(&world.second.sign(&second("exp", NOW - 31)));
    let (garbage, basic) = ("Bearer x", "Basic x");
    for (first, other, outcome) in [
        (Some(good.as_str()), Some(garbage), None),
        (Some(garbage), Some(good_second.as_str()), None),
        (Some(expired.as_str()), Some(&good_second), None),
        (Some(basic), Some(&good_second), None),
        (None, Some(&good_second), None),
        (
            None,
            None,
            Some(("AUT-001", "missing authorization header")),
        ),
        (Some(garbage), None, Some(("AUT-002", "invalid JWT token"))),
        (
            Some(basic),
            None,
            Some(("AUT-002", "authorization header does not use Bearer scheme")),
        ),
        (
            Some(basic),
            Some(garbage),
            Some(("AUT-002", "invalid JWT token")),
        ),
        (
            Some(garbage),
            Some(basic),
            Some(("AUT-002", "invalid JWT token")),
        ),
        (
            Some(&expired),
            Some(garbage),
            Some(("AUT-003", "JWT token has expired")),
        ),
        (
            Some(garbage),
            Some(&expired_second),
            Some(("AUT-003", "JWT token has expired")),
        ),
        (
            Some(basic),
            Some(&expired_second),
            Some(("AUT-003", "JWT token has expired")),
        ),
        // The token of one issuer in the header of another.
        (
            Some(&good_second),
            None,
            Some(("AUT-002", "invalid JWT token")),
        ),
    ] {
        let headers = [("authorization", first), ("x-second", other)];
        let headers: Vec<_> = headers
            .iter()
            .filter_map(|(n, v)| Some((*n, (*v)?)))
            .collect();
        let answer = world.get(&headers).await;
        match outcome {
            None => assert_eq!(answer.status, 200, "{headers:?}: {}", answer.body),
            Some((code, detail)) => {
                assert_eq!(
                    (answer.code(), answer.detail()),
                    (code, detail),
                    "{headers:?}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_refusal_says_what_to_bring_and_not_what_was_wrong() {
    let world = World::new("x-second").await;
    let realm = "Bearer realm=\"hyperfleet\"";
    let with_error =
        |text: &str| format!("{realm}, error=\"invalid_token\", error_description=\"{text}\"");
    let expired = format!("Bearer {}", world.first.sign(&with("exp", NOW - 31)));
    let nobody = format!("Bearer {}", world.first.sign(&with("email", "")));
    let unknown = format!("Bearer {}", Signer::p256("x").sign(&claims()));
    for (method, header, title, challenge) in [
        ("GET", None, "Authentication Required", realm.to_owned()),
        (
            "GET",
            Some("Basic x"),
            "Invalid Credentials",
            realm.to_owned(),
        ),
        (
            "GET",
            Some("Bearer x"),
            "Invalid Credentials",
            with_error("the token is invalid"),
        ),
        (
            "GET",
            Some(unknown.as_str()),
            "Invalid Credentials",
            with_error("the token is invalid"),
        ),
        (
            "GET",
            Some(&expired),
            "Invalid Token",
            with_error("the token has expired"),
        ),
        (
            "DELETE",
            Some(&nobody),
            "Authentication Required",
            with_error("unknown identity"),
        ),
    ] {
        let headers: Vec<_> = header
            .iter()
            .map(|value| ("authorization", *value))
            .collect();
        let path = "/clusters/019b7868-8e00-7000-8000-000000000002";
        let answer = ask(&world.api, method, path, &headers, &Value::Null).await;
        assert_eq!(answer.status, 401);
        assert_eq!(answer.body["title"], title);
        assert_eq!(answer.header("www-authenticate"), Some(challenge.as_str()));
        assert_eq!(
            answer.body["type"],
            "https://api.hyperfleet.io/errors/authentication-error"
        );
        answer.code();
    }
}

#[tokio::test]
async fn what_is_public_and_what_is_not_there_needs_no_token() {
    let world = World::new("authorization").await;
    let api = &world.api;
    let root = api.base.trim_end_matches("/v1");
    for url in [
        root.to_owned(),
        format!("{}/openapi", api.base),
        format!("{}/openapi.html", api.base),
        format!("{}/openapi/", api.base),
    ] {
        let answer = api.client.get(&url).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{url}");
    }
    for (method, path, problem) in [
        ("GET", "/nowhere", (404, "NTF-000")),
        ("PUT", "/clusters", (405, "VAL-008")),
        ("POST", "/audit", (405, "VAL-008")),
        ("GET", "/clusters", (401, "AUT-001")),
        ("HEAD", "/clusters", (401, "")),
        ("GET", "/audit", (401, "AUT-001")),
        ("GET", "/leases/dns", (401, "AUT-001")),
        ("PUT", "/leases/dns", (401, "AUT-001")),
        ("DELETE", "/leases/dns", (401, "AUT-001")),
        ("GET", "/resources", (401, "AUT-001")),
        ("GET", "/clusters/no-id", (401, "AUT-001")),
        ("GET", "/clusters/x/nodepools/y/statuses", (401, "AUT-001")),
        ("PUT", "/clusters/x/statuses", (401, "AUT-001")),
        ("POST", "/clusters/x/force-delete", (401, "AUT-001")),
        ("DELETE", "/clusters/x", (401, "AUT-001")),
    ] {
        // Before the body is read, too.
        let answer = ask(api, method, path, &[], &json!("{")).await;
        assert_eq!(answer.problem(), problem, "{method} {path}");
    }
}
