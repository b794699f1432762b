//! A server that answers what a test says: for routes and failures that a real one does not have, or not on request.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// A request that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    /// `GET /fleet/v1/units?a=b`, without the prefix of the API.
    pub(crate) line: String,
    pub(crate) body: String,
}

/// What it is answered.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    Json(u16, Value),
    /// A status, headers and a text.
    Text(u16, Vec<(&'static str, String)>, String),
    /// Nothing, and the connection stays open.
    Stall,
    /// A beginning and nothing more, and the connection stays open.
    Begun(String),
    /// A beginning, and then a text again and again, with this time between.
    Steady(String, Duration, String),
}

impl Reply {
    pub(crate) fn empty(status: u16) -> Self {
        Self::Text(status, Vec::new(), String::new())
    }

    pub(crate) fn error(status: u16, message: &str) -> Self {
        let error = serde_json::json!({"error": {"code": status, "message": message}});
        Self::Json(status, error)
    }
}

/// Answers the requests of one test.
pub(crate) struct Stub {
    pub(crate) address: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Stub {
    pub(crate) async fn spawn(answer: impl FnMut(&str) -> Reply + Send + 'static) -> Self {
        Self::serve(answer, None).await
    }

    pub(crate) async fn with_tls(
        tls: TlsAcceptor,
        answer: impl FnMut(&str) -> Reply + Send + 'static,
    ) -> Self {
        Self::serve(answer, Some(tls)).await
    }

    async fn serve(
        mut answer: impl FnMut(&str) -> Reply + Send + 'static,
        tls: Option<TlsAcceptor>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let requests: Arc<Mutex<Vec<Request>>> = Arc::default();
        let kept = requests.clone();
        tokio::spawn(async move {
            let mut stalled = Vec::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let mut stream: Box<dyn Stream> = match &tls {
                    None => Box::new(stream),
                    // A client that does not trust it hangs up.
                    Some(tls) => match tls.accept(stream).await {
                        Ok(stream) => Box::new(stream),
                        Err(_) => continue,
                    },
                };
                let Some(request) = read(&mut stream).await else {
                    continue;
                };
                let reply = answer(&request.line);
                kept.lock().unwrap().push(request);
                let _ = stream.write_all(text(&reply).as_bytes()).await;
                if let Reply::Stall | Reply::Begun(_) = reply {
                    stalled.push(stream);
                    continue;
                }
                if let Reply::Steady(_, time, again) = reply {
                    tokio::spawn(async move {
                        while stream.write_all(again.as_bytes()).await.is_ok() {
                            tokio::time::sleep(time).await;
                        }
                    });
                    continue;
                }
                let _ = stream.shutdown().await;
            }
        });
        Self { address, requests }
    }

    pub(crate) fn base(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far that are no GET.
    pub(crate) fn changes(&self) -> Vec<(String, String)> {
        let requests = self.requests.lock().unwrap();
        let changes = requests
            .iter()
            .filter(|request| !request.line.starts_with("GET"));
        changes
            .map(|request| (request.line.clone(), request.body.clone()))
            .collect()
    }

    /// The first lines of the requests so far.
    pub(crate) fn lines(&self) -> Vec<String> {
        let requests = self.requests.lock().unwrap();
        requests
            .iter()
            .map(|request| request.line.clone())
            .collect()
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Option<Request> {
    let mut bytes = Vec::new();
    loop {
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer).await.ok()?;
        if count == 0 {
            return None;
        }
        bytes.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.lines().find_map(|line| {
            line.to_lowercase()
                .strip_prefix("content-length: ")?
                .parse()
                .ok()
        });
        if body.len() < length.unwrap_or(0) {
            continue;
        }
        let (method, rest) = head.split_once(' ')?;
        let path = rest.split(' ').next()?;
        let path = path.strip_prefix("/fleet/v1").unwrap_or(path);
        return Some(Request {
            line: format!("{method} {path}"),
            body: body.to_owned(),
        });
    }
}

fn text(reply: &Reply) -> String {
    let (status, headers, body) = match reply {
        Reply::Json(status, body) => {
            let headers = vec![("Content-Type", "application/json".to_owned())];
            (*status, headers, body.to_string())
        }
        Reply::Text(status, headers, body) => (*status, headers.clone(), body.clone()),
        Reply::Stall => return String::new(),
        Reply::Begun(begin) | Reply::Steady(begin, ..) => {
            return format!("HTTP/1.1 200 X\r\nConnection: close\r\n\r\n{begin}");
        }
    };
    let mut text = format!("HTTP/1.1 {status} X\r\nConnection: close\r\n");
    for (name, value) in headers {
        let _ = write!(text, "{name}: {value}\r\n");
    }
    if status != 204 {
        let _ = write!(text, "Content-Length: {}\r\n", body.len());
    }
    text + "\r\n" + &body
}
