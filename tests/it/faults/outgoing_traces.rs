//! What the real program tells other servers of its traces.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;

use rustix::process::Signal;
use tempfile::TempDir;

use super::program::Program;
use super::traces::{CLIENT, Collector, assert_says};
use crate::support::{TestDatabase, until};

/// An issuer that keeps the `traceparent` of each request, empty where there is none.
struct Issuer {
    address: String,
    told: Arc<Mutex<Vec<String>>>,
}

impl Issuer {
    fn start(keys: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/keys", listener.local_addr().unwrap());
        let told: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = Arc::clone(&told);
        // Ends with the test's process.
        thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let head = BufReader::new(&stream).lines().map_while(Result::ok);
                let head: Vec<_> = head.take_while(|line| !line.is_empty()).collect();
                let field = head
                    .iter()
                    .find_map(|line| line.strip_prefix("traceparent: "));
                kept.lock()
                    .unwrap()
                    .push(field.unwrap_or_default().to_owned());
                let length = keys.len();
                let answer = format!(
                    "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{keys}"
                );
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        Self { address, told }
    }

    /// What the first request told.
    async fn first(&self) -> String {
        until("the keys are fetched", async || {
            !self.told.lock().unwrap().is_empty()
        })
        .await;
        self.told.lock().unwrap()[0].clone()
    }
}

/// A program that fetches keys of this issuer, and the folder of its settings.
fn serve(
    database: &TestDatabase,
    issuer: &Issuer,
    variables: &[(&str, &str)],
) -> (Program, TempDir) {
    let address = &issuer.address;
    let configs = format!("[{{issuer_url: 'https://i.example', jwk_cert_url: '{address}'}}]");
    let settings = format!("server: {{jwt: {{configs: {configs}}}}}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.yaml");
    std::fs::write(&file, settings).unwrap();
    let url = database.url();
    let mut args = vec!["serve", "--config", file.to_str().unwrap()];
    args.extend(["--database-url", &url, "--server-host", "127.0.0.1"]);
    args.extend(["--server-port=0", "--health-port=0", "--metrics-port=0"]);
    (Program::start_with(&args, variables), folder)
}

/// A set with one key that nobody has.
fn keys() -> String {
    let x = "B".repeat(42) + "A";
    format!(r#"{{"keys": [{{"kty": "OKP", "crv": "Ed25519", "kid": "e", "x": "{x}"}}]}}"#)
}

#[tokio::test]
async fn a_fetch_of_keys_is_a_span_that_the_issuer_can_name() {
    let (collector, issuer) = (Collector::http(), Issuer::start(keys()));
    let database = TestDatabase::create().await;
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address.as_str()),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
    ];
    let (mut program, _folder) = serve(&database, &issuer, &variables);
    let told = issuer.first().await;
    until("the keys are taken", async || {
        program.output().contains("issuer keys replaced")
    })
    .await;
    program.signal(Signal::TERM);
    assert!(program.ended().await.success(), "{}", program.output());
    let spans = collector.spans();
    let fetches: Vec<_> = spans.iter().filter(|span| span.name == "GET").collect();
    let [fetch] = fetches[..] else {
        panic!("{spans:?}");
    };
    assert_eq!(told, format!("00-{}-{}-01", fetch.trace, fetch.id));
    assert_eq!((fetch.kind, fetch.parent.as_str()), (CLIENT, ""));
    let expected = [("server.address", "127.0.0.1"), ("url.path", "/keys")];
    assert_says(&fetch.attributes, &expected);
}

#[tokio::test]
async fn without_traces_requests_to_issuers_have_no_traceparent() {
    let issuer = Issuer::start(keys());
    let database = TestDatabase::create().await;
    let _running = serve(&database, &issuer, &[]);
    assert_eq!(issuer.first().await, "");
}
