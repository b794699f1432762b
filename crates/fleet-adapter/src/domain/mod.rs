//! The rules of the adapter as plain functions: no async, clock or IO.
//!
//! ```text
//! workloads (rendered)  ─┐
//!                        ├─▶ plan ─▶ steps ──▶ carried out by the adapter
//! owned units (observed) ┘     │
//!                              ├─▶ brake: may that many units be removed?
//!                              └─▶ findings ─▶ report
//! ```

mod brake;
mod findings;
mod ownership;
mod plan;
mod unit;

pub use brake::{Brake, BrakeDecision, RemovalLimit};
pub use findings::{Blocker, FleetHealth, Observation, report, report_without_etcd, unrendered};
pub use ownership::{Ownership, SECTION};
pub use plan::{Plan, PlanStep, plan};
pub use unit::{DesiredUnit, DesiredWorkload, OwnedUnit, UnitReport};
