//! Private servers for development and tests, from real server programs: each with its own folder, independent of the
//! system's own. PostgreSQL has a Unix socket that only its owner may use; every user of the machine may use the etcd.

mod binaries;
mod ended;
mod etcd;
mod postgres;

pub use binaries::find as find_programs;
pub use ended::PostgresFailed;
pub use etcd::{PrivateEtcd, find_etcd};
pub use postgres::{Durability, PrivatePostgres};
