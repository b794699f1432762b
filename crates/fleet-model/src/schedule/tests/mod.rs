//! Tests of decisions.
//!
//! ```text
//! vectors      decisions of the older fleet: single units, and whole passes
//! properties   laws of plans, over random clusters and changes
//! └─ plain     the same rules without any index, to compare with
//! rules        facts beyond the vectors, by name
//! given        builders
//! ```

mod draining;
mod given;
mod plain;
mod properties;
mod rebalancing;
mod rules;
mod vectors;
