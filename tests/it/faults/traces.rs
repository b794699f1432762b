//! Traces of the real program, as a collector gets them.

use std::collections::BTreeMap;
use std::io::{Read, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use rustix::process::Signal;
use serde_json::json;

use super::program::Program;
use crate::support::{TestApi, TestDatabase, until};

/// A collector that keeps what it is sent, by HTTP or without answering.
#[derive(Clone)]
pub(super) struct Collector {
    pub(super) address: String,
    pub(super) received: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Collector {
    /// Takes spans by HTTP.
    pub(super) fn http() -> Self {
        Self::listen(|mut stream, received| {
            while let Some(body) = request(&mut stream) {
                received.lock().unwrap().push(body);
                let answer = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                stream.write_all(answer.as_bytes()).unwrap();
            }
        })
    }

    /// Listens, and says nothing.
    pub(super) fn silent() -> Self {
        Self::listen(|mut stream, received| {
            let mut part = [0; 4096];
            while let Ok(count @ 1..) = stream.read(&mut part) {
                received.lock().unwrap().push(part[..count].to_vec());
            }
        })
    }

    pub(super) fn listen(
        serve: impl Fn(TcpStream, &Mutex<Vec<Vec<u8>>>) + Clone + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let collector = Self {
            address: format!("http://{}", listener.local_addr().unwrap()),
            received: Arc::default(),
        };
        let received = Arc::clone(&collector.received);
        // Ends with the test's process.
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (received, serve) = (Arc::clone(&received), serve.clone());
                thread::spawn(move || serve(stream, &received));
            }
        });
        collector
    }

    /// Variables of a program that sends its spans here, by HTTP.
    fn variables(&self) -> [(&str, &str); 2] {
        [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &self.address),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
        ]
    }

    pub(super) fn spans(&self) -> Vec<Span> {
        let received = self.received.lock().unwrap();
        received.iter().flat_map(|body| spans(body)).collect()
    }
}

/// The body of one request; none when the connection ends.
pub(super) fn request(stream: &mut impl Read) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    assert!(head.starts_with("post /v1/traces "), "{head}");
    assert!(
        head.contains("content-type: application/x-protobuf"),
        "{head}"
    );
    let (_, length) = head.split_once("content-length: ").unwrap();
    let length = length.split("\r\n").next().unwrap().parse().unwrap();
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some(body)
}

/// One span, with the resource that it is of.
#[derive(Debug, Clone, Default)]
pub(super) struct Span {
    pub(super) trace: String,
    pub(super) id: String,
    pub(super) parent: String,
    pub(super) name: String,
    pub(super) kind: u64,
    pub(super) attributes: BTreeMap<String, String>,
    resource: BTreeMap<String, String>,
    status: u64,
}

/// The fields of a message: number, and either a number or bytes.
fn fields(mut message: &[u8]) -> Vec<(u64, u64, &[u8])> {
    let mut fields = Vec::new();
    let number = |message: &mut &[u8]| {
        let (mut value, mut shift) = (0_u64, 0);
        loop {
            let byte = message[0];
            *message = &message[1..];
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return value;
            }
        }
    };
    while !message.is_empty() {
        let key = number(&mut message);
        let (value, length) = match key & 7 {
            0 => (number(&mut message), 0),
            1 => (0, 8),
            2 => (0, usize::try_from(number(&mut message)).unwrap()),
            5 => (0, 4),
            other => panic!("no such type of field: {other}"),
        };
        fields.push((key >> 3, value, &message[..length]));
        message = &message[length..];
    }
    fields
}

fn inner(message: &[u8], number: u64) -> impl Iterator<Item = &[u8]> {
    let all = fields(message).into_iter();
    all.filter(move |field| field.0 == number)
        .map(|field| field.2)
}

fn attributes(message: &[u8], number: u64) -> BTreeMap<String, String> {
    let pairs = inner(message, number).map(|pair| {
        let key = text(inner(pair, 1).next().unwrap());
        let value = fields(inner(pair, 2).next().unwrap());
        let (of, number, bytes) = value[0];
        let value = if of == 1 {
            text(bytes)
        } else {
            number.to_string()
        };
        (key, value)
    });
    pairs.collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits
        .filter_map(|d| char::from_digit(d.into(), 16))
        .collect()
}

