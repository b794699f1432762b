//! Who is said to have changed something.

use hyperfleet_auth::IssuerConfig;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::signer::Signer;
use super::world::{ISSUER, ask, change, claims, of_file, read, service, slow, with};
use crate::support::{Problem as _, TestApi};

struct World {
    api: TestApi,
    signer: Signer,
    _folder: TempDir,
}

impl World {
    async fn new(set: impl Fn(&mut IssuerConfig)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let signer = Signer::ed25519("key");
        let mut config = of_file(ISSUER, &folder, &[&signer]);
        set(&mut config);
        Self {
            api: service(&[config], slow()).await,
            signer,
            _folder: folder,
        }
    }

    fn bearer(&self, claims: &Value) -> String {
        format!("Bearer {}", self.signer.sign(claims))
    }
}

#[tokio::test]
async fn the_audit_trail_and_the_resource_say_who_it_was() {
    let world = World::new(|_| {}).await;
    let (ada, eve) = ("ada@example.com", "service-account:eve");
    let by_ada = world.bearer(&claims());
    let by_eve = world.bearer(&with("email", eve));
    let made = change(&world.api, "made", &[("authorization", &by_ada)]).await;
    assert_eq!(made.body["created_by"], ada);
    let path = format!("/clusters/{}", made.id());
    let headers = [("authorization", by_eve.as_str())];
    let body = json!({"spec": {"a": 1}});
    let patched = ask(&world.api, "PATCH", &path, &headers, &body).await;
    assert_eq!(patched.body["created_by"], ada);
    assert_eq!(patched.body["updated_by"], eve);
    let deleted = ask(&world.api, "DELETE", &path, &headers, &Value::Null).await;
    assert_eq!(deleted.body["deleted_by"], eve);
    let audit = ask(&world.api, "GET", "/audit", &headers, &Value::Null).await;
    assert_eq!(audit.column("actor"), [eve, eve, ada]);
}

#[tokio::test]
async fn whoever_is_not_known_may_read_and_not_change() {
    let world = World::new(|_| {}).await;
    let nobody = json!({"iss": ISSUER, "exp": claims()["exp"]});
    let token = world.signer.sign(&nobody);
    assert_eq!(read(&world.api, &token).await.status, 200);
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str())];
    let head = ask(&world.api, "HEAD", "/clusters", &headers, &Value::Null).await;
    assert_eq!(head.status, 200);
    let id = "019b7868-8e00-7000-8000-000000000002";
    for (method, path) in [
        ("POST", "/clusters".to_owned()),
        ("PATCH", format!("/clusters/{id}")),
        ("DELETE", format!("/clusters/{id}")),
        ("POST", format!("/clusters/{id}/force-delete")),
        ("PUT", format!("/clusters/{id}/statuses")),
    ] {
        let refused = ask(&world.api, method, &path, &headers, &Value::Null).await;
        assert_eq!(
            (refused.status, refused.code()),
            (401, "AUT-001"),
            "{method} {path}"
        );
        assert_eq!(
            refused.detail(),
            "Unable to resolve caller identity: identity claim \"email\" not found or empty"
        );
    }
}

#[tokio::test]
async fn a_header_counts_before_the_claim() {
    let world = World::new(|config| {
        config.identity_header = "X-Caller".to_owned();
        config.identity_claim_pattern = "@example\\.com$".to_owned();
    })
    .await;
    let bearer = world.bearer(&claims());
    let long = format!("{}@example.com", "x".repeat(245));
    let token = "Unable to resolve caller identity: ";
    for (name, header, outcome) in [
        ("none", None, Ok("ada@example.com")),
        ("blank", Some(" "), Ok("ada@example.com")),
        ("header", Some(" eve@example.com "), Ok("eve@example.com")),
        (
            "other",
            Some("eve@example.org"),
            Err("identity header value does not match required pattern"),
        ),
        (
            "long",
            Some(long.as_str()),
            Err("header \"X-Caller\" value exceeds maximum length 256"),
        ),
        (
            "tab",
            Some("eve\t@example.com"),
            Err("header \"X-Caller\" value contains invalid characters"),
        ),
    ] {
        let mut headers = vec![("authorization", bearer.as_str())];
        headers.extend(header.map(|value| ("x-caller", value)));
        let answer = change(&world.api, name, &headers).await;
        match outcome {
            Ok(author) => assert_eq!(answer.body["created_by"], author, "{name}"),
            Err(detail) => {
                assert_eq!(answer.code(), "AUT-001", "{name}");
                assert_eq!(answer.detail(), format!("{token}{detail}"), "{name}");
            }
        }
    }
    let twice = [
        ("authorization", bearer.as_str()),
        ("x-caller", "a@example.com"),
        ("x-caller", "b@example.com"),
    ];
    assert_eq!(
        change(&world.api, "twice", &twice).await.problem(),
        (401, "AUT-001")
    );
    let outside = world.bearer(&with("email", "eve@example.org"));
    let refused = change(&world.api, "claim", &[("authorization", &outside)]).await;
    assert_eq!(
        refused.detail(),
        format!("{token}identity claim value does not match required pattern")
    );
}

