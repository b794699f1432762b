//! Shared by all tests: a server, a client, a clock, a PostgreSQL.

mod api;
mod invariants;
mod kinds;
mod postgres;
mod problem;
mod proxy;
mod raw;
mod tenants;

pub(crate) use api::{JSON_PATCH, MERGE_PATCH, TestApi};
pub(crate) use hyperfleet_testkit::{
    Answer, Authority, PATIENCE, Random, RawAnswer, Series, TestClock, TestEtcd, TestFleet, Then,
    fresh_prefix, http_client, http_client_builder, rest, send_raw_to, sum, until,
};
pub(crate) use invariants::assert_sound;
pub(crate) use kinds::{child, linked, root, ruled};
pub(crate) use postgres::{TestDatabase, WAITING, still, store, store_of};
pub(crate) use problem::Problem;
pub(crate) use proxy::{Cut, Proxy, Sent};
pub(crate) use tenants::{ACME, ACME_WEB, BETA, SYSTEM, Walls, tenancy};
