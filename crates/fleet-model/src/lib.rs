//! The rules of fleet as plain functions over plain values, for its engine, agents, API and clients.
//!
//! ```text
//! wire ──▶ unit ◀── schedule
//!           ▲
//!         agent
//! ```
//!
//! The crate has no async, clock, files or transport.

pub mod agent;
mod identity;
pub mod schedule;
mod shown;
pub mod unit;
pub mod wire;

pub use shown::shown;
