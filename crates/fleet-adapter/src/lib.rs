//! The fleet adapter: keeps systemd units in fleet for resources of the HyperFleet API, and reports their
//! state.
//!
//! ```text
//! API ─▶ resource ─▶ workloads ─▶ desired units ─┐
//!                                                ├─▶ domain: plan, brake ─▶ steps ─▶ fleet
//! fleet ─▶ index: owners of units ───────────────┘            │
//!                                                             └─▶ domain: findings ─▶ report ─▶ API
//!
//! settings ─▶ AdapterPlan ─▶ Role: the adapter as a task of `hyperfleet-api`
//! ```
//!
//! It stores nothing itself: every unit names its resource. Rules are in [`domain`] and `workloads`;
//! `reconcile` reads, applies them, and writes. `docs/guides/fleet-adapter.md` is for its users.

pub mod approval;
pub mod command;
pub mod domain;
mod index;
mod lease;
mod orphans;
mod plan;
mod reconcile;
pub mod render;
mod role;
mod run;
mod running;
mod settings;
mod telemetry;
pub mod workloads;

pub use index::Index;
pub use lease::{LeaseKeeper, Tenure};
pub use plan::{AdapterPlan, OwnApi, ProgramSettings};
pub use reconcile::FleetAdapter;
pub use role::Role;
pub use run::run;
pub use running::Running;
pub use settings::Settings;
pub use telemetry::METRICS;
