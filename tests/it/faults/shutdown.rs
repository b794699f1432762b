//! What becomes of requests that have begun when the service is to stop, and of a second signal.

use rustix::process::Signal;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::hold_resources;
use super::program::Program;
use super::traces::Collector;
use super::until;
use crate::support::{Problem as _, RawAnswer, TestApi, TestDatabase, http_client, rest, sum};

/// A program that stops without a delay, with these times for heads and bodies.
async fn serve(read: &str, drain: &str) -> (Program, TestApi) {
    let settings = format!(
        "{{server: {{timeouts: {{read: {read}, idle: 10m}}}}, metrics: {{port: 0}}, \
           health: {{port: 0, shutdown_delay: 0s, shutdown_timeout: {drain}}}}}"
    );
    let database = TestDatabase::create().await;
    let mut program = Program::serve_with(&database, &settings, &[]);
    let api = program.serving(database).await;
    (program, api)
}

/// Waits until that number of requests is in progress.
async fn until_under_way(program: &mut Program, count: f64) {
    let url = format!("http://{}/metrics", program.address("metrics").await);
    until("requests are in progress", async || {
        let scraped = http_client().get(&url).send().await.unwrap();
        let text = scraped.text().await.unwrap();
        sum(&text, "hyperfleet_api_requests_in_flight", &[]) >= count
    })
    .await;
}

/// Tells the program to end, and waits until nobody gets in any more.
async fn stop_gracefully(program: &Program, api: &TestApi) {
    program.signal(Signal::TERM);
    until("connections are refused", async || {
        TcpStream::connect(api.address()).await.is_err()
    })
    .await;
}

fn head(headers: &str) -> String {
    format!("POST /api/hyperfleet/v1/clusters HTTP/1.1\r\nHost: x\r\n{headers}\r\n")
}

fn body(name: &str) -> String {
    json!({"kind": "Cluster", "name": name, "spec": {}}).to_string()
}

#[tokio::test]
async fn a_request_whose_head_is_there_may_send_its_body_to_the_end() {
    let (mut program, api) = serve("10m", "2m").await;
    let (long, chunked, late) = (body("long"), body("chunked"), body("late"));
    let with_length = head(&format!("Content-Length: {}\r\n", long.len()));
    let in_chunks = head("Transfer-Encoding: chunked\r\n");
    let expecting = format!("Expect: 100-continue\r\nContent-Length: {}\r\n", late.len());
    let mut streams = [
        api.begin(&format!("{with_length}{}", &long[..10])).await,
        api.begin(&format!("{in_chunks}a\r\n{}\r\n", &chunked[..10]))
            .await,
        api.begin(&head(&expecting)).await,
    ];
    until_under_way(&mut program, 3.0).await;
    stop_gracefully(&program, &api).await;
    let rests = [
        long[10..].to_owned(),
        format!(
            "{:x}\r\n{}\r\n0\r\n\r\n",
            chunked.len() - 10,
            &chunked[10..]
        ),
        late,
    ];
    for (stream, bytes) in streams.iter_mut().zip(rests) {
        stream.write_all(bytes.as_bytes()).await.unwrap();
        let said = rest(stream).await;
        let last = said.strip_prefix(b"HTTP/1.1 100 Continue\r\n\r\n");
        let answer = RawAnswer::parse(last.unwrap_or(&said));
        let answer = answer.expect("an answer");
        assert_eq!(answer.status, 201, "{}", answer.body);
        assert_eq!(answer.header("connection"), Some("close"));
    }
    assert_eq!(
        program.ended().await.code(),
        Some(0),
        "{}",
        program.output()
    );
    assert_eq!(api.count("SELECT count(*) FROM resources").await, 3);
}

/// Otherwise its watch would end at once, and its client would come back at once until the port is closed.
#[tokio::test]
async fn a_new_watch_of_a_stopping_service_gets_retry_after() {
    let settings = "{health: {port: 0, shutdown_delay: 2m}, metrics: {port: 0}}";
    let database = TestDatabase::create().await;
    let mut program = Program::serve_with(&database, settings, &[]);
    let api = program.serving(database).await;
    let get = async |path: &str| {
        let url = format!("http://{}/api/hyperfleet/v1{path}", api.address());
        http_client().get(url).send().await.unwrap()
    };
    program.signal(Signal::TERM);
    until("it is stopping", async || {
        let listed = get("/clusters").await;
        assert_eq!(listed.status(), 200);
        listed.headers().get("connection").is_some()
    })
    .await;
    let refused = get("/clusters?watch=true").await;
    assert_eq!(refused.status(), 503);
    assert_eq!(refused.headers()["retry-after"], "5");
}

