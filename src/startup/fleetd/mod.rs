//! The daemon of fleet: its commands, how it starts, and how it ends.
//!
//! ```text
//! settings, their files checked ▸ sockets ▸ API, which answers 503 ▸ mirror, engine: etcd may come or go
//! SIGTERM ▸ no new connections, drain │ engine resigns ▸ sockets removed
//! ```

mod activation;
mod commands;
mod listen;
mod plan;
mod socket;

pub use commands::run;
