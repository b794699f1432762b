//! Facts about decisions.
//!
//! ```text
//! vectors      what the older fleet decides: single units, and whole passes
//! properties   laws of plans, over random clusters and changes
//! └─ plain     the same rules without any index, to compare with
//! rules        what no vector says, by name
//! given        builders
//! ```

mod draining;
mod given;
mod plain;
mod properties;
mod rebalancing;
mod rules;
mod vectors;
