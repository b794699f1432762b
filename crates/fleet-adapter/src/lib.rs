//! The fleet adapter: keeps systemd units in fleet for resources of the HyperFleet API, and reports their
//! state.
//!
//! ```text
//! API ─▶ resource ─▶ workloads ─▶ desired units ─┐
//!                                                ├─▶ domain: plan, brake ─▶ steps ─▶ fleet
//! fleet ─▶ index: owners of units ───────────────┘            │
//!                                                             └─▶ domain: findings ─▶ report ─▶ API
//! ```
//!
//! It stores nothing itself: every unit names its resource. Rules are in [`domain`] and `workloads`;
//! `reconcile` reads, applies them, and writes. `docs/guides/fleet-adapter.md` is for its users.

pub mod approval;
pub mod domain;
mod index;
mod lease;
mod orphans;
mod reconcile;
mod run;
mod telemetry;
pub mod workloads;

pub use index::Index;
pub use lease::{LeaseKeeper, Tenure};
pub use orphans::Settings as OrphanSettings;
pub use reconcile::{FleetAdapter, Parts, Settings};
pub use run::{Running, run};
pub use telemetry::METRICS;
