//! The composition root: the one place that knows every part.

mod authentication;
mod banner;
mod beside;
mod commands;
mod database;
mod dev;
mod etcd;
mod fleet;
pub mod fleetd;
mod migrate;
mod plan;
mod process;
mod readiness;
mod retention;
mod tenancy;
#[cfg(test)]
mod tests;

pub use crate::kit::ending::{LogWritten, conclude};
pub use crate::kit::server::{Connections, Options, Server};
pub use crate::kit::telemetry::Metrics;
pub use commands::run;
