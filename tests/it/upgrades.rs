//! Clients that want to speak something else: they are answered in HTTP/1.1, and nobody waits for
//! what they may send next.

use std::time::Duration;

use hyperfleet_server_kit::http::{Admission, Gate, Limits};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::{PATIENCE, Problem as _, RawAnswer, TestApi, Then};

const BASE: &str = "/api/hyperfleet/v1";

const WISHES: [&str; 5] = [
    "Connection: Upgrade\r\n",
    "Upgrade: websocket\r\n",
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n",
    "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n",
    "Connection: keep-alive, Upgrade\r\nUpgrade: TLS/1.3, websocket\r\n",
];

fn head(method: &str, path: &str, headers: &str) -> String {
    format!("{method} {BASE}{path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n")
}

/// What comes until the connection is closed.
async fn asked(api: &TestApi, request: &str) -> RawAnswer {
    let answer = api.send_raw(request.as_bytes(), Then::Wait).await;
    answer.expect("an answer")
}

/// Checks that HTTP/1.1 announces the end of the connection.
#[track_caller]
fn assert_ends(answer: &RawAnswer, what: &str) {
    assert_eq!(answer.header("connection"), Some("close"), "{what}");
    assert_eq!(answer.header("upgrade"), None, "{what}");
}

/// With more time for bodies than a test has: waiting for one fails the test.
async fn patient() -> TestApi {
    let limits = Limits {
        body_time: 2 * PATIENCE,
        ..Limits::default()
    };
    TestApi::spawn_admitted(&Admission::new(Gate::serving(), &limits)).await
}

/// With next to none.
async fn hasty() -> TestApi {
    let limits = Limits {
        body_time: Duration::from_millis(300),
        ..Limits::default()
    };
    TestApi::spawn_admitted(&Admission::new(Gate::serving(), &limits)).await
}

#[tokio::test]
async fn a_request_without_a_length_has_no_body() {
    let api = patient().await;
    for wish in WISHES {
        let answer = asked(&api, &head("POST", "/clusters", wish)).await;
        assert_eq!((answer.status, answer.code()), (400, "VAL-006"), "{wish}");
        assert_eq!(
            answer.body["detail"],
            "Request body is required but was empty"
        );
        assert_ends(&answer, wish);
        let answer = asked(&api, &head("GET", "/clusters", wish)).await;
        assert_eq!((answer.status, &answer.body["total"]), (200, &json!(0)));
        assert_ends(&answer, wish);
        let answer = asked(&api, &head("DELETE", "/clusters/nobody", wish)).await;
        assert_eq!((answer.status, answer.code()), (404, "NTF-001"), "{wish}");
        assert_ends(&answer, wish);
    }
}

#[tokio::test]
async fn a_body_with_a_length_is_read_to_its_end_and_nothing_after_it() {
    let api = patient().await;
    for (number, wish) in WISHES.iter().enumerate() {
        let name = format!("wish-{number}");
        let body = json!({"kind": "Cluster", "name": name, "spec": {}}).to_string();
        let headers = format!("{wish}Content-Length: {}\r\n", body.len());
        // After one of these the other protocol would come.
        let next = if wish.contains("Upgrade: websocket") {
            head("DELETE", "/clusters/nobody", "")
        } else {
            String::new()
        };
        let request = format!("{}{body}{next}", head("POST", "/clusters", &headers));
        let answer = asked(&api, &request).await;
        assert_eq!((answer.status, &answer.body["name"]), (201, &json!(name)));
        assert_ends(&answer, wish);
    }
    // One that is no option of the connection changes nothing about where such a body ends.
    let wishes = WISHES.iter().filter(|wish| wish.contains("Connection"));
    for (number, wish) in wishes.enumerate() {
        let name = format!("chunk-{number}");
        let body = json!({"kind": "Cluster", "name": name, "spec": {}}).to_string();
        let headers = format!("{wish}Transfer-Encoding: chunked\r\n");
        let head = head("POST", "/clusters", &headers);
        let request = format!("{head}{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
        let answer = asked(&api, &request).await;
        assert_eq!((answer.status, &answer.body["name"]), (201, &json!(name)));
    }
    let made = 2 * WISHES.len() - 1;
    assert_eq!(api.get("/clusters").await.body["total"], made);
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for_either() {
    let api = hasty().await;
    for wish in WISHES {
        for framing in ["Content-Length: 100\r\n", "Transfer-Encoding: chunked\r\n"] {
            let request = head("POST", "/clusters", &format!("{wish}{framing}"));
            let answer = asked(&api, &request).await;
            assert_eq!((answer.status, answer.code()), (408, "LMT-003"), "{wish}");
            assert_ends(&answer, wish);
        }
    }
    let large = head(
        "POST",
        "/clusters",
        "Upgrade: websocket\r\nContent-Length: 1048577\r\n",
    );
    let answer = asked(&api, &large).await;
    assert_eq!((answer.status, answer.code()), (413, "LMT-002"));
}

#[tokio::test]
async fn clients_with_expect_continue_get_100_immediately() {
    let api = hasty().await;
    let expect = "Expect: 100-continue\r\nContent-Length: 100\r\n";
    let mut stream = TcpStream::connect(api.address()).await.unwrap();
    let request = head("POST", "/clusters", expect);
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut said = Vec::new();
    let read = timeout(PATIENCE, stream.read_to_end(&mut said)).await;
    read.expect("the connection is closed").unwrap();
    let rest = said.strip_prefix(b"HTTP/1.1 100 Continue\r\n\r\n");
    let answer = RawAnswer::parse(rest.expect("it may go on")).unwrap();
    assert_eq!((answer.status, answer.code()), (408, "LMT-003"));
    assert_ends(&answer, "100-continue");
}

#[tokio::test]
async fn a_tunnel_is_not_to_be_had() {
    let api = patient().await;
    for (request, status) in [
        (
            "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n".to_owned(),
            404,
        ),
        (head("CONNECT", "/clusters", ""), 405),
        (
            head(
                "CONNECT",
                "/clusters",
                "Connection: keep-alive\r\nUpgrade: h2c\r\n",
            ),
            405,
        ),
    ] {
        // What is sent through it goes nowhere.
        let through = format!("{request}{}", head("DELETE", "/clusters/nobody", ""));
        let answer = asked(&api, &through).await;
        assert_eq!(answer.status, status, "{request}");
        assert_ends(&answer, &request);
    }
    // HTTP/2 by prior knowledge, in a word that is made to fail in HTTP/1.1.
    let answer = asked(&api, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    assert_eq!(answer.status, 400);
    assert_eq!(api.get("/clusters").await.status, 200);
}
