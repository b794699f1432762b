//! Settings: what they are, where they come from, and what they must be.
//!
//! Defaults, then the file, then the environment, then flags: later ones win. Unknown keys of the
//! file are refused.

mod args;
mod load;
mod schema;

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::domain;
use crate::domain::entity_config::{self, EntityConfig};
use crate::domain::schema::Attached;

pub use args::{Args, Command, DevArgs, OpenapiArgs, OpenapiFormat, SettingsArgs};

/// Everything that can be set.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The API's listener.
    pub server: Server,
    /// The database.
    pub database: Database,
    /// The log.
    pub logging: Logging,
    /// Lists.
    pub lists: Lists,
    /// The audit trail.
    pub audit: Audit,
    /// The kinds of resources; unset for the built-in ones (decision H16).
    pub entities: Option<Vec<EntityConfig>>,
}

/// The API's listener.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Server {
    /// Address or name to listen on.
    pub host: String,
    /// Port to listen on; 0 for a free one.
    pub port: u16,
    /// Who may call.
    pub jwt: Jwt,
    /// OpenAPI document with the schemas of specs; empty for none, so that any spec will do.
    pub openapi_schema_path: PathBuf,
}

/// Who may call.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Jwt {
    /// Whether callers must present a token.
    pub enabled: bool,
}

/// The database.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Database {
    /// All of it in one URL, which then counts alone.
    pub url: Option<String>,
    /// Host name, address, or folder of a Unix socket.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Database name.
    pub name: String,
    /// Who we are there.
    pub username: String,
    /// Our password.
    pub password: String,
    /// TLS towards the database.
    pub ssl: Ssl,
    /// Connections.
    pub pool: Pool,
}

/// TLS towards the database.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Ssl {
    /// How much is verified.
    pub mode: SslMode,
    /// PEM file with the authorities to trust.
    pub root_cert_file: Option<PathBuf>,
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
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Pool {
    /// Most at a time. Few are faster than many: see docs/performance.md.
    pub max_connections: usize,
    /// How long one statement may take; 0 for no limit.
    #[serde(with = "humantime_serde")]
    pub request_timeout: Duration,
    /// How often a start tries again to reach the database.
    pub conn_retry_attempts: u32,
    /// How long it waits in between.
    #[serde(with = "humantime_serde")]
    pub conn_retry_interval: Duration,
}

/// The log.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Logging {
    /// What is logged.
    pub level: Level,
    /// How.
    pub format: Format,
}

/// What is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Everything, discarded reports too.
    Debug,
    /// A line per request, and what follows.
    Info,
    /// What went wrong without stopping anything, and what follows.
    Warn,
    /// What somebody must look at.
    Error,
}

/// How the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// One JSON object a line.
    Json,
    /// For people.
    Text,
}

/// Lists.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Lists {
    /// Whether lists show finalizing resources to callers that do not say. For pollers that
    /// cannot send a parameter (decision H3).
    pub include_deleted: bool,
}

/// The audit trail.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Audit {
    /// How long entries are kept; unset for ever.
    #[serde(with = "humantime_serde")]
    pub retention: Option<Duration>,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            host: "localhost".to_owned(),
            port: 8000,
            jwt: Jwt::default(),
            openapi_schema_path: PathBuf::new(),
        }
    }
}

impl Default for Jwt {
    fn default() -> Self {
        Self { enabled: true }
    }
}

impl Default for Database {
    fn default() -> Self {
        Self {
            url: None,
            host: "localhost".to_owned(),
            port: 5432,
            name: "hyperfleet".to_owned(),
            username: "hyperfleet".to_owned(),
            password: String::new(),
            ssl: Ssl::default(),
            pool: Pool::default(),
        }
    }
}

impl Default for Ssl {
    fn default() -> Self {
        Self {
            mode: SslMode::Disable,
            root_cert_file: None,
        }
    }
}

impl Default for Pool {
    fn default() -> Self {
        Self {
            max_connections: 16,
            request_timeout: Duration::from_secs(30),
            conn_retry_attempts: 10,
            conn_retry_interval: Duration::from_secs(3),
        }
    }
}

impl Default for Logging {
    fn default() -> Self {
        Self {
            level: Level::Info,
            format: Format::Json,
        }
    }
}

impl Settings {
    /// The kinds, checked, with the schemas of their specs.
    ///
    /// # Errors
    ///
    /// Kinds that do not fit together; a schema document that cannot be used.
    pub fn kinds(&self) -> anyhow::Result<Attached> {
        let built_in;
        let configs = if let Some(entities) = &self.entities {
            entities
        } else {
            built_in = entity_config::built_in();
            &built_in
        };
        let registry = entity_config::registry(configs)?;
        let path = &self.server.openapi_schema_path;
        let document = if path.as_os_str().is_empty() {
            None
        } else {
            Some(schema::document(path)?)
        };
        Ok(domain::schema::attach(
            registry,
            configs,
            document.as_ref(),
        )?)
    }
}
