//! A private PostgreSQL for trying the service and for its tests: real server programs, a folder
//! of its own, a Unix socket that only its owner may use. Never the system's own cluster.

mod binaries;
mod postgres;

pub use binaries::NotFound;
pub use postgres::{Durability, PrivatePostgres};
