//! A control plane for fleets of clusters: resources are declared over REST, adapters report what
//! they achieved, and the reports are aggregated into the conditions that everybody waits for.
//!
//! ```text
//! bin ─▶ startup ─▶ http ─▶ app, fleet ─▶ storage ─▶ domain
//!           │         ├───▶ wire ──────────────────────▲
//!           │         └───▶ auth (who is calling)
//!           └─▶ config, dev (a private PostgreSQL, tokens for trying)
//! ```
//!
//! Arrows point one way; `tests/architecture.rs` holds that.

pub mod app;
pub mod auth;
mod causes;
pub mod clock;
pub mod config;
pub mod crypto;
pub mod dev;
pub mod domain;
mod files;
pub mod fleet;
pub mod http;
pub mod kit;
mod lasting;
pub mod startup;
pub mod storage;
pub mod wire;
