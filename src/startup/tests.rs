//! Panics in a running program. The tests start their own program once more as a child, because a panic hook applies
//! to the entire process.

use std::io::{BufRead as _, BufReader, Lines, Read as _};
use std::net::TcpListener;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use chrono::DateTime;
use serde_json::Value;

use super::{database, process, telemetry};
use crate::config::{Database, Format, Output, Settings};
use hyperfleet_auth::Authentication;
use hyperfleet_domain::tenancy::TenancyRules;
use hyperfleet_server_kit::clock::Clock;
use hyperfleet_server_kit::http::{Admission, Gate, Limits, Redaction};
use hyperfleet_server_kit::server::ConnectionOptions;
use hyperfleet_service::app::Service;
use hyperfleet_service::http::ApiState;
use hyperfleet_testkit::http_client;

/// What must not be seen.
const SECRET: &str = "hunter2";
/// What the child is to do.
const PART: &str = "HYPERFLEET_TEST_PART";
const CHILD: &str = "startup::tests::child";

/// A clock of which the second reading panics: a request's first is for its frame, the second for
/// its handler.
fn clock() -> Clock {
    let readings = AtomicUsize::new(0);
    Clock::new(move || {
        let reading = readings.fetch_add(1, Ordering::Relaxed);
        assert!(reading != 1, "no time for {SECRET}");
        DateTime::UNIX_EPOCH
    })
}

/// The API as it is served, without a database.
fn api() -> ApiState {
    let database = Database {
        url: Some("postgres://nobody@127.0.0.1:1/none".to_owned().into()),
        ..Settings::default().database
    };
    let store = database::store(&database).unwrap();
    let registry = Settings::default().kinds().unwrap().registry;
    ApiState {
        service: Service::new(store, Arc::new(registry), false),
        clock: clock(),
        build: super::BUILD,
        authentication: Authentication::Off,
        admission: Admission::new(Gate::serving(), &Limits::default()),
        redaction: Redaction::default(),
        tenancy: TenancyRules::default(),
        quiet_client: None,
        fleet: None,
    }
}

#[tokio::test]
#[ignore = "the other tests start it, in a process of its own"]
async fn child() {
    let Ok(part) = std::env::var(PART) else {
        return;
    };
    let mut settings = Settings::default();
    settings.logging.output = Output::Stderr;
    if part == "text" {
        settings.logging.format = Format::Text;
    }
    let _telemetry = telemetry::start(&settings).unwrap();
    if part == "abort" {
        for number in 0..1000 {
            tracing::info!(number, "before");
        }
        let _ = std::thread::spawn(|| panic!("on purpose")).join();
        std::process::abort();
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let options = ConnectionOptions {
        workers: 1,
        ..ConnectionOptions::new(&settings.server.timeouts, 1024, None)
    };
    let server = process::bind(listener, &api(), &options).unwrap();
    tracing::info!(%address, "serving");
    server.start();
    // Until it is dropped.
    let wanted = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    wanted.await.unwrap().unwrap();
}

/// A child that runs, and its log.
struct Running(Child, Lines<BufReader<ChildStderr>>);

impl Running {
    fn start(part: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", CHILD, "--ignored", "--nocapture"]);
        command.env(PART, part).env_remove("RUST_LOG");
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let log = BufReader::new(child.stderr.take().unwrap()).lines();
        Self(child, log)
    }

    /// Its address, in the line that says so.
    fn address(&mut self) -> String {
        let line = self.1.next().unwrap().unwrap();
        let (_, rest) = line
            .split_once("127.0.0.1:")
            .unwrap_or_else(|| panic!("{line}"));
        let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
        format!("127.0.0.1:{port}")
    }

    /// Everything else that it says until its end.
    fn rest(mut self) -> Vec<String> {
        drop(self.0.stdin.take());
        let rest = self.1.by_ref().map(Result::unwrap).collect();
        self.0.wait().unwrap();
        rest
    }
}

/// Lets a handler of a child panic; gives what the log says after its start.
async fn panicked(part: &str) -> Vec<String> {
    let mut child = Running::start(part);
    let base = format!("http://{}/api/hyperfleet", child.address());
    let client = http_client();
    let body = format!(r#"{{"kind": "Cluster", "name": "{SECRET}", "spec": {{}}}}"#);
    let request = client.post(format!("{base}/v1/clusters")).body(body);
    let answer = request.header("x-request-id", "unlucky").send().await;
    let answer = answer.unwrap();
    assert_eq!(answer.status(), 500);
    assert_eq!(answer.headers()["content-type"], "application/problem+json");
    assert!(!answer.text().await.unwrap().contains(SECRET));
    // Over the same connection, by the same thread.
    let answer = client.get(base).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    // The last line comes after its answer.
    let mut lines: Vec<_> = child.1.by_ref().take(3).map(Result::unwrap).collect();
    lines.extend(child.rest());
    lines
}

#[tokio::test]
async fn a_panic_is_one_line_with_its_place_and_its_request_and_the_service_goes_on() {
    let lines = panicked("json").await;
    assert!(
        lines.iter().all(|line| !line.contains(SECRET)),
        "{lines:#?}"
    );
    let lines: Vec<Value> = lines
        .iter()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    let messages: Vec<_> = lines
        .iter()
        .map(|l| l["message"].as_str().unwrap())
        .collect();
    assert_eq!(messages, ["panic: this is a defect", "failed", "answered"]);
    let panic = &lines[0];
    assert_eq!(panic["level"], "error");
    assert_eq!(panic["request_id"], "unlucky");
    let location = panic["location"].as_str().unwrap();
    assert!(location.contains("startup/tests.rs:"), "{panic}");
    assert!(panic.get("cause").is_none(), "{panic}");
    assert_eq!(lines[1]["status_code"], 500);
    assert_eq!(lines[1]["request_id"], "unlucky");
}

#[tokio::test]
async fn a_panic_is_one_line_in_a_log_for_people_too() {
    let lines = panicked("text").await;
    assert_eq!(lines.len(), 3, "{lines:#?}");
    let panic = &lines[0];
    assert!(
        panic.contains(" ERROR panic: this is a defect location="),
        "{panic}"
    );
    assert!(panic.contains("startup/tests.rs:"), "{panic}");
    assert!(panic.ends_with(" request_id=unlucky"), "{panic}");
    assert!(
        lines.iter().all(|line| !line.contains(SECRET)),
        "{lines:#?}"
    );
}

#[test]
fn nothing_is_lost_by_a_panic_that_ends_the_process() {
    let lines = Running::start("abort").rest();
    let lines: Vec<Value> = lines
        .iter()
        .filter_map(|l| serde_json::from_str(l).ok())
        .collect();
    let before = lines.iter().filter(|line| line["message"] == "before");
    assert_eq!(before.count(), 1000);
    let last = lines.last().unwrap();
    assert_eq!(last["message"], "panic: this is a defect");
    assert_eq!(last["cause"], "on purpose", "it stands in the source");
}
