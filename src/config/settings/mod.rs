//! The typed settings of `hyperfleet-api`. Every default is in `catalogue.rs`.

mod database;
mod fleet_adapter;
mod server;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use database::{Database, Pool, Ssl, SslMode};
pub use fleet_adapter::{FleetAdapter, RemovalLimit};
pub use server::{Health, Jwt, Metrics, Server};

use super::catalogue::TABLE;
use crate::domain::entity_config::EntityConfig;
use hyperfleet_fleet::settings::Etcd;
use hyperfleet_server_kit::settings::{Logging, Secret, Tracing, defaults};

/// Everything that can be set.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
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
    #[serde(default)]
    pub audit: Audit,
    /// Requests with an idempotency key.
    pub idempotency: Idempotency,
    /// What `import` reads.
    #[serde(default)]
    pub import: Import,
    /// Fleet's API.
    pub fleet: Fleet,
    /// The kinds of resources; unset for the built-in ones.
    pub entities: Option<Vec<EntityConfig>>,
}

impl Default for Settings {
    fn default() -> Self {
        defaults(TABLE.settings)
    }
}

/// Lists.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Lists {
    /// Whether lists show finalizing resources to callers that do not say. For pollers that
    /// cannot send a parameter.
    pub include_deleted: bool,
}

/// The audit trail.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Audit {
    /// How long entries are kept; unset for ever.
    #[serde(default, with = "humantime_serde")]
    pub retention: Option<Duration>,
}

/// Requests with an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Idempotency {
    /// How long a key is remembered with the answer to its request.
    #[serde(with = "humantime_serde")]
    pub retention: Duration,
}

/// What `import` reads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Import {
    /// The older service's database.
    pub from: Option<Secret>,
}

/// Fleet's API, served beside the service's own.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Fleet {
    /// Whether it is served.
    pub enabled: bool,
    /// Where its units and machines are kept.
    pub etcd: Etcd,
    /// Most items of a page.
    pub page_size: usize,
    /// What keeps units for resources.
    pub adapter: FleetAdapter,
}
