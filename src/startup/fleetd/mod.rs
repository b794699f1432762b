//! The daemon of fleet: its commands, how it starts, and how it ends.
//!
//! ```text
//! settings, their files checked ▸ sockets ▸ API, which answers 503 ▸ mirror, engine: etcd may come or go
//! SIGTERM ▸ no new connections, drain │ engine resigns ▸ sockets removed
//! ```

mod commands;
mod daemon;
mod engine;
mod listen;
mod plan;
mod reload;
mod serve;
mod state;

pub use commands::run;
