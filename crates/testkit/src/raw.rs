use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::PATIENCE;

/// A response over a bare connection.
#[derive(Debug)]
pub struct RawAnswer {
    pub status: u16,
    /// Status line and headers, unparsed.
    pub head: String,
    /// `null` when the body is not JSON.
    pub body: Value,
}

/// The client's half of the connection after the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// It stays open.
    Wait,
    /// It is closed.
    Finish,
}

/// Sends exactly these bytes to a server and returns its response until it closes the connection; `None`
/// without a response.
pub async fn send_raw_to(address: &str, bytes: &[u8], then: Then) -> Option<RawAnswer> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let (mut reader, mut writer) = stream.split();
    let mut received = Vec::new();
    let write = async {
        // The server may refuse the rest; its earlier output counts.
        let _ = writer.write_all(bytes).await;
        if then == Then::Finish {
            let _ = writer.shutdown().await;
        }
    };
    // A reset connection keeps what was received.
    let read = reader.read_to_end(&mut received);
    let both = async { tokio::join!(write, read) };
    let _ = timeout(PATIENCE, both).await.expect("an answer in time");
    RawAnswer::parse(&received)
}

/// Everything until the server closes the connection.
pub async fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let read = timeout(PATIENCE, stream.read_to_end(&mut bytes)).await;
    // A reset connection keeps what was received.
    let _ = read.expect("the connection is closed");
    bytes
}

impl RawAnswer {
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let status = head.split(' ').nth(1)?.parse().ok()?;
        let body = serde_json::from_slice(&bytes[end + 4..]).unwrap_or(Value::Null);
        Some(Self { status, head, body })
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let found = lines.find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value)
    }
}
