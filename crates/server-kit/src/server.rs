//! An application on its listeners.

use std::any::Any;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use actix_tls::accept::rustls_0_23::TlsStream;
use actix_web::body::MessageBody;
use actix_web::dev::{Extensions, ServerHandle, ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::rt::net::{TcpStream, UnixStream};
use actix_web::{App, Error, HttpServer};
use anyhow::anyhow;
use rustix::net::sockopt;
use rustls::ServerConfig;
use tokio::task::JoinHandle;

use crate::http::{Connection, ResponseBudget};

/// How long actix waits for requests under way once it is told to stop, in seconds: longer than
/// anybody waits for it, because who stops the server limits that (``shutdown``).
const DRAIN_SECONDS_MAX: u64 = 24 * 3600;

/// What the kernel holds of an answer that its client does not take, for each connection (accepted
/// sockets inherit it; Linux doubles it for its own needs). Left alone, it grows to megabytes that
/// nobody counts, and hides for long whether a client goes on reading. Enough for 5 MB/s at a
/// distance of 100 ms.
const SEND_BYTES: usize = 256 * 1024;

/// A socket that clients connect to.
#[derive(Debug)]
pub enum Listener {
    /// TLS is spoken here, if at all.
    Tcp(TcpListener),
    /// Of the file system.
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

/// Makes a server of an application, on listeners.
pub fn listen<T, B>(
    app: impl Fn() -> App<T> + Clone + Send + 'static,
    listeners: Vec<Listener>,
    options: &Options,
    on_connect: impl Fn(&dyn Any, &mut Extensions) + Clone + Send + Sync + 'static,
) -> io::Result<actix_web::dev::Server>
where
    T: ServiceFactory<
            ServiceRequest,
            Config = (),
            Response = ServiceResponse<B>,
            Error = Error,
            InitError = (),
        > + 'static,
    B: MessageBody + 'static,
{
    let connections = (options.connections_max / options.workers).max(1);
    let mut server = HttpServer::new(app)
        .workers(options.workers)
        .max_connections(connections)
        // Handshakes are limited by nothing else: those that hang must not keep others out.
        .max_connection_rate(connections)
        .client_request_timeout(options.head_time)
        .tls_handshake_timeout(options.head_time)
        .keep_alive(options.idle_time)
        .shutdown_timeout(DRAIN_SECONDS_MAX)
        // A client that goes away ends its request: nobody waits for the answer, and its connection
        // to the database is for others.
        .h1_allow_half_closed(false)
        .disable_signals()
        .on_connect(on_connect);
    for listener in listeners {
        server = match (listener, &options.tls) {
            (Listener::Tcp(socket), Some(config)) => {
                server.listen_rustls_0_23(socket, config.clone())?
            }
            (Listener::Tcp(socket), None) => server.listen(socket)?,
            (Listener::Unix(socket), _) => server.listen_uds(socket)?,
        };
    }
    Ok(server.run())
}

/// How many connections are open.
#[derive(Debug, Clone, Default)]
pub struct Connections(Arc<AtomicUsize>);

/// One of them, until it is dropped.
struct Joined(Connections);

impl Connections {
    /// How many there are.
    pub fn open(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// One more, until what this gives is dropped.
    fn join(&self) -> Joined {
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
pub fn socket(io: &dyn Any) -> Option<OwnedFd> {
    if let Some(stream) = io.downcast_ref::<UnixStream>() {
        return stream.as_fd().try_clone_to_owned().ok();
    }
    let below_tls = io.downcast_ref::<TlsStream<TcpStream>>();
    let below_tls = below_tls.map(|stream| stream.get_ref().0);
    let socket = below_tls.or_else(|| io.downcast_ref::<TcpStream>())?;
    socket.as_fd().try_clone_to_owned().ok()
}

/// A server while it answers.
pub struct Serving {
    pub handle: ServerHandle,
    pub connections: Connections,
    task: JoinHandle<io::Result<()>>,
}

impl Serving {
    /// Waits until it ends by itself, which it should not.
    pub async fn failed(&mut self) -> anyhow::Error {
        match (&mut self.task).await {
            Ok(Err(error)) => anyhow!("the API's listener failed: {error}"),
            Ok(Ok(())) | Err(_) => anyhow!("the API's listener ended"),
        }
    }
}

/// A server that listens but does not yet answer.
pub struct Server {
    running: actix_web::dev::Server,
    connections: Connections,
}

impl Server {
    /// Binds an application to listeners. Large answers are held in `memory`.
    ///
    /// # Errors
    ///
    /// The machine does not give what a server needs.
    pub fn bind<T, B>(
        listeners: Vec<Listener>,
        app: impl Fn() -> App<T> + Clone + Send + 'static,
        memory: ResponseBudget,
        options: &Options,
    ) -> io::Result<Self>
    where
        T: ServiceFactory<
                ServiceRequest,
                Config = (),
                Response = ServiceResponse<B>,
                Error = Error,
                InitError = (),
            > + 'static,
        B: MessageBody + 'static,
    {
        for listener in &listeners {
            if let Listener::Tcp(socket) = listener {
                sockopt::set_socket_send_buffer_size(socket, SEND_BYTES)?;
            }
        }
        let connections = Connections::default();
        let counted = connections.clone();
        let idle_time = options.idle_time.saturating_add(options.head_time);
        let running = listen(app, listeners, options, move |io, data| {
            let guard = counted.join();
            Connection::open(data, socket(io), idle_time, Some(&memory), guard);
        })?;
        Ok(Self {
            running,
            connections,
        })
    }

    /// Stops it from elsewhere.
    pub fn handle(&self) -> ServerHandle {
        self.running.handle()
    }

    /// The connections of its clients.
    pub fn connections(&self) -> Connections {
        self.connections.clone()
    }

    /// Answers from now on.
    pub fn start(self) -> Serving {
        Serving {
            handle: self.running.handle(),
            connections: self.connections,
            task: tokio::spawn(self.running),
        }
    }

    /// Answers until stopped.
    pub async fn run(self) -> io::Result<()> {
        self.running.await
    }
}
