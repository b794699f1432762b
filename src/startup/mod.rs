//! The composition root: the one place that knows every part.

mod authentication;
mod banner;
mod beside;
mod build;
mod commands;
mod database;
mod dev;
mod etcd;
mod fleet;
pub mod fleetd;
mod listeners;
mod metrics;
mod migrate;
mod plan;
mod process;
mod readiness;
mod retention;
mod telemetry;
mod tenancy;
#[cfg(test)]
mod tests;
mod tls;

pub use crate::kit::ending::{LogWritten, conclude};
pub use crate::kit::program::Build;
pub use crate::kit::server::{Connections, Options, Server};
pub use crate::kit::telemetry::{KIT_METRICS, Metric, Metrics};
pub use commands::run;
pub use metrics::{ApiMetrics, METRIC_TABLES};
pub use process::bind;
