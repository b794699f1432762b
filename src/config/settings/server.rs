use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::auth::IssuerConfig;
use crate::domain::tenancy;
use hyperfleet_server_kit::settings::{LimitSettings, Timeouts, Tls};

/// The API's listener.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ServerSettings {
    /// What this instance is called in its log; empty for nothing.
    pub hostname: String,
    /// Address or name to listen on.
    pub host: String,
    /// Port to listen on; 0 for a free one.
    pub port: u16,
    /// OpenAPI document with the schemas of specs; empty for none, so that any spec will do.
    pub openapi_schema_path: PathBuf,
    /// How long clients may take.
    pub timeouts: Timeouts,
    /// How much is served at a time.
    pub limits: LimitSettings,
    /// TLS of the API's listener.
    pub tls: Tls,
    /// Who may call.
    pub jwt: Jwt,
    /// On whose behalf.
    pub tenant: tenancy::Config,
}

/// Who may call.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Jwt {
    /// Whether callers must present a token.
    pub enabled: bool,
    /// Whose tokens are taken, in the order in which they are tried.
    #[serde(default)]
    pub configs: Vec<IssuerConfig>,
}

/// Metrics and their listener.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MetricsSettings {
    /// Address or name to listen on.
    pub host: String,
    /// Port to listen on; 0 for a free one.
    pub port: u16,
    /// TLS of this listener.
    pub tls: Tls,
    /// For how long a resource may stay unreconciled before it counts as stuck.
    #[serde(with = "humantime_serde")]
    pub reconciliation_stuck_threshold: Duration,
}

/// Health, its listener, and how the service ends.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Health {
    /// Address or name to listen on.
    pub host: String,
    /// Port to listen on; 0 for a free one.
    pub port: u16,
    /// TLS of this listener.
    pub tls: Tls,
    /// How long the database may take to answer before it counts as gone.
    #[serde(with = "humantime_serde")]
    pub db_ping_timeout: Duration,
    /// For how long the service goes on as before once it is told to end, but for saying that it is
    /// not ready: so that nobody sends new requests when it stops taking them.
    #[serde(with = "humantime_serde")]
    pub shutdown_delay: Duration,
    /// How long requests under way may take to end then.
    #[serde(with = "humantime_serde")]
    pub shutdown_timeout: Duration,
}
