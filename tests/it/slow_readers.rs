//! What is held in memory for clients: answers that are not taken, bodies that are not yet there.

use std::sync::Arc;
use std::time::Duration;

use hyperfleet_server_kit::http::{Admission, Gate, Limits};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{Instant, sleep, timeout};

use crate::support::{PATIENCE, Problem as _, Random, RawAnswer, TestApi, until};

const MIB: usize = 1024 * 1024;
/// More than the kernel takes of an answer that is not read, and than is held for all.
const CLUSTERS: usize = 60;
const LETTERS: usize = 200_000;

async fn spawn(buffered_bytes_max: usize) -> Arc<TestApi> {
    let limits = Limits {
        buffered_bytes_max,
        ..Limits::default()
    };
    let admission = Admission::new(Gate::serving(), &limits);
    Arc::new(TestApi::spawn_admitted(&admission).await)
}

/// With clusters whose list has about 12 MB, half as much compressed.
async fn spawn_with_a_large_list() -> Arc<TestApi> {
    let api = spawn(16 * MIB).await;
    let mut random = Random::seeded(1);
    for number in 0..CLUSTERS {
        let text: Vec<_> = (0..LETTERS / 16)
            .map(|_| format!("{:016x}", random.next()))
            .collect();
        let text = text.concat();
        let new = json!({"kind": "Cluster", "name": format!("c-{number}"), "spec": {"text": text}});
        assert_eq!(api.post("/clusters", new).await.status, 201);
    }
    let listed = api.get("/clusters?size=60").await;
    assert_eq!(listed.status, 200);
    assert_eq!(
        listed.body["items"].as_array().map(Vec::len),
        Some(CLUSTERS)
    );
    api
}

fn head(headers: &str) -> String {
    format!("GET /api/hyperfleet/v1/clusters?size=60 HTTP/1.1\r\nHost: x\r\n{headers}\r\n")
}

/// A client that asks for the list, and of which the kernel takes as little as can be.
async fn reader(api: &TestApi, headers: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket
        .connect(api.address().parse().unwrap())
        .await
        .unwrap();
    stream.write_all(head(headers).as_bytes()).await.unwrap();
    stream
}

/// Opens readers that read nothing until a list is refused.
async fn until_full(api: &TestApi, headers: &str) -> Vec<TcpStream> {
    let mut readers = Vec::new();
    for _ in 0..10 {
        let mut reader = reader(api, headers).await;
        let mut head = [0; 12];
        reader.read_exact(&mut head).await.unwrap();
        // Another one may have been refused in favour of a client that has left by now.
        if head == *b"HTTP/1.1 200" {
            readers.push(reader);
        }
        let answer = api.get("/clusters?size=60").await;
        if answer.status != 200 {
            assert_eq!((answer.status, answer.code()), (503, "SVC-001"));
            assert_eq!(answer.header("retry-after"), Some("1"));
            return readers;
        }
    }
    panic!("ten readers of 12 MB were let in where 16 MiB are held at most");
}

#[tokio::test]
async fn unread_answers_block_only_large_ones() {
    let api = spawn_with_a_large_list().await;
    let small = api.cluster("small").await;
    let large = api.get("/clusters?search=name%3D%27c-1%27").await;
    let large = format!(
        "/clusters/{}",
        large.body["items"][0]["id"].as_str().unwrap()
    );
    let readers = until_full(&api, "").await;
    assert_eq!(api.get(&small).await.status, 200);
    let labels = json!({"labels": {"a": "b"}});
    assert_eq!(api.patch(&small, labels.clone()).await.status, 200);
    api.cluster("another").await;
    // A change is acknowledged, however large the answer is.
    let patched = api.patch(&large, labels).await;
    assert_eq!(patched.status, 200);
    assert_eq!(patched.body["labels"], json!({"a": "b"}));
    drop(readers);
    until("there is room again", async || {
        api.get("/clusters?size=60").await.status == 200
    })
    .await;
}

