//! The listeners of health and metrics, each on its own thread, so that they answer however busy the API is.

use std::io;
use std::net::TcpListener;
use std::time::Duration;

use actix_web::App;
use actix_web::dev::ServerHandle;
use actix_web::middleware::from_fn;
use actix_web::web::{self, Data, ServiceConfig};
use rustls::ServerConfig;
use tokio::sync::oneshot;

use super::server::{ConnectionOptions, Listener, Server};
use crate::clock::Clock;
use crate::http::{self, ChooseWording};

/// How long an idle connection stays open. Short, so that idle clients leave capacity for others.
const IDLE_TIME: Duration = Duration::from_secs(5);
/// How long responses in progress may take after everything else has stopped.
pub const DRAIN_TIME: Duration = Duration::from_secs(2);

/// A small server on its own thread.
pub struct Side {
    name: &'static str,
    handle: ServerHandle,
    ended: oneshot::Receiver<io::Result<()>>,
}

impl Side {
    /// Serves only these routes.
    pub fn start(
        name: &'static str,
        listener: TcpListener,
        tls: Option<ServerConfig>,
        connections_max: usize,
        wording: ChooseWording,
        mount: impl FnOnce(&mut ServiceConfig) + Clone + Send + 'static,
    ) -> io::Result<Self> {
        let app = move || {
            App::new()
                .app_data(Data::new(Clock::system()))
                .configure(mount.clone())
                .default_service(web::to(http::unknown_path))
                .wrap(from_fn(move |request, next| {
                    http::frame(wording, request, next)
                }))
        };
        let options = ConnectionOptions {
            workers: 1,
            connections_max,
            head_time: IDLE_TIME,
            idle_time: IDLE_TIME,
            next_time: IDLE_TIME,
            tls,
        };
        // Its connections are not counted: its end waits this long and no longer.
        let server = Server::bind(vec![Listener::Tcp(listener)], app, None, &options)?.running;
        let handle = server.handle();
        let (end, ended) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let thread = std::thread::Builder::new().name(name.to_owned());
        thread.spawn(move || {
            // Fails only without a receiver.
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

    /// Stops it after completing responses in progress.
    pub async fn stop(self) {
        let _ = tokio::time::timeout(DRAIN_TIME, self.handle.stop(true)).await;
    }
}
