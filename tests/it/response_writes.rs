//! How many writes a response takes. Each further one may wait for the client's acknowledgement of the first, which
//! clients delay; and costs both sides a system call.

use std::process::Command;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::{PATIENCE, TestApi};

/// What Go's `net/http` sends, as most clients of the service do.
const GO: &str = "User-Agent: Go-http-client/1.1\r\nAccept-Encoding: gzip\r\n";

/// How many segments with data the server has sent over a connection. A write of up to 64 KiB is one segment on the
/// loopback interface.
fn segments_sent(connection: &TcpStream) -> usize {
    let server = connection.peer_addr().unwrap().port();
    let client = connection.local_addr().unwrap().port();
    let filter = format!("sport = :{server} and dport = :{client}");
    let printed = Command::new("ss").args(["-tinH", &filter]).output();
    let printed = printed.expect("ss of iproute2, which `make setup-all` installs");
    let printed = String::from_utf8(printed.stdout).unwrap();
    let count = printed
        .split_whitespace()
        .find_map(|word| word.strip_prefix("data_segs_out:"));
    count.map_or(0, |count| count.parse().unwrap())
}

/// Reads one response with a `Content-Length`; that of HEAD ends with its head.
async fn response(connection: &mut TcpStream, is_head: bool) -> String {
    let mut received = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let text = String::from_utf8_lossy(&received).to_ascii_lowercase();
        if let Some((head, _)) = text.split_once("\r\n\r\n") {
            let length = head
                .split("\r\n")
                .find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.expect("a length").parse().unwrap();
            if is_head || received.len() >= head.len() + 4 + length {
                return head.to_owned();
            }
        }
        let read = timeout(PATIENCE, connection.read(&mut buffer)).await;
        let read = read.expect("a response in time").unwrap();
        assert!(read > 0, "the connection is closed after {text:?}");
        received.extend_from_slice(&buffer[..read]);
    }
}

/// A cluster as large as they are in real use, and its path.
async fn large_cluster(api: &TestApi) -> String {
    let cluster = api.cluster("large").await;
    for adapter in ["dns", "hypershift", "placement", "validation"] {
        assert_eq!(api.report(&cluster, adapter, 1, &[]).await.status, 201);
    }
    cluster
}

fn request(method: &str, path: &str, version: &str, headers: &str, body: &Value) -> String {
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let length = body.len();
    format!(
        "{method} {path} {version}\r\nHost: x\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    )
}

#[tokio::test]
async fn a_response_of_up_to_64_kib_is_one_write() {
    let api = TestApi::spawn().await;
    let root = "/api/hyperfleet/v1";
    let cluster = format!("{root}{}", large_cluster(&api).await);
    for number in 0..40 {
        api.cluster(&format!("c-{number}")).await;
    }
    let list = format!("{root}/clusters?size=50");
    let new =
        |name: &str| json!({"kind": "Cluster", "name": name, "spec": {"a": "x".repeat(2000)}});
    let change = json!({"spec": {"a": "y".repeat(3000)}});
    let chunk = format!("{:x}\r\n{change}\r\n0\r\n\r\n", change.to_string().len());
    let chunked = format!(
        "PATCH {cluster} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n{GO}\r\n{chunk}"
    );
    let keep_alive = format!("Connection: keep-alive\r\n{GO}");
    let get = |path: &str, headers: &str| request("GET", path, "HTTP/1.1", headers, &Value::Null);
    let mut connection = TcpStream::connect(api.address()).await.unwrap();
    for (name, bytes, encoding) in [
        ("plain", get(&cluster, ""), None),
        ("one", get(&cluster, GO), Some("gzip")),
        ("list", get(&list, GO), Some("gzip")),
        ("plain list", get(&list, ""), None),
        (
            "reports",
            get(&format!("{cluster}/statuses"), GO),
            Some("gzip"),
        ),
        (
            "head",
            request("HEAD", &cluster, "HTTP/1.1", GO, &Value::Null),
            Some("gzip"),
        ),
        (
            "create",
            request(
                "POST",
                &format!("{root}/clusters"),
                "HTTP/1.1",
                GO,
                &new("new-one"),
            ),
            Some("gzip"),
        ),
        ("change", chunked, Some("gzip")),
        (
            "HTTP/1.0",
            request("GET", &list, "HTTP/1.0", &keep_alive, &Value::Null),
            Some("gzip"),
        ),
        ("problem", get(&format!("{root}/clusters/none"), GO), None),
        ("again", get(&list, GO), Some("gzip")),
    ] {
        let before = segments_sent(&connection);
        connection.write_all(bytes.as_bytes()).await.unwrap();
        let head = response(&mut connection, name == "head").await;
        let packed = head
            .lines()
            .find_map(|line| line.strip_prefix("content-encoding: "));
        assert_eq!(packed, encoding, "{name}: {head}");
        assert_eq!(segments_sent(&connection) - before, 1, "{name}: {head}");
    }
}
