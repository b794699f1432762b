//! What only development and tests need: a private PostgreSQL of real server programs, in a folder of
//! its own and on a Unix socket that only its owner may use, never the system's own cluster; and
//! tokens.

mod binaries;
mod postgres;
pub mod token;

pub use binaries::NotFound;
pub use postgres::{Durability, PrivatePostgres};