/// The spans of one `ExportTraceServiceRequest`.
fn spans(body: &[u8]) -> Vec<Span> {
    let mut spans = Vec::new();
    for of_resource in inner(body, 1) {
        let resource = inner(of_resource, 1).next().map(|r| attributes(r, 1));
        for scope in inner(of_resource, 2) {
            for span in inner(scope, 2) {
                let mut read = Span {
                    attributes: attributes(span, 9),
                    resource: resource.clone().unwrap_or_default(),
                    ..Span::default()
                };
                for (number, value, bytes) in fields(span) {
                    match number {
                        1 => read.trace = hex(bytes),
                        2 => read.id = hex(bytes),
                        4 => read.parent = hex(bytes),
                        5 => read.name = text(bytes),
                        6 => read.kind = value,
                        15 => {
                            let code = fields(bytes).into_iter().find(|f| f.0 == 3);
                            read.status = code.map_or(0, |f| f.1);
                        }
                        _ => {}
                    }
                }
                spans.push(read);
            }
        }
    }
    spans
}

fn serve(database: &TestDatabase, variables: &[(&str, &str)]) -> Program {
    Program::serve_by_flags(database, &[], variables)
}

/// The kinds of spans in the protocol.
const SERVER: u64 = 2;
pub(super) const CLIENT: u64 = 3;
const FAILED: u64 = 2;

async fn report(api: &TestApi, cluster: &str, traceparent: &str) {
    let conditions = ["Available", "Applied", "Health"];
    let conditions = conditions.map(|kind| json!({"type": kind, "status": "True"}));
    let body = json!({"adapter": "dns", "observed_generation": 1, "conditions": conditions});
    let request = api.client.put(format!("{}{cluster}/statuses", api.base));
    let request = request
        .header("traceparent", traceparent)
        .body(body.to_string());
    let answer = request
        .header("x-request-id", "traced")
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 201);
}

pub(super) fn assert_says(attributes: &BTreeMap<String, String>, expected: &[(&str, &str)]) {
    for (name, value) in expected {
        let said = attributes.get(*name).map(String::as_str);
        assert_eq!(said, Some(*value), "{name}: {attributes:?}");
    }
}

