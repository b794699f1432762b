//! Settings of the database and its connections.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use hyperfleet_server_kit::settings::Secret;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Database {
    /// Only `postgres`.
    pub dialect: String,
    /// The address as one URL. The TLS mode may be set beside it, unless the URL has one.
    pub url: Option<Secret>,
    /// Host name, address, or folder of a Unix socket.
    pub host: String,
    pub port: u16,
    pub name: String,
    pub username: String,
    #[serde(default)]
    pub password: Secret,
    /// Log every statement, without its values.
    pub debug: bool,
    pub ssl: Ssl,
    pub pool: Pool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Ssl {
    /// `None`: the mode of the URL, or no TLS without one.
    pub mode: Option<SslMode>,
    /// PEM file with the authorities to trust; empty for the system's.
    pub root_cert_file: PathBuf,
}

/// How the server's certificate is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SslMode {
    Disable,
    /// TLS, unverified.
    Require,
    /// The certificate must be valid.
    VerifyCa,
    /// The certificate must be valid and for this host.
    VerifyFull,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Pool {
    /// Few are faster than many: see docs/internals/performance.md.
    pub max_connections: usize,
    pub max_idle_connections: usize,
    /// 0 for no limit.
    #[serde(with = "humantime_serde")]
    pub conn_max_lifetime: Duration,
    /// 0 for no limit.
    #[serde(with = "humantime_serde")]
    pub conn_max_idle_time: Duration,
    /// Of one statement; 0 for no limit.
    #[serde(with = "humantime_serde")]
    pub request_timeout: Duration,
    pub conn_retry_attempts: u32,
    #[serde(with = "humantime_serde")]
    pub conn_retry_interval: Duration,
    /// How long `migrate` waits for another `migrate`; 0 for 5 minutes.
    #[serde(with = "humantime_serde")]
    pub advisory_lock_timeout: Duration,
}