#[tokio::test]
async fn a_body_that_does_not_come_keeps_nobody_from_ending() {
    let (mut program, api) = serve("2s", "2m").await;
    let mut stream = api.begin(&head("Content-Length: 100\r\n")).await;
    until_under_way(&mut program, 1.0).await;
    stop_gracefully(&program, &api).await;
    let answer = RawAnswer::parse(&rest(&mut stream).await).expect("an answer");
    assert_eq!((answer.status, answer.code()), (408, "LMT-003"));
    assert_eq!(
        program.ended().await.code(),
        Some(0),
        "{}",
        program.output()
    );
}

#[tokio::test]
async fn half_a_head_gets_no_answer_and_has_no_effect() {
    let (mut program, api) = serve("10m", "2m").await;
    let half = head(&format!("Content-Length: {}", body("half").len()));
    let mut new = api.begin(half.trim_end()).await;
    let mut kept = api
        .begin("GET /api/hyperfleet HTTP/1.1\r\nHost: x\r\n\r\n")
        .await;
    let mut start = [0; 12];
    kept.read_exact(&mut start).await.unwrap();
    assert_eq!(&start, b"HTTP/1.1 200");
    kept.write_all(half.trim_end().as_bytes()).await.unwrap();
    stop_gracefully(&program, &api).await;
    assert!(rest(&mut new).await.is_empty());
    let said = rest(&mut kept).await;
    assert!(said.ends_with(b"}"), "{}", String::from_utf8_lossy(&said));
    assert_eq!(
        program.ended().await.code(),
        Some(0),
        "{}",
        program.output()
    );
    assert_eq!(api.count("SELECT count(*) FROM resources").await, 0);
}

#[tokio::test]
async fn a_request_behind_one_that_is_under_way_is_not_begun() {
    let (mut program, api) = serve("10m", "2m").await;
    let cluster = api.cluster("held").await;
    let mut holder = hold_resources(&api.database).await;
    let first = format!("DELETE /api/hyperfleet/v1{cluster} HTTP/1.1\r\nHost: x\r\n\r\n");
    let second = body("behind");
    let headers = format!("Content-Length: {}\r\n", second.len());
    let mut stream = api
        .begin(&format!("{first}{}{second}", head(&headers)))
        .await;
    until_under_way(&mut program, 1.0).await;
    stop_gracefully(&program, &api).await;
    let release = sqlx::raw_sql("COMMIT").execute(&mut holder).await;
    release.unwrap();
    let said = rest(&mut stream).await;
    let said = String::from_utf8_lossy(&said);
    assert!(said.starts_with("HTTP/1.1 202"), "{said}");
    assert_eq!(said.matches("HTTP/1.1").count(), 1, "{said}");
    assert_eq!(
        program.ended().await.code(),
        Some(0),
        "{}",
        program.output()
    );
    assert_eq!(api.count("SELECT count(*) FROM resources").await, 1);
}

#[tokio::test]
async fn a_second_signal_ends_it_at_once_even_when_all_is_answered() {
    // The last phase waits for a collector that takes nothing.
    let collector = Collector::silent();
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address.as_str()),
        ("HYPERFLEET_HEALTH_SHUTDOWN_DELAY", "0s"),
    ];
    let database = TestDatabase::create().await;
    let mut program = Program::serve_by_flags(&database, &[], &variables);
    let api = program.serving(database).await;
    api.cluster("abc").await;
    program.signal(Signal::TERM);
    until("all requests are completed", async || {
        program.output().contains("all requests completed")
    })
    .await;
    program.signal(Signal::TERM);
    // Once the last spans are given up it would end by itself, with 0.
    assert_eq!(
        program.ended().await.code(),
        Some(1),
        "{}",
        program.output()
    );
}

#[tokio::test]
async fn a_second_signal_ends_a_stopping_start_immediately() {
    let collector = Collector::silent();
    let variables = [("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address.as_str())];
    let database = TestDatabase::create_empty().await;
    let mut program = Program::serve_by_flags(&database, &[], &variables);
    let api = program.address("api").await;
    // A span, for the collector to be waited for.
    let url = format!("http://{api}/api/hyperfleet/v1/clusters");
    let early = http_client().get(url).send().await.unwrap();
    assert_eq!(early.status(), 503);
    program.signal(Signal::TERM);
    until("it is to stop", async || {
        program.output().contains("stopped while starting")
    })
    .await;
    program.signal(Signal::TERM);
    // Once the last spans are given up it would end by itself, with 0.
    assert_eq!(
        program.ended().await.code(),
        Some(1),
        "{}",
        program.output()
    );
}
