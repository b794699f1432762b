//! The HyperFleet API: resources are declared over REST, adapters report what they achieved, and the reports are
//! aggregated into conditions. `docs/internals/architecture.md` has the layers and what each may use.

pub mod config;
pub mod dev;
pub mod startup;
