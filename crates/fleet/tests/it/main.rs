//! Fleet on real servers of etcd, and on the store in memory where a simulation sets the time.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "a test that fails, panics"
)]

mod agent;
mod api;
mod damaged;
mod engine;
mod faults;
mod follow;
mod mirror;
mod mirrored;
mod registry;
mod units;
