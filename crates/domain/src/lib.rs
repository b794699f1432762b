//! Rules of the control plane, as plain functions over plain values.
//!
//! Nothing here awaits, reads a clock, draws a random number or knows a transport. Time is an argument, and a decision
//! is data that `app` carries out.

pub mod aggregation;
pub mod audit;
pub mod change;
mod computed_conditions;
mod condition;
pub mod condition_rules;
pub mod dry_run;
pub mod entity;
pub mod entity_config;
pub mod explain;
pub mod history;
pub mod idempotency;
pub mod json_limits;
mod json_text;
mod labels;
pub mod lease;
pub mod lifecycle;
mod list;
pub mod moment;
mod order;
pub mod page;
pub mod patch;
pub mod position;
pub mod precondition;
pub mod reference;
pub mod report;
mod requested;
mod resource;

pub mod schema;
mod snapshot;
pub mod tenancy;
#[cfg(test)]
mod tests;
pub mod tsl;
mod violation;
pub mod watch;

pub use condition::{Condition, ConditionStatus};
pub use entity::{DeletePolicy, Entity, EntityRegistry, ReferenceRule};
pub use json_text::JsonText;
pub use labels::Labels;
pub use list::{ListFilter, ListFilterKind};
pub use report::{
    Discard, InvalidReport, Metadata, Report, ReportOutcome, ReportState, ReportedCondition,
};
pub use requested::{ConditionalReport, RequestedResource};
pub use resource::{
    Deletion, Reference, References, Resource, ResourceId, ResourceName, ResourceState,
    StoredResource, Tenancy,
};
pub use snapshot::ResourceSnapshot;
pub use violation::{Constraint, Violation, Violations, excerpt};

/// Prefix of the paths of all resources.
pub const PATHS_BASE: &str = "/api/hyperfleet/v1";
