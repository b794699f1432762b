//! Sections that every daemon has. A product mounts their rows, and those that it names otherwise, in its table.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::setting::{Setting, SettingKind, row};
use super::table::defaults;

const TIMES: Option<(&str, &str)> = Some(("1s", "1day"));
const COUNTS: Option<(&str, &str)> = Some(("1", "1000000"));
/// Up to 1 TiB.
const BUFFERED_MIB: Option<(&str, &str)> = Some(("1", "1048576"));

/// The log.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
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
#[serde(deny_unknown_fields)]
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
#[serde(deny_unknown_fields)]
pub struct Tracing {
    /// Whether there are any.
    pub enabled: bool,
    /// What the service is called in them.
    pub service_name: String,
}

/// How long clients may take.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
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
#[serde(deny_unknown_fields)]
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
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// On average; 0 for any number.
    pub per_second: u32,
    /// At once; 0 for as many as in one second.
    pub burst: u32,
}

/// TLS of a listener.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// Whether it is on.
    pub enabled: bool,
    /// PEM file with the certificate and what it is signed by, in that order.
    pub cert_file: PathBuf,
    /// PEM file with its private key.
    pub key_file: PathBuf,
}

/// The rows of the sections, to be mounted under other keys.
#[rustfmt::skip]
impl Masking {
    /// `enabled`.
    pub const ENABLED: Setting = row("enabled", SettingKind::Bool, "true", "Whether values that look secret are left out");
    /// `headers`.
    pub const HEADERS: Setting = row("headers", SettingKind::List, "Authorization, X-API-Key, Cookie, X-Auth-Token, X-Forwarded-Authorization", "Headers whose values are left out, beside those of tokens and identities");
    /// `fields`.
    pub const FIELDS: Setting = row("fields", SettingKind::List, "password, secret, token, api_key, access_token, refresh_token, client_secret", "Members of bodies and parameters whose values are left out: those with one of these in their name");
}

impl Default for Masking {
    fn default() -> Self {
        defaults(&[Self::ENABLED, Self::HEADERS, Self::FIELDS])
    }
}

#[rustfmt::skip]
impl Timeouts {
    /// `read`.
    pub const READ: Setting = Setting { range: TIMES, ..row("read", SettingKind::Duration, "5s", "How long a client may take to send the head of a request, and then its body") };
    /// `write`.
    pub const WRITE: Setting = Setting { range: TIMES, ..row("write", SettingKind::Duration, "30s", "How long an answer may wait for its client to go on reading") };
    /// `idle`.
    pub const IDLE: Setting = Setting { range: TIMES, ..row("idle", SettingKind::Duration, "1m 15s", "How long a connection is kept open for the next request") };
}

#[rustfmt::skip]
impl Limits {
    /// `max_connections`.
    pub const CONNECTIONS: Setting = Setting { range: COUNTS, ..row("max_connections", SettingKind::Number, "10000", "Most connections at a time; more wait until one is closed") };
    /// `max_in_flight`.
    pub const IN_FLIGHT: Setting = Setting { range: COUNTS, ..row("max_in_flight", SettingKind::Number, "512", "Most requests under way at a time; more are answered 503") };
    /// `max_buffered_mib`.
    pub const BUFFERED: Setting = Setting { range: BUFFERED_MIB, ..row("max_buffered_mib", SettingKind::Number, "128", "Most MiB of large bodies and answers that are held for clients at a time; more are answered 503") };
}
