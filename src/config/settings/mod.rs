//! What can be set. Every default is here; `catalogue.rs` says where each can come from.

mod database;
mod fleet;
mod observe;
mod server;
mod tokens;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use database::{Database, Dialect, Pool, Ssl, SslMode};
pub use fleet::{Etcd, Fleet};
pub use observe::{Format, Health, Level, Logging, Masking, Metrics, Output, Tracing};
pub use server::{Limits, Rate, Server, Timeouts, Tls};
pub use tokens::Jwt;

use crate::domain::entity_config::EntityConfig;

/// Everything that can be set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The API's listener.
    pub server: Server,
    /// The database.
    pub database: Database,
    /// The log.
    pub logging: Logging,
    /// Traces.
    pub tracing: Tracing,
    /// Metrics and their listener.
    pub metrics: Metrics,
    /// Health, its listener, and how the service ends.
    pub health: Health,
    /// Lists.
    pub lists: Lists,
    /// The audit trail.
    pub audit: Audit,
    /// Fleet's API.
    pub fleet: Fleet,
    /// The kinds of resources; unset for the built-in ones (decision H16).
    pub entities: Option<Vec<EntityConfig>>,
}

/// Lists.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Lists {
    /// Whether lists show finalizing resources to callers that do not say. For pollers that
    /// cannot send a parameter (decision H3).
    pub include_deleted: bool,
}

/// The audit trail.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Audit {
    /// How long entries are kept; unset for ever.
    #[serde(with = "humantime_serde")]
    pub retention: Option<Duration>,
}
