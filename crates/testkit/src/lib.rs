//! Test support for several crates. It does not depend on the HyperFleet API's own crate.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    clippy::new_without_default,
    clippy::should_implement_trait,
    reason = "helpers of tests: one that fails, panics"
)]

mod agents;
mod answer;
mod authority;
mod clock;
mod counts;
mod dashboard;
mod engine;
mod etcd;
mod files;
mod fleet_api;
mod machine;
mod memory;
mod network;
mod program;
mod prometheus;
mod promql;
mod random;
mod raw;
mod scratch;
mod secure_etcd;
mod series;
mod simulated_systemd;
mod steps;
mod systemd;

use std::time::{Duration, Instant};

pub use agents::SimulatedMachine;
pub use answer::{Answer, http_client, http_client_builder};
pub use authority::{Authority, Issued};
pub use clock::TestClock;
pub use counts::named_counts;
pub use dashboard::dashboard_queries;
pub use engine::{engine_settings, run_engine};
pub use etcd::{TestEtcd, etcd_settings, fresh_prefix, shared_etcd, shared_etcd_url};
pub use files::files_below;
pub use fleet_api::{IDLE_TIME, TestFleet};
pub use machine::{MachineSetup, PrivateMachine};
pub use memory::MemoryKeys;
pub use network::PrivateNetwork;
pub use program::RunningProgram;
pub use prometheus::{NamedQuery, ScrapeJob, TestPrometheus, monitoring_files, prometheus_program};
pub use promql::metric_names;
pub use random::Random;
pub use raw::{RawAnswer, Then, rest, send_raw_to};
pub use scratch::{scratch_folder, scratch_root};
pub use secure_etcd::{etcd_identity, prepare_etcd_users, secure_etcd};
pub use series::{Series, sum};
pub use simulated_systemd::SimulatedSystemd;
pub use steps::{move_from_lost, move_to, place, withdraw};
pub use systemd::PrivateSystemd;

/// Timeout of requests in tests.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// The pauses of [`until`].
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(250);

/// Repeats a check until it succeeds; fails after a timeout. Each pause is a tenth of the time that it has waited: many
/// checks cost as much as what they wait for, such as a connection to the database.
pub async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let since = Instant::now();
    while !is_so().await {
        assert!(since.elapsed() < PATIENCE, "still not: {what}");
        let pause = since.elapsed() / 10;
        tokio::time::sleep(pause.clamp(PAUSE_MIN, PAUSE_MAX)).await;
    }
}
