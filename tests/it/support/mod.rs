//! What tests share: a server, a client, a clock, a PostgreSQL.

mod api;
mod clock;
mod fleet;
mod invariants;
mod kinds;
mod postgres;
mod problem;
mod proxy;
mod raw;
mod series;
mod tenants;

pub(crate) use api::{Answer, TestApi, http_client};
pub(crate) use clock::TestClock;
pub(crate) use fleet::TestFleet;
pub(crate) use hyperfleet_testkit::{
    Authority, PATIENCE, Random, TestEtcd, etcd_settings, fresh_prefix, shared_etcd,
    shared_etcd_url, until,
};
pub(crate) use invariants::assert_sound;
pub(crate) use kinds::{child, linked, root, ruled};
pub(crate) use postgres::{TestDatabase, store};
pub(crate) use problem::Problem;
pub(crate) use proxy::{Cut, Proxy, Sent};
pub(crate) use raw::{RawAnswer, Then, rest, send_raw_to};
pub(crate) use series::{Series, sum};
pub(crate) use tenants::{ACME, ACME_WEB, BETA, SYSTEM, Walls, tenancy};
