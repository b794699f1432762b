//! Where resources live: rows to domain values and back; decides nothing.

pub use hyperfleet_fleet::{etcd, keys, registry};

pub mod postgres;
