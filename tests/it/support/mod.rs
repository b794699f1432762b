//! What tests share: a server, a client, a clock, a PostgreSQL.

mod agents;
mod api;
mod authority;
mod clock;
mod etcd;
mod fleet;
mod invariants;
mod kinds;
mod postgres;
mod problem;
mod proxy;
mod random;
mod raw;
mod series;
mod tenants;

pub(crate) use agents::Agent;
pub(crate) use api::{Answer, TestApi, http_client};
pub(crate) use authority::{Authority, Issued};
pub(crate) use clock::TestClock;
pub(crate) use etcd::{TestEtcd, etcd_settings, fresh_prefix, shared_etcd, shared_etcd_url};
pub(crate) use fleet::TestFleet;
pub(crate) use invariants::assert_sound;
pub(crate) use kinds::{child, linked, root, ruled};
pub(crate) use postgres::{TestDatabase, store};
pub(crate) use problem::Problem;
pub(crate) use proxy::{Cut, Proxy, Sent};
pub(crate) use random::Random;
pub(crate) use raw::{PATIENCE, RawAnswer, Then, rest, send_raw_to};
pub(crate) use series::{Series, sum};
pub(crate) use tenants::{ACME, ACME_WEB, BETA, SYSTEM, Walls, tenancy};

use std::time::{Duration, Instant};

/// Asks again and again until it is so; fails when that takes too long.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let since = Instant::now();
    while !is_so().await {
        assert!(since.elapsed() < PATIENCE, "still not: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
