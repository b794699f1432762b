//! The typed settings of `hyperfleet-api`. Every default is in `catalogue.rs`.

mod database;
mod fleet_adapter;
mod server;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use database::{Database, Pool, Ssl, SslMode};
pub use fleet_adapter::{FleetAdapterSettings, RemovalLimitSettings};
pub use server::{Health, Jwt, MetricsSettings, ServerSettings};

use super::catalogue::TABLE;
use crate::domain::entity_config::EntityConfig;
use hyperfleet_fleet::settings::Etcd;
use hyperfleet_server_kit::settings::{Logging, Secret, Tracing, defaults};

/// Everything that can be set.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The API's listener.
    pub server: ServerSettings,
    /// The database.
    pub database: Database,
    /// The log.
    pub logging: Logging,
    /// Traces.
    pub tracing: Tracing,
    /// Metrics and their listener.
    pub metrics: MetricsSettings,
    /// Health, its listener, and how the service ends.
    pub health: Health,
    /// Lists.
    pub lists: Lists,
    /// The audit trail.
    #[serde(default)]
    pub audit: Audit,
    /// What `import` reads.
    #[serde(default)]
    pub import: Import,
    /// Fleet's API.
    pub fleet: FleetSettings,
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
pub struct FleetSettings {
    /// Whether it is served.
    pub enabled: bool,
    /// Where its units and machines are kept.
    pub etcd: Etcd,
    /// Most items of a page.
    pub page_size: usize,
    /// What keeps units for resources.
    pub adapter: FleetAdapterSettings,
}
