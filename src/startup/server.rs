//! The API on a listener.

use std::any::Any;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use actix_tls::accept::rustls_0_23::TlsStream;
use actix_web::HttpServer;
use actix_web::dev::ServerHandle;
use actix_web::rt::net::{TcpStream, UnixStream};
use anyhow::anyhow;
use rustix::net::sockopt;
use rustls::ServerConfig;
use tokio::task::JoinHandle;

use crate::http::{self, Api, Document};

/// How long actix waits for requests under way once it is told to stop, in seconds: longer than
/// anybody waits for it, because who stops the server limits that (`startup/shutdown`).
pub(super) const DRAIN_SECONDS_MAX: u64 = 24 * 3600;

/// What the kernel holds of an answer that its client does not take, for each connection (accepted
/// sockets inherit it; Linux doubles it for its own needs). Left alone, it grows to megabytes that
/// nobody counts, and hides for long whether a client goes on reading. Enough for 5 MB/s at a
/// distance of 100 ms.
pub(super) const SEND_BYTES: usize = 256 * 1024;

/// A socket that clients connect to.
#[derive(Debug)]
pub(super) enum Listener {
    Tcp(TcpListener),
    /// Of the file system; TLS is never spoken there.
    Unix(UnixListener),
}

/// How a listener treats its clients.
#[derive(Clone)]
pub struct Options {
    /// Threads that answer.
    pub workers: usize,
    /// Connections at a time, over all threads; more wait to be accepted.
    pub connections_max: usize,
    /// How long the head of a connection's first request may take; a TLS handshake, too.
    pub head_time: Duration,
    /// How long a connection is kept for the next request.
    pub idle_time: Duration,
    /// TLS, if it is spoken here.
    pub tls: Option<ServerConfig>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            workers: 1,
            connections_max: 1024,
            head_time: Duration::from_secs(5),
            idle_time: Duration::from_secs(75),
            tls: None,
        }
    }
}

/// Makes a server of an application, on listeners. A macro, because actix has no name for the
/// types of its applications.
macro_rules! serve_on {
    ($app:expr, $listeners:expr, $options:expr, $on_connect:expr) => {{
        use $crate::startup::server::Listener;
        let options: &Options = $options;
        let connections = (options.connections_max / options.workers).max(1);
        let mut server = HttpServer::new($app)
            .workers(options.workers)
            .max_connections(connections)
            // Handshakes are limited by nothing else: those that hang must not keep others out.
            .max_connection_rate(connections)
            .client_request_timeout(options.head_time)
            .tls_handshake_timeout(options.head_time)
            .keep_alive(options.idle_time)
            .shutdown_timeout($crate::startup::server::DRAIN_SECONDS_MAX)
            // A client that goes away ends its request: nobody waits for the answer, and its
            // connection to the database is for others (decision H9).
            .h1_allow_half_closed(false)
            .disable_signals()
            .on_connect($on_connect);
        for listener in $listeners {
            server = match (listener, &options.tls) {
                (Listener::Tcp(socket), Some(config)) => {
                    server.listen_rustls_0_23(socket, config.clone())?
                }
                (Listener::Tcp(socket), None) => server.listen(socket)?,
                (Listener::Unix(socket), _) => server.listen_uds(socket)?,
            };
        }
        io::Result::Ok(server.run())
    }};
}
pub(super) use serve_on;

/// How many connections are open.
#[derive(Debug, Clone, Default)]
pub struct Connections(Arc<AtomicUsize>);

/// One of them, until it is dropped.
pub(super) struct Joined(Connections);

impl Connections {
    /// How many there are.
    #[must_use]
    pub fn open(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// One more, until what this gives is dropped.
    pub(super) fn join(&self) -> Joined {
        self.0.fetch_add(1, Ordering::Relaxed);
        Joined(self.clone())
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A second handle on the socket of a connection, below TLS if that is spoken. `None` where the
/// process has no descriptor left: there the times of actix itself are all there is.
pub(super) fn socket(io: &dyn Any) -> Option<OwnedFd> {
    if let Some(stream) = io.downcast_ref::<UnixStream>() {
        return stream.as_fd().try_clone_to_owned().ok();
    }
    let below_tls = io.downcast_ref::<TlsStream<TcpStream>>();
    let below_tls = below_tls.map(|stream| stream.get_ref().0);
    let socket = below_tls.or_else(|| io.downcast_ref::<TcpStream>())?;
    socket.as_fd().try_clone_to_owned().ok()
}

/// A server while it answers.
pub(super) struct Serving {
    pub(super) handle: ServerHandle,
    pub(super) connections: Connections,
    task: JoinHandle<io::Result<()>>,
}

impl Serving {
    /// Answers from now on.
    pub(super) fn start(running: actix_web::dev::Server, connections: Connections) -> Self {
        Self {
            handle: running.handle(),
            connections,
            task: tokio::spawn(running),
        }
    }

    /// Waits until it ends by itself, which it should not.
    pub(super) async fn failed(&mut self) -> anyhow::Error {
        match (&mut self.task).await {
            Ok(Err(error)) => anyhow!("the API's listener failed: {error}"),
            Ok(Ok(())) | Err(_) => anyhow!("the API's listener ended"),
        }
    }
}

/// A server that listens but does not yet answer.
pub struct Server {
    /// Where it listens: the real port even where port 0 was asked for.
    pub address: SocketAddr,
    running: actix_web::dev::Server,
    connections: Connections,
}

impl Server {
    /// Binds the API to a listener.
    pub fn bind(listener: TcpListener, api: &Api, options: &Options) -> io::Result<Self> {
        let address = listener.local_addr()?;
        sockopt::set_socket_send_buffer_size(&listener, SEND_BYTES)?;
        let api = api.clone();
        let memory = api.admission.budget().clone();
        let document = http::openapi(api.service.registry(), api.build.version);
        let document = Document::new(&document);
        let workers = options.workers;
        // Runs once per thread.
        let app = move || {
            let service = api.service.share(workers);
            let api = Api {
                service,
                ..api.clone()
            };
            http::app(api, document.clone())
        };
        let connections = Connections::default();
        let counted = connections.clone();
        let idle_time = options.idle_time.saturating_add(options.head_time);
        let listeners = [Listener::Tcp(listener)];
        let server = serve_on!(app, listeners, options, move |io, data| {
            let guard = counted.join();
            http::Connection::open(data, socket(io), idle_time, Some(&memory), guard);
        })?;
        Ok(Self {
            address,
            running: server,
            connections,
        })
    }

    /// Stops it from elsewhere.
    #[must_use]
    pub fn handle(&self) -> ServerHandle {
        self.running.handle()
    }

    /// The connections of its clients.
    #[must_use]
    pub fn connections(&self) -> Connections {
        self.connections.clone()
    }

    /// Answers from now on.
    pub(super) fn start(self) -> Serving {
        Serving::start(self.running, self.connections)
    }

    /// Answers until stopped.
    pub async fn run(self) -> io::Result<()> {
        self.running.await
    }
}
