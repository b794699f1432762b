//! The daemon of fleet: its commands, start and shutdown.
//!
//! ```text
//! settings, their files checked ▸ sockets ▸ API, which answers 503 ▸ mirror, engine: etcd may come or go
//! SIGTERM ▸ no new connections, drain │ engine resigns ▸ sockets removed
//! ```

mod agent;
mod commands;
mod daemon;
mod engine;
mod hardware;
mod listen;
mod plan;
mod reload;
mod serve;
pub mod settings;
mod state;

use hyperfleet_server_kit::program::Build;

pub use commands::run;

const BUILD: Build = Build {
    component: "fleetd",
    version: env!("CARGO_PKG_VERSION"),
    commit: env!("HYPERFLEET_BUILD_COMMIT"),
    time: env!("HYPERFLEET_BUILD_TIME"),
    compiler: env!("HYPERFLEET_BUILD_RUSTC"),
};
