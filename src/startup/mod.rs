//! The composition root: the one place that knows every part.

mod authentication;
mod banner;
mod beside;
mod commands;
mod database;
mod dev;
mod ending;
mod etcd;
mod fleet;
pub mod fleetd;
mod migrate;
mod plan;
mod process;
mod readiness;
mod retention;
mod server;
mod shutdown;
mod side;
mod signals;
mod sockets;
mod telemetry;
mod tenancy;
mod tls;

pub use commands::run;
pub use ending::{LogWritten, conclude};
pub use server::{Connections, Options, Server};
pub use telemetry::Metrics;
