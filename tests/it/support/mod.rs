//! What tests share: a server, a client, a clock, a PostgreSQL.

mod api;
mod clock;
mod invariants;
mod kinds;
mod postgres;
mod problem;
mod proxy;
mod random;
mod raw;

pub(crate) use api::{Answer, TestApi};
pub(crate) use clock::TestClock;
pub(crate) use invariants::assert_sound;
pub(crate) use kinds::{child, linked, root};
pub(crate) use postgres::{TestDatabase, store};
pub(crate) use problem::Problem;
pub(crate) use proxy::{Cut, Proxy, Sent};
pub(crate) use random::Random;
pub(crate) use raw::{PATIENCE, RawAnswer, Then};
