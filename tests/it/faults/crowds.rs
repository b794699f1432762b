//! Many idle connections: health and metrics still answer.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::program::Program;
use super::until;
use crate::support::{PATIENCE, TestDatabase, http_client};

/// How long orchestrators may have to wait: less than idle connections are kept, so that it is not
/// their end that lets the question in.
const SOON: Duration = Duration::from_secs(3);

/// Connections that ask once, are answered, and stay.
async fn idle_connections(address: &str, path: &str, count: usize) -> Vec<TcpStream> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
    let mut streams = Vec::new();
    for _ in 0..count {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut start = [0; 12];
        stream.read_exact(&mut start).await.unwrap();
        assert_eq!(&start, b"HTTP/1.1 200");
        streams.push(stream);
    }
    streams
}

/// Connections that say nothing.
async fn silent(address: &str, count: usize) -> Vec<TcpStream> {
    let mut streams = Vec::new();
    for _ in 0..count {
        streams.push(TcpStream::connect(address).await.unwrap());
    }
    streams
}

/// That this is answered soon, over a connection of its own.
async fn assert_answers(address: &str, path: &str) {
    let asked = http_client().get(format!("http://{address}{path}")).send();
    let answer = timeout(SOON, asked).await;
    let answer = answer.unwrap_or_else(|_| panic!("{path} is not answered"));
    assert_eq!(answer.unwrap().status().as_u16(), 200, "{path}");
}

#[tokio::test]
async fn health_and_metrics_answer_while_the_api_is_full() {
    let settings = "{server: {limits: {max_connections: 8}, timeouts: {idle: 10m}}, \
                     health: {port: 0, shutdown_delay: 0s}, metrics: {port: 0}}";
    let database = TestDatabase::create().await;
    let mut program = Program::serve_with(&database, settings, &[]);
    let health = program.address("health").await;
    let metrics = program.address("metrics").await;
    let api = program.serving(database).await;
    let idle = idle_connections(api.address(), "/api/hyperfleet", 8).await;
    let crowd = silent(api.address(), 100).await;
    let outside = http_client().get(format!("http://{}/api/hyperfleet", api.address()));
    let outside = tokio::spawn(outside.send());
    for _ in 0..3 {
        assert_answers(&health, "/healthz").await;
        assert_answers(&health, "/readyz").await;
        assert_answers(&metrics, "/metrics").await;
    }
    assert!(!outside.is_finished(), "there is still room in the API");
    drop((idle, crowd));
    let answered = timeout(PATIENCE, outside).await.expect("room again");
    assert_eq!(answered.unwrap().unwrap().status().as_u16(), 200);
}

#[tokio::test]
async fn health_and_metrics_answer_among_idle_connections() {
    let database = TestDatabase::create().await;
    let mut program = Program::serve(&database);
    let health = program.address("health").await;
    let metrics = program.address("metrics").await;
    let _api = program.serving(database).await;
    until("it is ready", async || {
        let asked = http_client().get(format!("http://{health}/readyz"));
        asked.send().await.unwrap().status().as_u16() == 200
    })
    .await;
    for (address, paths) in [
        (&health, &["/healthz", "/readyz"][..]),
        (&metrics, &["/metrics"]),
    ] {
        let crowd = silent(address, 400).await;
        let idle = idle_connections(address, paths[0], 100).await;
        for path in paths {
            assert_answers(address, path).await;
        }
        drop((crowd, idle));
    }
}
