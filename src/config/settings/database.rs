use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use hyperfleet_server_kit::settings::Secret;

/// The database.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Database {
    /// Which sort of database: there is one.
    pub dialect: String,
    /// All of it in one URL, which then counts alone. TLS may be said beside it, but not what it says
    /// itself.
    pub url: Option<Secret>,
    /// Host name, address, or folder of a Unix socket.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Database name.
    pub name: String,
    /// Who we are there.
    pub username: String,
    /// Our password.
    #[serde(default)]
    pub password: Secret,
    /// Log every statement, without its values.
    pub debug: bool,
    /// TLS towards the database.
    pub ssl: Ssl,
    /// Connections.
    pub pool: Pool,
}

/// TLS towards the database.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Ssl {
    /// How much is verified. Unset: nothing, without TLS; with a URL what that says.
    pub mode: Option<SslMode>,
    /// PEM file with the authorities to trust; empty for the system's.
    pub root_cert_file: PathBuf,
}

/// How much of TLS is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SslMode {
    /// No TLS.
    Disable,
    /// TLS, unverified.
    Require,
    /// The certificate must be good.
    VerifyCa,
    /// The certificate must be good and for this host.
    VerifyFull,
}

/// Connections to the database.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Pool {
    /// Most at a time. Few are faster than many: see docs/internals/performance.md.
    pub max_connections: usize,
    /// Most that are kept while nobody needs them.
    pub max_idle_connections: usize,
    /// How old one may become; 0 for any age.
    #[serde(with = "humantime_serde")]
    pub conn_max_lifetime: Duration,
    /// How long one is kept while nobody needs it; 0 for any time.
    #[serde(with = "humantime_serde")]
    pub conn_max_idle_time: Duration,
    /// How long one statement may take; 0 for no limit.
    #[serde(with = "humantime_serde")]
    pub request_timeout: Duration,
    /// Number of retries to reach the database at startup.
    pub conn_retry_attempts: u32,
    /// How long it waits in between.
    #[serde(with = "humantime_serde")]
    pub conn_retry_interval: Duration,
    /// How long `migrate` waits for another one to end; 0 for 5 minutes.
    #[serde(with = "humantime_serde")]
    pub advisory_lock_timeout: Duration,
}
