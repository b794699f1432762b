//! The hash chain of the audit trail, without a database (`docs/decisions/0086-audit-passes.md`).
//!
//! A pass covers the entries between two positions of the trail. Its link has the Merkle root of their hashes, and the hash
//! of the link before:
//!
//! ```text
//! origin ◀── link 1 ◀── link 2 ◀── link 3      previous hash
//!               │          │          │
//!              root       root       root       Merkle tree
//!             ╱    ╲      ╱  ╲        │
//!           entry entry entry entry  entry
//! ```
//!
//! The first link of a chain covers nothing that is left: it is the origin, or the last link whose entries retention has
//! removed.

mod export;
mod hash;
mod line;
mod position;
mod report;
mod retention;
mod sealing;
#[cfg(test)]
mod tests;
mod tree;
mod verify;

use std::collections::BTreeMap;

pub use export::Export;
pub use hash::Hash;
pub use line::{AuditEntry, Line, Link, Pass, ProvenEntry, read_lines};
pub use position::TrailPosition;
pub use report::{AuditFault, AuditReport, FAULTS_LISTED_MAX, FaultKind, Removed};
pub use retention::{RETENTION_MIN, RetentionRule};
pub use sealing::seal;
pub use verify::ChainVerifier;

/// The tenant of an entry, by its dimensions.
type Tenancy = BTreeMap<String, String>;