#[tokio::test]
async fn a_request_is_one_span_with_one_below_it_for_each_statement() {
    let collector = Collector::http();
    let database = TestDatabase::create().await;
    let [endpoint, protocol] = collector.variables();
    let variables = [
        endpoint,
        protocol,
        ("OTEL_SERVICE_NAME", "by-the-standard"),
        ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test"),
    ];
    let mut program = serve(&database, &variables);
    let api = program.serving(database).await;
    let cluster = api.cluster("abc").await;
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let parent = "00f067aa0ba902b7";
    report(&api, &cluster, &format!("00-{trace}-{parent}-01")).await;
    assert_eq!(api.get(&cluster).await.status, 200);
    let mut connection = api.database.connect().await;
    let broken = sqlx::raw_sql("ALTER TABLE audit_entries RENAME TO lost");
    broken.execute(&mut connection).await.unwrap();
    assert_eq!(api.get("/audit").await.status, 500);
    // The last spans are sent when it ends.
    program.signal(Signal::TERM);
    assert!(program.ended().await.success(), "{}", program.output());

    let spans = collector.spans();
    let named = |name: &str| {
        let mut found = spans.iter().filter(|s| s.name == name);
        let span = found
            .next()
            .unwrap_or_else(|| panic!("no {name} in {spans:#?}"));
        assert_eq!(found.next().map(|s| &s.id), None, "{name} twice");
        span
    };
    let below = |parent: &Span| {
        let below: Vec<_> = spans.iter().filter(|s| s.parent == parent.id).collect();
        assert!(
            below
                .iter()
                .all(|s| s.trace == parent.trace && s.kind == CLIENT)
        );
        below.iter().map(|s| s.name.clone()).collect::<Vec<_>>()
    };
    let put = named("PUT /api/hyperfleet/v1/clusters/{id}/statuses");
    assert_eq!((put.trace.as_str(), put.parent.as_str()), (trace, parent));
    assert_eq!((put.kind, put.status), (SERVER, 0));
    let expected = [
        ("http.request.method", "PUT"),
        ("http.route", "/api/hyperfleet/v1/clusters/{id}/statuses"),
        ("http.response.status_code", "201"),
        ("url.path", &format!("/api/hyperfleet/v1{cluster}/statuses")),
        ("url.scheme", "http"),
        ("client.address", "127.0.0.1"),
    ];
    assert_says(&put.attributes, &expected);
    let expected = [
        ("service.name", "by-the-standard"),
        ("service.version", env!("CARGO_PKG_VERSION")),
        ("deployment.environment", "test"),
    ];
    assert_says(&put.resource, &expected);
    assert_eq!(below(put), ["SELECT resources", "UPDATE adapter_reports"]);
    let save = spans
        .iter()
        .find(|s| s.name == "UPDATE adapter_reports")
        .unwrap();
    let sql = &save.attributes["db.query.text"];
    assert!(
        sql.contains("INSERT INTO adapter_reports") && sql.contains("$1"),
        "{sql}"
    );
    let expected = [
        ("db.system", "postgresql"),
        ("db.operation.name", "UPDATE"),
        ("db.collection.name", "adapter_reports"),
    ];
    assert_says(&save.attributes, &expected);
    let get = named("GET /api/hyperfleet/v1/clusters/{id}");
    assert_eq!(below(get), ["SELECT resources"]);
    assert_eq!(get.parent, "");
    let failed = named("GET /api/hyperfleet/v1/audit");
    assert_eq!(failed.status, FAILED);
    assert_eq!(failed.attributes["error.type"], "500");
    let statement = spans.iter().find(|s| s.parent == failed.id).unwrap();
    assert_eq!(statement.status, FAILED);
    assert_eq!(statement.attributes["error.type"], "other");
    let line = format!(
        "\"request_id\":\"traced\",\"trace_id\":\"{trace}\",\"span_id\":\"{}\"",
        put.id
    );
    assert!(
        program.output().contains(&line),
        "no {line} in {}",
        program.output()
    );
}

#[tokio::test]
async fn each_of_many_reads_shows_the_statement_that_answered_it() {
    let collector = Collector::http();
    let database = TestDatabase::create().await;
    let mut program = serve(&database, &collector.variables());
    let api = program.serving(database).await;
    let cluster = api.cluster("abc").await;
    let reads = (0..200).map(|_| api.get(&cluster));
    for answer in futures_util::future::join_all(reads).await {
        assert_eq!(answer.status, 200);
    }
    program.signal(Signal::TERM);
    assert!(program.ended().await.success(), "{}", program.output());
    let spans = collector.spans();
    let name = "GET /api/hyperfleet/v1/clusters/{id}";
    let reads: Vec<_> = spans.iter().filter(|s| s.name == name).collect();
    assert_eq!(reads.len(), 200);
    let lines = program.output().matches("\"message\":\"answered\"").count();
    assert_eq!(lines, 201, "no line is lost either");
    for read in reads {
        let below = spans.iter().filter(|s| s.parent == read.id);
        let below: Vec<_> = below.map(|s| (s.name.as_str(), &s.trace)).collect();
        assert_eq!(below, [("SELECT resources", &read.trace)]);
    }
}

#[tokio::test]
async fn a_collector_that_is_not_there_costs_requests_nothing() {
    let database = TestDatabase::create().await;
    let variables = [("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:1")];
    let mut program = serve(&database, &variables);
    let api = program.serving(database).await;
    for number in 0..50 {
        api.cluster(&format!("cluster-{number}")).await;
    }
    program.signal(Signal::TERM);
    assert!(program.ended().await.success(), "{}", program.output());
    let said = program.output();
    assert_eq!(said.matches("spans lost").count(), 1, "{said}");
    assert_eq!(said.matches("\"level\":\"error\"").count(), 0, "{said}");
}

