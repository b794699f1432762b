//! Ways to get in without leave (RFC 8725), each beside a twin that differs in one thing and is let
//! in: so it is that one thing which is refused.

mod forms;
mod headers;
mod signatures;
mod statements;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::signer::{Signer, base64};
use super::world::{ISSUER, NOW, ask, of_file, read, service, slow};
use crate::support::{Answer, PATIENCE, Problem as _, TestApi, Then};

const AUDIENCE: &str = "api";

/// The issuer's keys, and a stranger's.
struct Keys {
    rsa: Signer,
    rs256: Signer,
    ec: Signer,
    other: Signer,
    ed: Signer,
    stranger: Signer,
}

impl Keys {
    fn new() -> Self {
        Self {
            rsa: Signer::rsa("rsa"),
            rs256: Signer::rsa("rs256").only("RS256"),
            ec: Signer::p256("ec"),
            other: Signer::p256("other"),
            ed: Signer::ed25519("ed"),
            stranger: Signer::p256("stranger"),
        }
    }

    fn published(&self) -> [&Signer; 5] {
        [&self.rsa, &self.rs256, &self.ec, &self.other, &self.ed]
    }
}

/// A request.
struct Call {
    method: &'static str,
    query: String,
    headers: Vec<(&'static str, String)>,
}

impl Call {
    /// A read with a token.
    fn token(token: &str) -> Self {
        Self::header(&format!("Bearer {token}"))
    }

    /// A read with this header.
    fn header(authorization: &str) -> Self {
        Self::headers(&[("authorization", authorization)])
    }

    /// A read with these headers.
    fn headers(headers: &[(&'static str, &str)]) -> Self {
        let headers = headers.iter();
        Self {
            method: "GET",
            query: String::new(),
            headers: headers.map(|(n, v)| (*n, (*v).to_owned())).collect(),
        }
    }

    /// A change with a token.
    fn change(token: &str) -> Self {
        Self {
            method: "POST",
            ..Self::token(token)
        }
    }

    async fn make(&self, api: &TestApi, number: usize) -> Answer {
        let headers: Vec<_> = self.headers.iter().map(|(n, v)| (*n, v.as_str())).collect();
        let name = format!("attack-{number}");
        let body = match self.method {
            "POST" => json!({"kind": "Cluster", "name": name, "spec": {}}),
            _ => Value::Null,
        };
        let path = format!("/clusters{}", self.query);
        ask(api, self.method, &path, &headers, &body).await
    }
}

/// A way in that must be closed.
struct Attack {
    name: &'static str,
    code: &'static str,
    call: Call,
    twin: Call,
}

/// An attack whose answer says only that the token is invalid.
fn invalid(name: &'static str, attack: Call, twin: Call) -> Attack {
    Attack {
        name,
        code: "AUT-002",
        call: attack,
        twin,
    }
}

/// One of two tokens.
fn tokens(name: &'static str, attack: &str, twin: &str) -> Attack {
    invalid(name, Call::token(attack), Call::token(twin))
}

fn claims() -> Value {
    json!({"iss": ISSUER, "aud": AUDIENCE, "exp": NOW + 3600, "email": "ada@example.com"})
}

fn with(member: &str, value: impl Into<Value>) -> Value {
    let mut claims = claims();
    claims[member] = value.into();
    claims
}

fn without(member: &str) -> Value {
    let mut claims = claims();
    claims.as_object_mut().unwrap().remove(member);
    claims
}

/// A token whose header has these members besides.
fn extended(signer: &Signer, members: &Value) -> String {
    let mut header = json!({"alg": signer.algorithm(), "kid": signer.kid});
    for (name, value) in members.as_object().unwrap() {
        header[name] = value.clone();
    }
    signer.sign_text(
        signer.algorithm(),
        &header.to_string(),
        &claims().to_string(),
    )
}

async fn spawn(keys: &Keys) -> (TestApi, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut config = of_file(ISSUER, &folder, &keys.published());
    config.audience = AUDIENCE.to_owned();
    (service(&[config], slow()).await, folder)
}

#[tokio::test]
async fn no_attack_gets_in_and_every_twin_does() {
    let keys = Keys::new();
    let (api, _folder) = spawn(&keys).await;
    let mut attacks = signatures::attacks(&keys);
    attacks.extend(headers::attacks(&keys));
    attacks.extend(statements::attacks(&keys));
    attacks.extend(forms::attacks(&keys));
    assert!(attacks.len() >= 40, "{}", attacks.len());
    let mut wrong = Vec::new();
    for (number, attack) in attacks.iter().enumerate() {
        let Attack {
            name,
            code,
            call,
            twin,
        } = attack;
        let refused = call.make(&api, 2 * number).await;
        if refused.status != 401 {
            wrong.push(format!("{name}: {} {}", refused.status, refused.body));
            continue;
        }
        if refused.code() != *code {
            wrong.push(format!("{name}: not {code}: {}", refused.body));
        }
        let challenge = refused.header("www-authenticate").unwrap();
        assert!(
            challenge.starts_with("Bearer realm=\"hyperfleet\""),
            "{name}"
        );
        assert_eq!(refused.header("vary"), Some("Authorization"), "{name}");
        let accepted = twin.make(&api, 2 * number + 1).await;
        if accepted.status > 201 {
            wrong.push(format!(
                "twin of {name}: {} {}",
                accepted.status, accepted.body
            ));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[tokio::test]
async fn a_token_of_a_mebibyte_is_refused_and_the_service_goes_on() {
    let keys = Keys::new();
    let (api, _folder) = spawn(&keys).await;
    let token = base64(vec![b'x'; 1024 * 1024]);
    let request = format!(
        "GET /api/hyperfleet/v1/clusters HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n"
    );
    let answer = api.send_raw(request.as_bytes(), Then::Wait).await;
    // The connection may be closed before all of it is sent.
    let status = answer.map(|answer| answer.status);
    assert!(status.is_none_or(|s| (400..500).contains(&s)), "{status:?}");
    let good = keys.ec.sign(&claims());
    let answer = tokio::time::timeout(PATIENCE, read(&api, &good)).await;
    assert_eq!(answer.unwrap().status, 200);
}

#[tokio::test]
async fn random_changes_of_a_token_do_not_get_in() {
    let keys = Keys::new();
    let (api, _folder) = spawn(&keys).await;
    let mut random = crate::support::Random::seeded(7);
    for signer in keys.published() {
        let token = signer.sign(&claims());
        assert_eq!(read(&api, &token).await.status, 200);
        for _ in 0..60 {
            let mut bytes = token.clone().into_bytes();
            let at = random.below(bytes.len());
            let other = b"ABab09-_.="[random.below(10)];
            if bytes[at] == other {
                continue;
            }
            bytes[at] = other;
            let changed = String::from_utf8(bytes).unwrap();
            let answer = read(&api, &changed).await;
            assert_eq!(answer.status, 401, "{changed} of {token}");
        }
    }
}
