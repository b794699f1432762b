//! The rules of fleet as plain functions over plain values, for its engine, its agents, its API and its clients.
//!
//! ```text
//! wire ──▶ unit ◀── schedule
//!           ▲
//!         agent
//! ```
//!
//! Nothing here awaits, reads a clock or a file, or knows a transport.

pub mod agent;
mod identity;
pub mod schedule;
mod shown;
pub mod unit;
pub mod wire;

pub use shown::shown;