#[tokio::test]
async fn a_silent_collector_does_not_delay_the_exit() {
    let collector = Collector::silent();
    let database = TestDatabase::create().await;
    // By gRPC, unless another protocol is asked for.
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address.as_str()),
        ("HYPERFLEET_HEALTH_SHUTDOWN_DELAY", "0s"),
    ];
    let mut program = serve(&database, &variables);
    let api = program.serving(database).await;
    api.cluster("abc").await;
    let metrics = program.address("metrics").await;
    let since = std::time::Instant::now();
    program.signal(Signal::TERM);
    until("metrics end", async || {
        TcpStream::connect(&metrics).is_err()
    })
    .await;
    // Beside the last spans, which are given four seconds, not after them.
    assert!(since.elapsed().as_secs() < 3, "{:?}", since.elapsed());
    assert!(program.ended().await.success(), "{}", program.output());
    assert!(since.elapsed().as_secs() < 30, "{:?}", since.elapsed());
    let received = collector.received.lock().unwrap().concat();
    assert!(received.starts_with(b"PRI * HTTP/2.0"), "it is gRPC");
}

#[tokio::test]
async fn only_requests_begin_traces() {
    let collector = Collector::http();
    let database = TestDatabase::create().await;
    let mut program = serve(&database, &collector.variables());
    let (health, metrics) = (
        program.address("health").await,
        program.address("metrics").await,
    );
    // By then the schema was checked.
    let api = program.serving(database).await;
    api.cluster("abc").await;
    assert_eq!(api.get("/clusters").await.status, 200);
    for url in [
        format!("http://{health}/healthz"),
        format!("http://{health}/readyz"),
        format!("http://{metrics}/metrics"),
    ] {
        let answer = api.client.get(&url).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{url}");
    }
    until("the background has sealed the creation", async || {
        api.count("SELECT count(*) FROM audit_passes").await > 0
    })
    .await;
    program.signal(Signal::TERM);
    assert!(program.ended().await.success(), "{}", program.output());
    let spans = collector.spans();
    let roots = spans.iter().filter(|s| s.parent.is_empty());
    let mut roots: Vec<_> = roots.map(|s| s.name.as_str()).collect();
    roots.sort_unstable();
    let requests = [
        "GET /api/hyperfleet/v1/clusters",
        "POST /api/hyperfleet/v1/clusters",
    ];
    assert_eq!(roots, requests);
}

#[tokio::test]
async fn a_migration_sends_its_last_spans() {
    let database = TestDatabase::create().await;
    let collector = Collector::http();
    let url = database.url();
    let args = ["migrate", "status", "--database-url", &url];
    let mut program = Program::start_with(&args, &collector.variables());
    assert!(program.ended().await.success(), "{}", program.output());
    let spans = collector.spans();
    let (roots, below): (Vec<_>, Vec<_>) = spans.iter().partition(|s| s.parent.is_empty());
    let names: Vec<_> = roots.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["migrate"], "{}", program.output());
    assert!(!below.is_empty(), "no statement came: {}", program.output());
}

#[tokio::test]
async fn without_a_collector_nothing_is_sent_and_nothing_is_printed() {
    let database = TestDatabase::create().await;
    let collector = Collector::http();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.yaml");
    std::fs::write(&file, "tracing: {enabled: false}").unwrap();
    let [named, protocol] = collector.variables();
    let switched_off = ("HYPERFLEET_CONFIG", file.to_str().unwrap());
    for variables in [&[protocol][..], &[protocol, named, switched_off][..]] {
        let database = TestDatabase::at(database.options());
        let mut program = serve(&database, variables);
        let api = program.serving(database).await;
        assert_eq!(api.get("/clusters").await.status, 200);
        program.signal(Signal::TERM);
        assert!(program.ended().await.success(), "{}", program.output());
        let said = program.output();
        assert!(
            !said.contains("trace_id") && !said.contains("SELECT"),
            "{said}"
        );
    }
    assert!(collector.spans().is_empty());
}
