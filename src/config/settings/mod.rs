//! The typed settings of `hyperfleet-api`. Their meanings and defaults are in `catalogue.rs`.

mod database;
mod server;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use database::{Database, Pool, Ssl, SslMode};
pub use server::{Health, Jwt, MetricsSettings, ServerSettings};

use super::catalogue::TABLE;
use hyperfleet_domain::entity_config::EntityConfig;
use hyperfleet_fleet::settings::Etcd;
use hyperfleet_server_kit::settings::{Logging, Secret, Tracing, defaults};

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub server: ServerSettings,
    pub database: Database,
    pub logging: Logging,
    pub tracing: Tracing,
    pub metrics: MetricsSettings,
    pub health: Health,
    pub lists: Lists,
    #[serde(default)]
    pub audit: Audit,
    pub history: History,
    pub idempotency: Idempotency,
    #[serde(default)]
    pub import: Import,
    pub fleet: FleetSettings,
    /// The kinds of resources; unset for the built-in ones.
    pub entities: Option<Vec<EntityConfig>>,
}

impl Default for Settings {
    fn default() -> Self {
        defaults(TABLE.settings)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Lists {
    /// For pollers that cannot send a parameter.
    pub include_deleted: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Audit {
    /// Retention of entries; unset for forever.
    #[serde(default, with = "humantime_serde")]
    pub retention: Option<Duration>,
}

/// The stored changes of resources.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct History {
    /// Their retention.
    #[serde(with = "humantime_serde")]
    pub retention: Duration,
}

/// Requests with an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Idempotency {
    /// How long a key is remembered with the answer to its request.
    #[serde(with = "humantime_serde")]
    pub retention: Duration,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Import {
    /// URL of the older service's database.
    pub from: Option<Secret>,
}

/// Fleet's API, served beside the service's own.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FleetSettings {
    pub enabled: bool,
    pub etcd: Etcd,
    pub page_size: usize,
    pub adapter: hyperfleet_fleet_adapter::Settings,
}
