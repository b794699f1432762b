//! The API on a listener.

use std::io;
use std::net::{SocketAddr, TcpListener};

use actix_web::HttpServer;
use actix_web::dev::ServerHandle;

use crate::http::{self, Api, Document};

/// How long requests under way may take to end once the server is told to stop, in seconds.
const DRAIN_SECONDS_MAX: u64 = 20;

/// A server that listens but does not yet answer.
pub struct Server {
    /// Where it listens: the real port even where port 0 was asked for.
    pub address: SocketAddr,
    server: actix_web::dev::Server,
}

impl Server {
    /// Binds the API to a listener, with so many threads.
    pub fn bind(listener: TcpListener, api: &Api, workers: usize) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let api = api.clone();
        let document = http::openapi(api.service.registry(), api.build.version);
        let document = Document::new(&document);
        // Runs once per thread.
        let app = move || {
            let service = api.service.share(workers);
            let api = Api {
                service,
                ..api.clone()
            };
            http::app(api, document.clone())
        };
        let server = HttpServer::new(app)
            .workers(workers)
            .shutdown_timeout(DRAIN_SECONDS_MAX)
            // A client that goes away ends its request: nobody waits for the answer, and its
            // connection to the database is for others (decision H9).
            .h1_allow_half_closed(false)
            .disable_signals()
            .listen(listener)?
            .run();
        Ok(Self { address, server })
    }

    /// Stops it from elsewhere.
    #[must_use]
    pub fn handle(&self) -> ServerHandle {
        self.server.handle()
    }

    /// Answers until stopped.
    pub async fn run(self) -> io::Result<()> {
        self.server.await
    }
}
