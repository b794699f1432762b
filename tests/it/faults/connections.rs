//! Clients that take their time, and more of them than there is room for.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::program::{CURRENT, Program};
use super::until;
use crate::support::{PATIENCE, RawAnswer, TestApi, TestDatabase, rest};

const GET: &str = "GET /api/hyperfleet HTTP/1.1\r\nHost: x\r\n\r\n";

/// A server with these settings of `server`.
async fn serve(server: &str) -> (Program, TestApi) {
    let settings = format!(
        "{{server: {server}, health: {{port: 0, shutdown_delay: 0s}}, metrics: {{port: 0}}}}"
    );
    let database = TestDatabase::create().await;
    let mut program = Program::serve_with(&database, &settings, &[]);
    let api = program.serving(database).await;
    (program, api)
}

/// Waits for the first bytes of an answer.
async fn answered(stream: &mut TcpStream) -> bool {
    let mut bytes = [0; 12];
    let read = stream.read_exact(&mut bytes).await;
    read.is_ok() && &bytes == b"HTTP/1.1 200"
}

#[tokio::test]
async fn missing_heads_are_cut_while_others_are_served() {
    let (_program, api) = serve("{timeouts: {read: 1s}}").await;
    let mut slow = Vec::new();
    for number in 0..100 {
        let part = number % GET.len();
        slow.push(api.begin(&GET[..part]).await);
    }
    assert_eq!(api.get("/clusters").await.status, 200);
    for stream in &mut slow {
        let said = rest(stream).await;
        let answer = RawAnswer::parse(&said);
        assert_eq!(answer.map(|answer| answer.status), Some(408), "{said:?}");
    }
    assert_eq!(api.get("/clusters").await.status, 200);
}

#[tokio::test]
async fn later_heads_and_unread_bodies_are_cut() {
    let (_program, api) = serve("{timeouts: {read: 1s, idle: 1s}}").await;
    let mut streams = vec![
        api.begin(GET).await,
        api.begin(&GET.replace("\r\n\r\n", "\r\nTransfer-Encoding: chunked\r\n\r\n"))
            .await,
    ];
    assert!(answered(&mut streams[0]).await);
    // A byte now and then, for as long as anybody takes it.
    let dribble = async |stream: &mut TcpStream| {
        loop {
            let wrote = stream.write_all(b"G").await;
            if wrote.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    for stream in &mut streams {
        timeout(PATIENCE, dribble(stream))
            .await
            .expect("it is closed");
    }
    assert_eq!(api.get("/clusters").await.status, 200);
}

#[tokio::test]
async fn connections_that_idle_are_closed_in_time() {
    let (_program, api) = serve("{timeouts: {idle: 1s}}").await;
    let mut kept = api.begin(GET).await;
    assert!(answered(&mut kept).await);
    rest(&mut kept).await;
}

#[tokio::test]
async fn beyond_the_limit_connections_wait_until_one_is_closed() {
    const MAX: usize = 8;
    let (_program, api) = serve("{limits: {max_connections: 8}, timeouts: {idle: 10m}}").await;
    let mut kept = Vec::new();
    for _ in 0..MAX {
        let mut stream = api.begin(GET).await;
        assert!(answered(&mut stream).await);
        kept.push(stream);
    }
    let mut waiting = api.begin(GET).await;
    let moment = timeout(Duration::from_millis(500), answered(&mut waiting)).await;
    assert!(moment.is_err(), "it is let in");
    drop(kept);
    assert!(timeout(PATIENCE, answered(&mut waiting)).await.unwrap());
}

/// The notice of a program that may open this many files, if it has one. It starts with fewer, which it raises.
async fn notice_of_open_files(limit: u32, variables: &[(&str, &str)]) -> Option<Value> {
    let script = format!("ulimit -Sn 512 && ulimit -Hn {limit} && exec \"$0\" \"$@\"");
    let args = [
        ["-c", &script],
        [CURRENT, "serve"],
        ["--database-url", "postgres://nobody@127.0.0.1:1/none"],
        ["--server-port=0", "--server-jwt-enabled=false"],
        ["--health-port=0", "--metrics-port=0"],
    ];
    let mut program = Program::start_of("sh".as_ref(), args.as_flattened(), variables);
    program.address("api").await;
    let said = program.output();
    let mut lines = said
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    lines.find(|line: &Value| line["open_files"].is_number())
}

#[tokio::test]
async fn a_low_limit_of_open_files_is_logged() {
    let set = [("HYPERFLEET_SERVER_LIMITS_MAX_CONNECTIONS", "10000")];
    for (limit, variables, is_noticed) in [
        (4096, &set[..], true),
        (4096, &[], false),
        (1024, &[], true),
    ] {
        let notice = notice_of_open_files(limit, variables).await;
        assert_eq!(
            notice.is_some(),
            is_noticed,
            "{limit} {variables:?}: {notice:?}"
        );
        let Some(notice) = notice else { continue };
        assert_eq!(notice["level"], "info", "{notice}");
        assert_eq!(notice["key"], "server.limits.max_connections", "{notice}");
        assert_eq!(notice["wanted"], 10_000, "{notice}");
        assert_eq!(notice["open_files"], limit, "{notice}");
        let connections = notice["connections"].as_u64().unwrap();
        assert!((1..limit.into()).contains(&connections), "{notice}");
        let message = notice["message"].as_str().unwrap();
        assert!(message.contains("ulimit -Hn"), "{notice}");
    }
}

/// Whether the server's end of a connection is still there.
fn is_open(server: u16, client: u16) -> bool {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let ends = format!("0100007F:{server:04X} 0100007F:{client:04X}");
    table.contains(&ends)
}

#[tokio::test]
async fn a_client_that_stops_reading_its_answer_loses_its_connection() {
    let (_program, api) = serve("{timeouts: {write: 1s}}").await;
    // More than all buffers on the way hold.
    let text = "x".repeat(900_000);
    for number in 0..16 {
        let body =
            json!({"kind": "Cluster", "name": format!("large-{number}"), "spec": {"text": text}});
        assert_eq!(api.post("/clusters", body).await.status, 201);
    }
    let request = "GET /api/hyperfleet/v1/clusters HTTP/1.1\r\nHost: x\r\n\r\n";
    let mut stalled = api.begin(request).await;
    assert!(answered(&mut stalled).await);
    let port = |address: std::net::SocketAddr| address.port();
    let ends = (
        port(stalled.peer_addr().unwrap()),
        port(stalled.local_addr().unwrap()),
    );
    assert!(is_open(ends.0, ends.1));
    until("the connection is given up", async || {
        !is_open(ends.0, ends.1)
    })
    .await;
    assert_eq!(api.get("/clusters?size=1").await.status, 200);
}