#[tokio::test]
async fn a_token_that_was_taken_before_expires_all_the_same() {
    let world = World::new(|_| {}).await;
    let token = world.signer.sign(&claims());
    for _ in 0..2 {
        assert_eq!(read(&world.api, &token).await.status, 200);
    }
    world.api.clock.advance(3600 + 29);
    assert_eq!(read(&world.api, &token).await.status, 200);
    world.api.clock.advance(1);
    assert_eq!(read(&world.api, &token).await.problem(), (401, "AUT-003"));
}

#[tokio::test]
async fn without_authentication_headers_say_nothing() {
    let api = TestApi::spawn().await;
    let headers = [
        ("authorization", "Basic x"),
        ("x-caller", "eve@example.com"),
    ];
    let made = change(&api, "made", &headers).await;
    assert_eq!(made.status, 201);
    assert_eq!(made.body["created_by"], "system@hyperfleet.local");
}

#[tokio::test]
async fn the_longest_identities_are_stored_and_lists_continue() {
    let world = World::new(|_| {}).await;
    // What takes most room in a token that continues a list: each is written with a backslash.
    let mut identities: Vec<_> = (0..4)
        .map(|n| format!("{n}{}", "\"\\".repeat(127) + "x"))
        .collect();
    identities.push(format!("{}é", "ü".repeat(127)));
    for (number, identity) in identities.iter().enumerate() {
        assert_eq!(identity.len(), 256);
        let bearer = world.bearer(&with("email", identity.as_str()));
        let headers = [("authorization", bearer.as_str())];
        let made = change(&world.api, &format!("long-{number}"), &headers).await;
        assert_eq!(made.status, 201, "{}", made.body);
        assert_eq!(made.body["created_by"], identity.as_str());
        let path = format!("/clusters/{}", made.id());
        let deleted = ask(&world.api, "DELETE", &path, &headers, &Value::Null).await;
        assert_eq!(deleted.body["deleted_by"], identity.as_str());
    }
    let bearer = world.bearer(&claims());
    let headers = [("authorization", bearer.as_str())];
    let list = "/clusters?includeDeleted=true&size=2&order=created_by,updated_by,deleted_by,name";
    let mut seen = Vec::new();
    let mut next = String::new();
    loop {
        let path = format!("{list}{next}");
        let page = ask(&world.api, "GET", &path, &headers, &Value::Null).await;
        assert_eq!(page.status, 200, "{}", page.body);
        seen.extend(page.column("created_by").into_iter().map(ToOwned::to_owned));
        let Some(token) = page.body["continue"].as_str() else {
            break;
        };
        assert!(token.len() <= 8192, "{}", token.len());
        next = format!("&continue={token}");
    }
    assert_eq!(seen, identities);
}

#[tokio::test]
async fn an_idempotency_key_belongs_to_its_caller() {
    let world = World::new(|_| {}).await;
    let by_ada = world.bearer(&claims());
    let by_eve = world.bearer(&with("email", "eve@example.com"));
    let keyed = async |name: &str, bearer: &str| {
        let headers = [("authorization", bearer), ("idempotency-key", "a")];
        change(&world.api, name, &headers).await
    };
    let ada = keyed("of-ada", &by_ada).await;
    let eve = keyed("of-eve", &by_eve).await;
    assert_eq!((ada.status, eve.status), (201, 201), "{}", eve.body);
    assert_eq!(keyed("of-ada", &by_ada).await.bytes, ada.bytes);
    assert_eq!(keyed("of-eve", &by_eve).await.bytes, eve.bytes);
    assert_eq!(keyed("of-eve", &by_ada).await.status, 422);
}
