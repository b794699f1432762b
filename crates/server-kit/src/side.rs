//! The listeners of health and metrics: each with a thread of its own, so that they answer however
//! busy the API is.

use std::any::Any;
use std::io;
use std::net::TcpListener;
use std::time::Duration;

use actix_web::dev::{Extensions, ServerHandle};
use rustls::ServerConfig;
use tokio::sync::oneshot;

use super::server::{self, Listener, Options};
use crate::clock::Clock;
use crate::http::{self, ChooseWording, Gate, Scrape};

/// How long a connection is kept for the next question: not so long that those who ask nothing leave
/// no room for those who do.
const IDLE_TIME: Duration = Duration::from_secs(5);
/// How long answers under way may take when everything else has ended.
pub const DRAIN_TIME: Duration = Duration::from_secs(2);

/// A small server on its own thread.
pub struct Side {
    name: &'static str,
    handle: ServerHandle,
    ended: oneshot::Receiver<io::Result<()>>,
}

impl Side {
    /// Answers `/healthz` and `/readyz`.
    pub fn health(
        listener: TcpListener,
        tls: Option<ServerConfig>,
        connections_max: usize,
        wording: ChooseWording,
        gate: Gate,
    ) -> io::Result<Self> {
        let app = move || http::side(Clock::system(), wording, http::health(gate.clone()));
        let options = options(tls, connections_max);
        let server = server::listen(app, vec![Listener::Tcp(listener)], &options, watch)?;
        Self::start("health", server)
    }

    /// Answers `/metrics`.
    pub fn metrics(
        listener: TcpListener,
        tls: Option<ServerConfig>,
        connections_max: usize,
        wording: ChooseWording,
        scrape: Scrape,
    ) -> io::Result<Self> {
        let app = move || http::side(Clock::system(), wording, http::metrics(scrape.clone()));
        let options = options(tls, connections_max);
        let server = server::listen(app, vec![Listener::Tcp(listener)], &options, watch)?;
        Self::start("metrics", server)
    }

    fn start(name: &'static str, server: actix_web::dev::Server) -> io::Result<Self> {
        let handle = server.handle();
        let (end, ended) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let thread = std::thread::Builder::new().name(name.to_owned());
        thread.spawn(move || {
            // Fails only if nobody wants to know any more.
            let _ = end.send(runtime.block_on(server));
        })?;
        Ok(Self {
            name,
            handle,
            ended,
        })
    }

    /// Waits until it ends by itself, which it should not.
    pub async fn failed(&mut self) -> anyhow::Error {
        let name = self.name;
        match (&mut self.ended).await {
            Ok(Err(error)) => anyhow::anyhow!("the {name} listener failed: {error}"),
            Ok(Ok(())) | Err(_) => anyhow::anyhow!("the {name} listener ended"),
        }
    }

    /// Ends it, once what is under way is answered.
    pub async fn stop(self) {
        let _ = tokio::time::timeout(DRAIN_TIME, self.handle.stop(true)).await;
    }
}

/// Ends connections whose next question does not come in time, however little of it comes.
fn watch(io: &dyn Any, data: &mut Extensions) {
    http::Connection::open(data, server::socket(io), IDLE_TIME, None, ());
}

fn options(tls: Option<ServerConfig>, connections_max: usize) -> Options {
    Options {
        workers: 1,
        connections_max,
        head_time: IDLE_TIME,
        idle_time: IDLE_TIME,
        tls,
    }
}
