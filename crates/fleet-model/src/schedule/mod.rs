//! Which unit runs on which machine: the cluster in, a plan of changes out.
//!
//! ```text
//! Change ──▶ Cluster::apply        known machines, units, placements
//!                │  indexes        pools (machines by requirements, in order of load),
//!                │                 patterns (which units exclude each other), followers
//!                │  suspects       units that these changes may have misplaced
//!                ▼
//!            Cluster::plan   ──▶ [Task]                  carried out by the engine, then applied
//!            Cluster::explain ─▶ Explanation             why a unit has no machine
//! ```
//!
//! `rules` is one set of rules for the engine (through its indexes) and for the agent of one machine (over its
//! units). Inactive units take part in no decision. `docs/internals/placement.md` has the rules in order, with
//! the reasons for them.

mod apply;
mod choose;
mod cluster;
mod companions;
mod explain;
mod globals;
mod link;
mod machine_id;
mod model;
mod patterns;
mod placement;
mod plan;
mod pools;
mod reason;
mod rebalance;
mod replace;
mod rules;
#[cfg(test)]
mod tests;
mod waiting;

pub use cluster::Cluster;
pub use explain::{EXAMPLES_MAX, Explanation, Group};
pub use machine_id::MachineId;
pub use model::{Availability, ClusterChange, Job, Machine, Task};
pub use reason::Reason;
pub use rebalance::Move;
pub use rules::{Beside, Neighbours, Refusal, can_run, globals_on};
