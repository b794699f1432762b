//! Private servers for development and tests, from real server programs: each with its own folder and a Unix
//! socket that only its owner may use, independent of the system's own.

mod binaries;
mod ended;
mod postgres;

pub use binaries::find as find_programs;
pub use ended::PostgresFailed;
pub use postgres::{Durability, PrivatePostgres};
