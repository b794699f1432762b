//! Which unit runs on which machine: the cluster as it is, in, and a plan of what to change, out.
//!
//! ```text
//! Change ──▶ Cluster::apply        what was seen: machines, units, placements
//!                │  indexes        pools (machines by what is asked, in order of load),
//!                │                 patterns (who is in whose way), followers
//!                │  suspects       what these changes may have made wrong
//!                ▼
//!            Cluster::plan   ──▶ [Task]                  carried out by the engine, seen again
//!            Cluster::explain ─▶ Explanation             why a unit has no machine
//! ```
//!
//! `rules` says what may run where, for the engine (through its indexes) and for the agent on one
//! machine (over what is there). Whatever is inactive takes part in nothing (decision F4).
//! `docs/internals/placement.md` tells the rules in order, with the reasons for them.

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
pub use model::{Availability, Change, Job, Machine, Task};
pub use reason::Reason;
pub use rebalance::Move;
pub use rules::{Beside, Neighbours, Refusal, can_run, globals_on};
