use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Jwt;
use crate::domain::tenancy;

/// The API's listener.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Server {
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
    pub limits: Limits,
    /// TLS of the API's listener.
    pub tls: Tls,
    /// Who may call.
    pub jwt: Jwt,
    /// On whose behalf.
    pub tenant: tenancy::Config,
}

/// How long clients may take.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Timeouts {
    /// To send the head of a request, and then its body.
    #[serde(with = "humantime_serde")]
    pub read: Duration,
    /// To go on reading an answer that waits to be read.
    #[serde(with = "humantime_serde")]
    pub write: Duration,
    /// To send the next request on a connection that is kept open.
    #[serde(with = "humantime_serde")]
    pub idle: Duration,
}

/// How much is served at a time.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Connections; more wait until one is closed.
    pub max_connections: usize,
    /// Requests under way; more are answered 503.
    pub max_in_flight: usize,
    /// MiB of large bodies and answers; more are answered 503.
    pub max_buffered_mib: usize,
    /// Requests of one caller.
    pub rate: Rate,
}

/// Requests of one caller, who is told 429 beyond them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rate {
    /// On average; 0 for any number.
    pub per_second: u32,
    /// At once; 0 for as many as in one second.
    pub burst: u32,
}

/// TLS of a listener.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tls {
    /// Whether it is on.
    pub enabled: bool,
    /// PEM file with the certificate and what it is signed by, in that order.
    pub cert_file: PathBuf,
    /// PEM file with its private key.
    pub key_file: PathBuf,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            hostname: String::new(),
            host: "localhost".to_owned(),
            port: 8000,
            openapi_schema_path: PathBuf::new(),
            timeouts: Timeouts::default(),
            limits: Limits::default(),
            tls: Tls::default(),
            jwt: Jwt::default(),
            tenant: tenancy::Config::default(),
        }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            read: Duration::from_secs(5),
            write: Duration::from_secs(30),
            idle: Duration::from_secs(75),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_connections: 10_000,
            max_in_flight: 512,
            max_buffered_mib: 128,
            rate: Rate::default(),
        }
    }
}
