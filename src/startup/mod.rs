//! The composition root: the one place that knows every part.

mod authentication;
mod banner;
mod beside;
mod build;
mod commands;
mod database;
mod dev;
mod fleet;
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

pub use commands::run;
pub use hyperfleet_server_kit::ending::{LogWritten, conclude};
pub use hyperfleet_server_kit::program::Build;
pub use hyperfleet_server_kit::server::{Connections, Options, Server};
pub use hyperfleet_server_kit::telemetry::{KIT_METRICS, Metric, Metrics};
pub use metrics::{ApiMetrics, METRIC_TABLES};
pub use process::bind;
