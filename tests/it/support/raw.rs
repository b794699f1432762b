use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::{RawAnswer, TestApi, Then, send_raw_to};

impl TestApi {
    /// The server's address.
    pub(crate) fn address(&self) -> &str {
        let (_, rest) = self.base.split_once("//").unwrap();
        rest.split_once('/').unwrap().0
    }

    /// A connection over which these bytes were sent.
    pub(crate) async fn begin(&self, bytes: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address()).await.unwrap();
        stream.write_all(bytes.as_bytes()).await.unwrap();
        stream
    }

    /// Sends exactly these bytes and returns the answer until the server closes the connection; `None` without
    /// anything like an answer.
    pub(crate) async fn send_raw(&self, bytes: &[u8], then: Then) -> Option<RawAnswer> {
        send_raw_to(self.address(), bytes, then).await
    }

    /// Sends a request that closes the connection, with its path unchanged.
    pub(crate) async fn request_raw(
        &self,
        method: &str,
        path: &str,
        headers: &str,
        body: &[u8],
    ) -> Option<RawAnswer> {
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n"
        );
        let bytes = [head.as_bytes(), body].concat();
        self.send_raw(&bytes, Then::Wait).await
    }
}
