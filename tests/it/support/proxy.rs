use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use sqlx::postgres::{PgConnectOptions, PgSslMode};
use tempfile::TempDir;
use tokio::io::{self, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::task::JoinHandle;

/// The code in place of a version when a client asks for TLS.
const SSL_REQUEST: u32 = 80_877_103;

/// Stands between the service and PostgreSQL: counts what is sent, and cuts the connection where
/// a test asks for it.
pub(crate) struct Proxy {
    folder: TempDir,
    state: Arc<Mutex<State>>,
    listening: JoinHandle<()>,
}

/// Messages of clients since the last reset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sent {
    /// Messages that the server answers before it takes the next: `Sync` and simple `Query`.
    pub(crate) round_trips: u32,
    /// Statements: `Execute` and simple `Query`. More of them than round trips are sent together.
    pub(crate) statements: u32,
    /// Simple `Query`: here, the statements that open and end transactions.
    pub(crate) simple: u32,
    /// Prepared statements: a measured request should have none.
    pub(crate) prepared: u32,
}

/// When a connection is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Before the server sees the message of the round trip with that number.
    Before(u32),
    /// After the server has it, and before the client sees the answer.
    After(u32),
    /// After the server has the next `COMMIT`, and before the client sees the answer. Later ones are answered.
    AfterCommit,
}

#[derive(Default)]
struct State {
    sent: Sent,
    cut: Option<Cut>,
    cuts: u32,
}

impl Proxy {
    /// Listens on a socket of its own and forwards everything to `target`.
    pub(crate) fn start(target: PgConnectOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = socket_in(folder.path(), target.get_port());
        let listener = UnixListener::bind(path).unwrap();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = state.clone();
        let listening = tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                tokio::spawn(pass_on(client, target.clone(), shared.clone()));
            }
        });
        Self {
            folder,
            state,
            listening,
        }
    }

    /// Options for connecting through it.
    pub(crate) fn options(&self, target: PgConnectOptions) -> PgConnectOptions {
        target
            .socket(self.folder.path())
            .ssl_mode(PgSslMode::Disable)
    }

    /// Forgets the counts, and cuts at `cut` from now on.
    pub(crate) fn reset(&self, cut: Option<Cut>) {
        let mut state = self.state.lock().unwrap();
        state.sent = Sent::default();
        state.cut = cut;
        state.cuts = 0;
    }

    pub(crate) fn sent(&self) -> Sent {
        self.state.lock().unwrap().sent
    }

    /// Number of connections cut since the last reset.
    pub(crate) fn cuts(&self) -> u32 {
        self.state.lock().unwrap().cuts
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

fn socket_in(folder: &Path, port: u16) -> PathBuf {
    folder.join(format!(".s.PGSQL.{port}"))
}

async fn pass_on(client: UnixStream, target: PgConnectOptions, state: Arc<Mutex<State>>) {
    // The end of one side ends both: their sockets are closed with this task.
    if let Some(folder) = target.get_socket() {
        let path = socket_in(folder, target.get_port());
        if let Ok(server) = UnixStream::connect(path).await {
            between(client, server.into_split(), &state).await;
        }
    } else if let Ok(server) = TcpStream::connect((target.get_host(), target.get_port())).await {
        between(client, server.into_split(), &state).await;
    }
}

async fn between(
    client: UnixStream,
    (mut answers, requests): (impl AsyncRead + Unpin, impl AsyncWrite + Unpin),
    state: &Mutex<State>,
) {
    let (from_client, mut to_client) = client.into_split();
    tokio::select! {
        biased;
        _ = count(from_client, requests, state) => {}
        _ = io::copy(&mut answers, &mut to_client) => {}
    }
}

/// Forwards messages of a client one by one, until it or the connection ends.
async fn count(
    mut client: impl AsyncRead + Unpin,
    mut server: impl AsyncWrite + Unpin,
    state: &Mutex<State>,
) -> io::Result<()> {
    // The first message of a connection has no type, nor has the request for TLS before it.
    loop {
        let body = message(&mut client, &mut Vec::new()).await?;
        server.write_all(&body).await?;
        if body.get(4..8) != Some(&SSL_REQUEST.to_be_bytes()) {
            break;
        }
    }
    loop {
        let kind = client.read_u8().await?;
        let body = message(&mut client, &mut vec![kind]).await?;
        let is_cut = state.lock().unwrap().count(&body);
        if is_cut == Some(Cut::Before(0)) {
            return Ok(());
        }
        server.write_all(&body).await?;
        if is_cut.is_some() {
            server.flush().await?;
            return Ok(());
        }
    }
}

/// Reads the length of a message, and the message; returns both, after `start`.
async fn message(
    client: &mut (impl AsyncRead + Unpin),
    start: &mut Vec<u8>,
) -> io::Result<Vec<u8>> {
    let length = client.read_u32().await?;
    let mut message = std::mem::take(start);
    message.extend(length.to_be_bytes());
    let head = message.len();
    message.resize(head + usize::try_from(length).unwrap() - 4, 0);
    client.read_exact(&mut message[head..]).await?;
    Ok(message)
}

impl State {
    /// Counts a message; returns whether and when the connection is cut because of it.
    fn count(&mut self, message: &[u8]) -> Option<Cut> {
        let kind = message[0];
        match kind {
            b'S' => self.sent.round_trips += 1,
            b'Q' => {
                self.sent.round_trips += 1;
                self.sent.statements += 1;
                self.sent.simple += 1;
            }
            b'E' => self.sent.statements += 1,
            b'P' => self.sent.prepared += 1,
            _ => {}
        }
        if !matches!(kind, b'S' | b'Q') {
            return None;
        }
        let cut = match self.cut? {
            Cut::Before(number) if number == self.sent.round_trips => Cut::Before(0),
            Cut::After(number) if number == self.sent.round_trips => Cut::After(0),
            // Behind the type and the length.
            Cut::AfterCommit if message[5..] == *b"COMMIT\0" => {
                self.cut = None;
                Cut::AfterCommit
            }
            Cut::Before(_) | Cut::After(_) | Cut::AfterCommit => return None,
        };
        self.cuts += 1;
        Some(cut)
    }
}
