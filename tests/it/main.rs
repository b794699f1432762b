//! The service as a client sees it: the production server on a free port, a real PostgreSQL, a
//! fresh database per test.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "a test that fails, panics"
)]

mod support;

mod clients;
mod encodings;
mod histories;
mod lifecycle;
mod lists;
mod pages;
mod routes;
mod smoke;
