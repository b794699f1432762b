//! fleetctl as users run it: the real program against the real API, engine and agents on a real etcd, and against
//! small servers that behave as no real one should.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "a test that fails, panics"
)]

mod cluster;
mod command_line;
mod importing;
mod lists;
mod operations;
mod program;
mod remote;
mod restarting;
mod starting;
mod stopping;
mod stub;
mod terminal;
mod units;
mod waiting;
