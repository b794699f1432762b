//! Rules of the control plane, as plain functions over plain values.
//!
//! Nothing here awaits, reads a clock, draws a random number or knows a transport. Time comes in
//! as an argument; what a rule decides goes out as data that `storage` carries out.

pub mod aggregation;
pub mod audit;
mod condition;
mod derivation;
pub mod entity;
pub mod entity_config;
mod labels;
mod laws;
pub mod lifecycle;
pub mod mapping;
pub mod moment;
pub mod page;
pub mod position;
pub mod reference;
pub mod report;
mod requested;
mod resource;
pub mod schedule;
pub mod schema;
pub mod tenancy;
#[cfg(test)]
mod tests;
pub mod tsl;
pub mod unit;
mod violation;

pub use condition::{Condition, ConditionStatus};
pub use entity::{DeletePolicy, Entity, EntityRegistry, PATHS_BASE, ReferenceRule};
pub use labels::Labels;
pub use reference::{Reference, References};
pub use report::{
    Discard, InvalidReport, Metadata, Report, ReportOutcome, ReportState, ReportedCondition,
};
pub use requested::{RequestedPatch, RequestedResource};
pub use resource::{
    Deletion, Resource, ResourceId, ResourceName, ResourceSnapshot, ResourceState, Tenancy,
};
pub use violation::{Constraint, Violation, Violations, shown};
