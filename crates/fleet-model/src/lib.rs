//! The rules of fleet as plain functions over plain values, for its engine, its agents, its API and its clients.
//!
//! ```text
//! wire ──▶ unit ◀── schedule
//! ```
//!
//! Nothing here awaits, reads a clock or a file, or knows a transport.

mod identity;
pub mod schedule;
mod shown;
pub mod unit;
pub mod wire;

pub use shown::shown;
