//! The listeners of health and metrics: each with a thread of its own, so that they answer however
//! busy the API is.

use std::io;
use std::net::TcpListener;
use std::time::Duration;

use actix_web::App;
use actix_web::dev::ServerHandle;
use actix_web::middleware::from_fn;
use actix_web::web::{self, Data, ServiceConfig};
use rustls::ServerConfig;
use tokio::sync::oneshot;

use super::server::{Listener, Options, Server};
use crate::clock::Clock;
use crate::http::{self, ChooseWording};

/// How long a connection is kept for the next question, however little of it comes: not so long that those who ask
/// nothing leave no room for those who do.
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
    /// Answers on these routes alone, from now on.
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
        let options = Options {
            workers: 1,
            connections_max,
            head_time: IDLE_TIME,
            idle_time: IDLE_TIME,
            next_time: IDLE_TIME,
            tls,
        };
        // Nobody counts its connections: its end waits for so long and no longer.
        let server = Server::bind(vec![Listener::Tcp(listener)], app, None, &options)?.running;
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
