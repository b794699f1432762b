//! The composition root: the only module that uses every other part. Builds them from the settings, and runs commands.

mod audit;
mod authentication;
mod banner;
mod commands;
mod database;
mod demo;
mod dev;
mod fleet;
mod fleet_adapter;
mod healthcheck;
mod import;
mod loopback;
mod metrics;
mod migrate;
mod plan;
mod process;
mod readiness;
mod retention;
mod sealing;
mod sides;
mod telemetry;
#[cfg(test)]
mod tests;
mod tls;

pub use commands::run;
pub use hyperfleet_server_kit::ending::{LogWritten, conclude};
pub use hyperfleet_server_kit::program::Build;
pub use hyperfleet_server_kit::server::{ConnectionOptions, Server};
pub use hyperfleet_server_kit::telemetry::{KIT_METRICS, Metric, Metrics};
pub use metrics::{ApiMetrics, METRIC_TABLES};
pub use process::bind;

const BUILD: Build = Build {
    component: "api",
    version: env!("CARGO_PKG_VERSION"),
    commit: env!("HYPERFLEET_BUILD_COMMIT"),
    time: env!("HYPERFLEET_BUILD_TIME"),
    compiler: env!("HYPERFLEET_BUILD_RUSTC"),
};
