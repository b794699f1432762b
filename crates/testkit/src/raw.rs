use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::PATIENCE;

/// What came back over a bare connection.
#[derive(Debug)]
pub struct RawAnswer {
    pub status: u16,
    /// Status line and headers, as they came.
    pub head: String,
    /// `null` when the body is no JSON.
    pub body: Value,
}

/// What becomes of our half of a connection once the request is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// It stays open.
    Wait,
    /// It is closed: nothing more will come.
    Finish,
}

/// Sends exactly these bytes to a server and gives what comes back until it closes the connection; `None` if nothing
/// that looks like an answer does.
pub async fn send_raw_to(address: &str, bytes: &[u8], then: Then) -> Option<RawAnswer> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let (mut reader, mut writer) = stream.split();
    let mut received = Vec::new();
    let write = async {
        // The server may refuse the rest; what it said before counts.
        let _ = writer.write_all(bytes).await;
        if then == Then::Finish {
            let _ = writer.shutdown().await;
        }
    };
    // A connection that is reset keeps what came before.
    let read = reader.read_to_end(&mut received);
    let both = async { tokio::join!(write, read) };
    let _ = timeout(PATIENCE, both).await.expect("an answer in time");
    RawAnswer::parse(&received)
}

/// Everything that comes until the server closes the connection.
pub async fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let read = timeout(PATIENCE, stream.read_to_end(&mut bytes)).await;
    // A connection that is reset keeps what came before.
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
