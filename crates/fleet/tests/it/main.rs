//! Fleet on real etcd servers, and on the in-memory store where a simulation sets the time.
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
mod interleaved;
mod mirror;
mod mirrored;
mod reboots;
mod registry;
mod units;
