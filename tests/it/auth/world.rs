//! A service with authentication, and issuers for it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix_web::dev::ServerHandle;
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use hyperfleet_auth::{Authentication, Authenticator, IssuerConfig, Pace, issuers};
use hyperfleet_domain::entity_config;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::signer::Signer;
use crate::support::{Answer, TestApi, TestClock, TestDatabase};

pub(super) const ISSUER: &str = "https://issuer.example";
/// 2026-01-01T10:00:00Z: where the clocks of tests stand.
pub(super) const NOW: i64 = 1_767_261_600;

/// Fetches keys as seldom as possible, so that a test sees only the fetches that it causes.
pub(super) fn slow() -> Pace {
    Pace {
        file_period: Duration::from_millis(20),
        wait: Duration::from_secs(20),
        ..Pace::default()
    }
}

/// An issuer whose keys are in a file.
pub(super) fn of_file(issuer: &str, folder: &TempDir, signers: &[&Signer]) -> IssuerConfig {
    let name = format!("keys-{}.json", issuer.len());
    let path = folder.path().join(name);
    std::fs::write(&path, key_set(signers)).unwrap();
    IssuerConfig {
        jwk_cert_file: path,
        ..config(issuer)
    }
}

/// An issuer with nothing but defaults.
pub(super) fn config(issuer: &str) -> IssuerConfig {
    IssuerConfig {
        issuer_url: issuer.to_owned(),
        ..IssuerConfig::default()
    }
}

/// What an issuer publishes.
pub(super) fn key_set(signers: &[&Signer]) -> String {
    let keys: Vec<_> = signers.iter().map(|signer| signer.jwk()).collect();
    json!({ "keys": keys }).to_string()
}

/// Claims that are taken of the usual issuer, for an hour.
pub(super) fn claims() -> Value {
    json!({"iss": ISSUER, "exp": NOW + 3600, "email": "ada@example.com"})
}

/// The same with one member changed.
pub(super) fn with(member: &str, value: impl Into<Value>) -> Value {
    let mut claims = claims();
    claims[member] = value.into();
    claims
}

/// A service that takes tokens of these issuers.
pub(super) async fn service(configs: &[IssuerConfig], pace: Pace) -> TestApi {
    let clock = TestClock::at("2026-01-01T10:00:00Z");
    let authenticator = authenticator(configs, pace, &clock);
    authenticator.fetch_keys_once(Duration::from_secs(20)).await;
    let registry = entity_config::registry(&entity_config::built_in()).unwrap();
    let database = TestDatabase::create().await;
    let store = database.store();
    let authentication = Authentication::On(authenticator);
    TestApi::spawn_protected(registry, database, store, clock, authentication)
}

/// What decides by itself, without a service around it.
pub(super) fn authenticator(
    configs: &[IssuerConfig],
    pace: Pace,
    clock: &TestClock,
) -> Authenticator {
    hyperfleet_server_kit::crypto::install();
    let issuers = issuers(configs, pace).unwrap();
    Authenticator::start(issuers, pace, &clock.clock())
}

/// A request with headers.
pub(super) async fn ask(
    api: &TestApi,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &Value,
) -> Answer {
    let url = format!("{}{path}", api.base);
    let mut request = api.client.request(method.parse().unwrap(), url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    if !body.is_null() {
        request = request.body(body.to_string());
    }
    Answer::of(request.send().await.unwrap()).await
}

/// A read with a token.
pub(super) async fn read(api: &TestApi, token: &str) -> Answer {
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str())];
    ask(api, "GET", "/clusters", &headers, &Value::Null).await
}

/// A change with headers.
pub(super) async fn change(api: &TestApi, name: &str, headers: &[(&str, &str)]) -> Answer {
    let body = json!({"kind": "Cluster", "name": name, "spec": {}});
    ask(api, "POST", "/clusters", headers, &body).await
}

/// What an issuer's address answers.
#[derive(Clone)]
pub(super) enum Says {
    /// This, as JSON.
    Keys(String),
    /// This, as the API server of Kubernetes does: with its own media type, and to bearers of this token.
    KeysTo(&'static str, String),
    /// This, with this status.
    Status(u16, String),
    /// Go there.
    Redirect(String),
    /// Nothing, ever.
    Nothing,
    /// A byte now and then, for ever.
    Drops,
}

/// An issuer on this machine that counts how often it is asked.
pub(super) struct Publisher {
    pub(super) url: String,
    says: Arc<Mutex<Says>>,
    asked: Arc<AtomicUsize>,
    handle: ServerHandle,
}

impl Publisher {
    pub(super) fn start(says: Says) -> Self {
        let says = Arc::new(Mutex::new(says));
        let asked = Arc::new(AtomicUsize::new(0));
        let state = (says.clone(), asked.clone());
        let app = move || {
            App::new()
                .app_data(web::Data::new(state.clone()))
                .default_service(web::to(answer))
        };
        let server = HttpServer::new(app).workers(1).disable_signals();
        let server = server.bind(("127.0.0.1", 0)).unwrap();
        let url = format!("http://{}/keys", server.addrs()[0]);
        let server = server.run();
        let handle = server.handle();
        tokio::spawn(server);
        Self {
            url,
            says,
            asked,
            handle,
        }
    }

    pub(super) fn say(&self, says: Says) {
        *self.says.lock().unwrap() = says;
    }

    pub(super) fn publish(&self, signers: &[&Signer]) {
        self.say(Says::Keys(key_set(signers)));
    }

    pub(super) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// The issuer of the tests, whose keys are here.
    pub(super) fn config(&self) -> IssuerConfig {
        IssuerConfig {
            jwk_cert_url: self.url.clone(),
            ..config(ISSUER)
        }
    }

    /// Ends it: from now on connections are refused.
    pub(super) async fn stop(&self) {
        self.handle.stop(false).await;
    }
}

type State = (Arc<Mutex<Says>>, Arc<AtomicUsize>);

async fn answer(request: HttpRequest, state: web::Data<State>) -> HttpResponse {
    state.1.fetch_add(1, Ordering::SeqCst);
    let says = state.0.lock().unwrap().clone();
    let header = |name| {
        request
            .headers()
            .get(name)
            .map_or("", |h| h.to_str().unwrap())
    };
    match says {
        Says::KeysTo(token, _) if header("authorization") != format!("Bearer {token}") => {
            HttpResponse::Unauthorized().finish()
        }
        Says::KeysTo(..) if !header("accept").contains("application/jwk-set+json") => {
            HttpResponse::NotAcceptable().finish()
        }
        Says::KeysTo(_, text) => HttpResponse::Ok()
            .content_type("application/jwk-set+json")
            .body(text),
        Says::Keys(text) => HttpResponse::Ok()
            .content_type("application/json")
            .body(text),
        Says::Status(status, text) => {
            let status = actix_web::http::StatusCode::from_u16(status).unwrap();
            HttpResponse::build(status).body(text)
        }
        Says::Redirect(to) => HttpResponse::Found()
            .insert_header(("location", to))
            .finish(),
        Says::Nothing => std::future::pending().await,
        Says::Drops => HttpResponse::Ok().streaming(futures_util::stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            Some((Ok::<_, actix_web::Error>(web::Bytes::from_static(b" ")), ()))
        })),
    }
}
