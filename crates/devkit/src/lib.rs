//! Private servers for development and tests, from real server programs: each in a folder of its own and on a Unix
//! socket that only its owner may use, never the system's own.

mod binaries;
mod ended;
mod postgres;

pub use binaries::find as find_programs;
pub use ended::PostgresFailed;
pub use postgres::{Durability, PrivatePostgres};
