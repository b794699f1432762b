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
pub mod config;
pub mod dev;
pub mod domain;
pub mod http;
pub mod startup;
pub mod storage;
pub mod wire;
