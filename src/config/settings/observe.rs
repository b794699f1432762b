//! What operators look at: the log, traces, metrics, health.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Tls;

/// The log.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Logging {
    /// What is logged.
    pub level: Level,
    /// How.
    pub format: Format,
    /// Where to.
    pub output: Output,
    /// What is left out of it.
    pub masking: Masking,
}

/// What is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// One JSON object a line.
    Json,
    /// For people.
    Text,
}

/// Where the log goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Output {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// What is left out of the log. The headers that carry tokens and identities are always left out.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Masking {
    /// Whether anything is.
    pub enabled: bool,
    /// Headers whose values are.
    pub headers: Vec<String>,
    /// Members of bodies and parameters of queries whose values are: those whose name contains one
    /// of these, whatever its case.
    pub fields: Vec<String>,
}

/// Traces. Where they go is said by the standard `OTEL_EXPORTER_OTLP_ENDPOINT`; nowhere without it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tracing {
    /// Whether there are any.
    pub enabled: bool,
    /// What the service is called in them.
    pub service_name: String,
}

/// Metrics and their listener.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Metrics {
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
#[serde(deny_unknown_fields, default)]
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

impl Default for Logging {
    fn default() -> Self {
        Self {
            level: Level::Info,
            format: Format::Json,
            output: Output::Stdout,
            masking: Masking::default(),
        }
    }
}

impl Default for Masking {
    fn default() -> Self {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Self {
            enabled: true,
            headers: owned(&[
                "Authorization",
                "X-API-Key",
                "Cookie",
                "X-Auth-Token",
                "X-Forwarded-Authorization",
            ]),
            fields: owned(&[
                "password",
                "secret",
                "token",
                "api_key",
                "access_token",
                "refresh_token",
                "client_secret",
            ]),
        }
    }
}

impl Default for Tracing {
    fn default() -> Self {
        Self {
            enabled: true,
            service_name: "hyperfleet-api".to_owned(),
        }
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            host: "localhost".to_owned(),
            port: 9090,
            tls: Tls::default(),
            reconciliation_stuck_threshold: Duration::from_mins(10),
        }
    }
}

impl Default for Health {
    fn default() -> Self {
        Self {
            host: "localhost".to_owned(),
            port: 8080,
            tls: Tls::default(),
            db_ping_timeout: Duration::from_secs(2),
            shutdown_delay: Duration::from_secs(5),
            shutdown_timeout: Duration::from_secs(20),
        }
    }
}
