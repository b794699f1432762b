//! Sections that every daemon has. A product mounts their rows in its table, under its own keys.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::setting::{Setting, SettingKind, row};
use super::table::defaults;

const TIMES: Option<(&str, &str)> = Some(("1s", "1day"));
const COUNTS: Option<(&str, &str)> = Some(("1", "1000000"));
/// Up to 1 TiB.
const BUFFERED_MIB: Option<(&str, &str)> = Some(("1", "1048576"));

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Logging {
    pub level: Level,
    pub format: Format,
    pub output: Output,
    pub masking: RedactionSettings,
}

/// Lowest level that is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Everything, including discarded reports.
    Debug,
    /// One line per request, and higher levels.
    Info,
    /// Failures that stop nothing, and errors.
    Warn,
    /// Failures that need attention.
    Error,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// One JSON object per line.
    Json,
    /// For people.
    Text,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Output {
    Stdout,
    Stderr,
}

/// What the log hides. Headers with tokens and identities are always hidden.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RedactionSettings {
    pub enabled: bool,
    /// Headers whose values are hidden.
    pub headers: Vec<String>,
    /// Members of bodies and query parameters whose values are hidden if their name contains one of these, in
    /// any case.
    pub fields: Vec<String>,
}

/// Traces. The standard `OTEL_EXPORTER_OTLP_ENDPOINT` is their destination; without it there are none.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Tracing {
    pub enabled: bool,
    pub service_name: String,
}

/// Timeouts for clients.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Timeouts {
    /// For the head of a request, and for its body.
    #[serde(with = "humantime_serde")]
    pub read: Duration,
    /// For reading a response.
    #[serde(with = "humantime_serde")]
    pub write: Duration,
    /// For the next request on an open connection.
    #[serde(with = "humantime_serde")]
    pub idle: Duration,
}

/// Limits of concurrent work.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LimitSettings {
    /// Most connections. Further ones wait.
    pub max_connections: usize,
    /// Most requests in progress. Further ones get 503.
    pub max_in_flight: usize,
    /// MiB for large bodies and responses. Further ones get 503.
    pub max_buffered_mib: usize,
    pub rate: Rate,
}

/// Rate limit per caller. Requests above it get 429.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// On average; 0 for no limit.
    pub per_second: u32,
    /// At once; 0 for as many as per second.
    pub burst: u32,
}

/// TLS of a listener.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    pub enabled: bool,
    /// PEM file with the certificate and its intermediate certificates, in that order.
    pub cert_file: PathBuf,
    /// PEM file with its private key.
    pub key_file: PathBuf,
}

/// The rows of the sections, to be mounted under other keys.
#[rustfmt::skip]
impl RedactionSettings {
    pub const ENABLED: Setting = row("enabled", SettingKind::Bool, "true", "Hide values that look secret");
    pub const HEADERS: Setting = row("headers", SettingKind::List, "Authorization, X-API-Key, Cookie, X-Auth-Token, X-Forwarded-Authorization", "Headers whose values are hidden, in addition to those of tokens and identities");
    pub const FIELDS: Setting = row("fields", SettingKind::List, "password, secret, token, api_key, access_token, refresh_token, client_secret", "Parts of names of body members and query parameters with hidden values");
}

impl Default for RedactionSettings {
    fn default() -> Self {
        defaults(&[Self::ENABLED, Self::HEADERS, Self::FIELDS])
    }
}

#[rustfmt::skip]
impl Timeouts {
    pub const READ: Setting = Setting { range: TIMES, ..row("read", SettingKind::Duration, "5s", "Timeout for reading the head of a request; the body has the same timeout of its own") };
    pub const WRITE: Setting = Setting { range: TIMES, ..row("write", SettingKind::Duration, "30s", "Timeout for writing a response") };
    pub const IDLE: Setting = Setting { range: TIMES, ..row("idle", SettingKind::Duration, "1m 15s", "Idle timeout of a connection") };
}

#[rustfmt::skip]
impl LimitSettings {
    pub const CONNECTIONS: Setting = Setting { range: COUNTS, ..row("max_connections", SettingKind::Number, "10000", "Maximum number of connections; further ones wait") };
    pub const IN_FLIGHT: Setting = Setting { range: COUNTS, ..row("max_in_flight", SettingKind::Number, "512", "Maximum number of requests in progress; further ones get 503") };
    pub const BUFFERED: Setting = Setting { range: BUFFERED_MIB, ..row("max_buffered_mib", SettingKind::Number, "128", "Memory for large bodies and responses, in MiB; beyond it requests get 503") };
}
