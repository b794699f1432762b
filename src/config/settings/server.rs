//! Settings of the listeners: the API's, metrics and health.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use hyperfleet_auth::IssuerConfig;
use hyperfleet_domain::tenancy;
use hyperfleet_server_kit::settings::{LimitSettings, Timeouts, Tls};

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ServerSettings {
    /// Instance name in logs; empty for none.
    pub hostname: String,
    /// Address or name to listen on.
    pub host: String,
    /// 0 for a free one.
    pub port: u16,
    /// OpenAPI document with the schemas of specs; empty for none.
    pub openapi_schema_path: PathBuf,
    pub timeouts: Timeouts,
    pub limits: LimitSettings,
    pub tls: Tls,
    pub jwt: Jwt,
    pub tenant: tenancy::Config,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Jwt {
    /// Require a token of every caller.
    pub enabled: bool,
    /// Issuers of accepted tokens, in the order in which they are tried.
    #[serde(default)]
    pub configs: Vec<IssuerConfig>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MetricsSettings {
    /// Address or name to listen on.
    pub host: String,
    /// 0 for a free one.
    pub port: u16,
    pub tls: Tls,
    /// How long a resource may stay unreconciled before it counts as stuck.
    #[serde(with = "humantime_serde")]
    pub reconciliation_stuck_threshold: Duration,
}

/// Health, its listener, and the times of the shutdown.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Health {
    /// Address or name to listen on.
    pub host: String,
    /// 0 for a free one.
    pub port: u16,
    pub tls: Tls,
    /// Timeout for the database's answer to a readiness check.
    #[serde(with = "humantime_serde")]
    pub db_ping_timeout: Duration,
    /// How long the service continues to accept requests after the signal to stop, while it reports that it is not ready: load
    /// balancers notice before it refuses requests.
    #[serde(with = "humantime_serde")]
    pub shutdown_delay: Duration,
    /// How long requests in progress may take after that.
    #[serde(with = "humantime_serde")]
    pub shutdown_timeout: Duration,
}
