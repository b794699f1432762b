//! An application on its listeners.

use std::any::Any;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::time::Duration;

use actix_tls::accept::rustls_0_23::TlsStream;
use actix_web::body::MessageBody;
use actix_web::dev::{ServerHandle, ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::rt::net::{TcpStream, UnixStream};
use actix_web::{App, Error, HttpServer};
use anyhow::anyhow;
use rustix::net::sockopt;
use rustls::ServerConfig;
use tokio::task::JoinHandle;

use crate::http::{Connection, ResponseBudget};
use crate::settings::Timeouts;

/// How long actix waits for requests in progress, in seconds. Longer than any caller waits, because `shutdown`
/// limits the time itself.
const DRAIN_SECONDS_MAX: u64 = 24 * 3600;

/// The kernel's send buffer per connection (accepted sockets inherit it; Linux doubles it for its own needs).
/// By default it grows to uncounted megabytes, and hides for long whether a client still reads. Enough for 5
/// MB/s with a round trip of 100 ms.
const SEND_BYTES: usize = 256 * 1024;

/// A listening socket.
#[derive(Debug)]
pub enum Listener {
    /// With or without TLS.
    Tcp(TcpListener),
    /// In the file system.
    Unix(UnixListener),
}

/// Settings of a listener's connections.
#[derive(Clone)]
pub struct ConnectionOptions {
    /// Worker threads.
    pub workers: usize,
    /// Most connections at a time, over all threads. Further ones wait to be accepted.
    pub connections_max: usize,
    /// Timeout for the head of a connection's first request, and for a TLS handshake.
    pub head_time: Duration,
    /// How long an idle connection stays open for the next request.
    pub idle_time: Duration,
    /// Timeout for the complete head of a later request, and for reading a piece of a response.
    pub next_time: Duration,
    pub tls: Option<ServerConfig>,
}

impl ConnectionOptions {
    /// By the settings, with a thread for each processor.
    pub fn new(times: &Timeouts, connections_max: usize, tls: Option<ServerConfig>) -> Self {
        Self {
            workers: std::thread::available_parallelism().map_or(2, usize::from),
            connections_max,
            head_time: times.read,
            idle_time: times.idle,
            next_time: times.idle.saturating_add(times.read),
            tls,
        }
    }
}

/// A server that listens but does not answer yet.
pub struct Server {
    pub(super) running: actix_web::dev::Server,
    connections: Arc<()>,
}

impl Server {
    /// Binds an application to listeners. Large responses are held in `memory`, if this server has a budget.
    ///
    /// # Errors
    /// The machine lacks resources for a server.
    pub fn bind<T, B>(
        listeners: Vec<Listener>,
        app: impl Fn() -> App<T> + Clone + Send + 'static,
        memory: Option<ResponseBudget>,
        options: &ConnectionOptions,
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
        let connections = Arc::new(());
        let (counted, next_time) = (Arc::downgrade(&connections), options.next_time);
        let connections_max = (options.connections_max / options.workers).max(1);
        let mut server = HttpServer::new(app)
            .workers(options.workers)
            .max_connections(connections_max)
            // The only limit on handshakes: hanging ones must not keep others out.
            .max_connection_rate(connections_max)
            .client_request_timeout(options.head_time)
            .tls_handshake_timeout(options.head_time)
            .keep_alive(options.idle_time)
            .shutdown_timeout(DRAIN_SECONDS_MAX)
            // Otherwise the kernel delays the second write of a response until the client has acknowledged the first,
            // which takes clients up to 40 ms.
            .tcp_nodelay(true)
            // A client that disconnects ends its request: its database connection becomes free for others.
            .h1_allow_half_closed(false)
            .disable_signals()
            .on_connect(move |io, data| {
                let guard = counted.upgrade();
                Connection::open(data, socket(io), next_time, memory.as_ref(), guard);
            });
        for listener in listeners {
            // For every listener, so that unread data has a bound.
            if let Listener::Tcp(socket) = &listener {
                sockopt::set_socket_send_buffer_size(socket, SEND_BYTES)?;
            }
            server = match (listener, &options.tls) {
                (Listener::Tcp(socket), Some(config)) => {
                    server.listen_rustls_0_23(socket, config.clone())?
                }
                (Listener::Tcp(socket), None) => server.listen(socket)?,
                (Listener::Unix(socket), _) => server.listen_uds(socket)?,
            };
        }
        Ok(Self {
            running: server.run(),
            connections,
        })
    }

    /// Starts to answer.
    pub fn start(self) -> Serving {
        Serving {
            handle: self.running.handle(),
            connections: self.connections,
            task: tokio::spawn(self.running),
        }
    }
}

/// A second handle on the socket of a connection, below TLS. `None` if the process has no descriptor left: only
/// actix's own timeouts apply then.
fn socket(io: &dyn Any) -> Option<OwnedFd> {
    if let Some(stream) = io.downcast_ref::<UnixStream>() {
        return stream.as_fd().try_clone_to_owned().ok();
    }
    let below_tls = io.downcast_ref::<TlsStream<TcpStream>>();
    let below_tls = below_tls.map(|stream| stream.get_ref().0);
    let socket = below_tls.or_else(|| io.downcast_ref::<TcpStream>())?;
    socket.as_fd().try_clone_to_owned().ok()
}

/// A running server.
pub struct Serving {
    pub(super) handle: ServerHandle,
    /// One reference for the server, and one per connection.
    connections: Arc<()>,
    task: JoinHandle<io::Result<()>>,
}

impl Serving {
    /// How many connections are open.
    pub fn open_connections(&self) -> usize {
        Arc::strong_count(&self.connections) - 1
    }

    /// Waits until it ends by itself, which it should not.
    pub async fn failed(&mut self) -> anyhow::Error {
        match (&mut self.task).await {
            Ok(Err(error)) => anyhow!("the API's listener failed: {error}"),
            Ok(Ok(())) | Err(_) => anyhow!("the API's listener ended"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::rc::Rc;

    use actix_web::{HttpRequest, web};

    use super::*;

    #[actix_web::test]
    async fn responses_are_sent_without_delay() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let is_nodelay = async |request: HttpRequest| {
            let connection = request.conn_data::<Rc<Connection>>().unwrap();
            let is_nodelay = sockopt::tcp_nodelay(connection.socket().unwrap());
            format!("nodelay={}", is_nodelay.unwrap())
        };
        let app = move || App::new().default_service(web::to(is_nodelay));
        let times = Timeouts {
            read: Duration::from_secs(5),
            write: Duration::from_secs(5),
            idle: Duration::from_secs(5),
        };
        let options = ConnectionOptions::new(&times, 16, None);
        let server = Server::bind(vec![Listener::Tcp(listener)], app, None, &options).unwrap();
        server.start();
        let asked = tokio::task::spawn_blocking(move || {
            let mut client = std::net::TcpStream::connect(address).unwrap();
            let request = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
            client.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            client.read_to_string(&mut answer).unwrap();
            answer
        });
        let answer = asked.await.unwrap();
        assert!(answer.ends_with("nodelay=true"), "{answer}");
    }
}