#[tokio::test]
async fn clients_with_unread_answers_are_cut_off_for_memory() {
    let api = spawn_with_a_large_list().await;
    for headers in ["", "Accept-Encoding: gzip\r\n"] {
        let mut readers = until_full(&api, headers).await;
        assert!(!readers.is_empty());
        let began = Instant::now();
        until("there is room again", async || {
            api.get("/clusters?size=60").await.status == 200
        })
        .await;
        // The time to take a piece at 128 kbit/s, and five seconds more.
        assert!(began.elapsed() > Duration::from_secs(2), "{headers}");
        let mut bytes = Vec::new();
        let first = &mut readers[0];
        let read = timeout(PATIENCE, first.read_to_end(&mut bytes)).await;
        // Either way the connection has ended, and the response is incomplete.
        let _ = read.expect("its connection is closed");
        assert!(bytes.len() < 5 * MIB, "{} bytes were taken", bytes.len());
    }
}

#[tokio::test]
async fn clients_that_go_on_reading_get_all_of_it() {
    let api = spawn_with_a_large_list().await;
    let mut slow = TcpStream::connect(api.address()).await.unwrap();
    let head = head("Connection: close\r\n");
    slow.write_all(head.as_bytes()).await.unwrap();
    let mut bytes = vec![0; 1024];
    let read = slow.read(&mut bytes).await.unwrap();
    bytes.truncate(read);
    let _readers = until_full(&api, "").await;
    let began = Instant::now();
    // Longer than the time limit of clients that read nothing.
    while began.elapsed() < Duration::from_secs(14) {
        let mut piece = vec![0; 16 * 1024];
        let read = slow.read(&mut piece).await.unwrap();
        assert!(read > 0, "cut off after {} bytes", bytes.len());
        bytes.extend_from_slice(&piece[..read]);
        sleep(Duration::from_millis(50)).await;
    }
    timeout(PATIENCE, slow.read_to_end(&mut bytes))
        .await
        .unwrap()
        .unwrap();
    let answer = RawAnswer::parse(&bytes).unwrap();
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.body["items"].as_array().map(Vec::len),
        Some(CLUSTERS)
    );
}

fn large_cluster(name: &str) -> String {
    json!({"kind": "Cluster", "name": name, "spec": {"text": "x".repeat(LETTERS)}}).to_string()
}

#[tokio::test]
async fn incomplete_bodies_block_only_large_ones() {
    let api = spawn(300_000).await;
    let mut begun = Vec::new();
    for number in 0..2 {
        let text = "x".repeat(120_000);
        let body =
            json!({"kind": "Cluster", "name": format!("slow-{number}"), "spec": {"text": text}});
        let body = body.to_string();
        let length = body.len();
        let head = format!(
            "POST /api/hyperfleet/v1/clusters HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
        );
        let mut stream = TcpStream::connect(api.address()).await.unwrap();
        let (now, later) = body.split_at(100_000);
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(now.as_bytes()).await.unwrap();
        begun.push((stream, later.to_owned()));
    }
    let mut number = 0;
    until("they hold all there is", async || {
        number += 1;
        let large = serde_json::from_str(&large_cluster(&format!("large-{number}")));
        let answer = api.post("/clusters", large.unwrap()).await;
        if answer.status == 201 {
            return false;
        }
        assert_eq!(answer.problem(), (503, "SVC-001"));
        true
    })
    .await;
    api.cluster("small").await;
    for (mut stream, later) in begun {
        stream.write_all(later.as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        timeout(PATIENCE, stream.read_to_end(&mut bytes))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(RawAnswer::parse(&bytes).unwrap().status, 201);
    }
    until("there is room again", async || {
        let large = serde_json::from_str(&large_cluster("at-last"));
        api.post("/clusters", large.unwrap()).await.status == 201
    })
    .await;
}

#[tokio::test]
async fn a_client_that_keeps_sending_on_a_closing_connection_is_cut() {
    let api = spawn(MIB).await;
    let request = "GET /api/hyperfleet HTTP/1.1\r\nHost: x\r\n\r\n";
    let answers = TcpStream::connect(api.address()).await.unwrap();
    let (mut reader, mut writer) = answers.into_split();
    let all = request.repeat(3000);
    let write = tokio::spawn(async move {
        // It may be closed before the last one is sent.
        let _ = writer.write_all(all.as_bytes()).await;
        writer
    });
    let mut bytes = Vec::new();
    let read = timeout(PATIENCE, reader.read_to_end(&mut bytes)).await;
    // A connection that is reset keeps what came before.
    let _ = read.expect("the connection is closed");
    drop(write.await);
    let said = String::from_utf8_lossy(&bytes);
    let count = said.matches("HTTP/1.1 200 OK").count();
    assert!(said.matches("connection: close").count() > 0);
    assert!(count <= 2000, "{count}");
}
