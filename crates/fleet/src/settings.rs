//! Settings of fleet's registry, which both programs mount: `hyperfleet-api` below `fleet`, fleetd under the
//! older names.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use hyperfleet_server_kit::settings::{Setting, SettingKind, defaults, row};

/// Largest page: what the registry reads at a time.
pub const PAGE_SIZE_MAX: usize = 256;
/// Limits of the setting as text. The maximum is `PAGE_SIZE_MAX`.
pub const PAGE_SIZES: Option<(&str, &str)> = Some(("1", "256"));

/// How to reach etcd. Servers are always verified over TLS.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Etcd {
    pub endpoints: Vec<String>,
    /// Empty: no log-in.
    pub username: String,
    pub password_file: PathBuf,
    /// PEM file with the authorities of the servers' certificates.
    pub ca_file: PathBuf,
    /// PEM file with the client certificate.
    pub cert_file: PathBuf,
    /// PEM file with its private key.
    pub key_file: PathBuf,
    /// Name in the servers' certificates, if it is not that of their URLs.
    pub server_name: String,
    pub key_prefix: String,
    #[serde(with = "humantime_serde")]
    pub request_timeout: Duration,
}

/// The rows to mount.
#[rustfmt::skip]
impl Etcd {
    pub const ENDPOINTS: Setting = row("endpoints", SettingKind::List, "http://127.0.0.1:2379", "URLs of etcd's servers for fleet; all http, or all https");
    pub const USERNAME: Setting = row("username", SettingKind::Text, "", "User of etcd");
    pub const PASSWORD_FILE: Setting = row("password_file", SettingKind::File, "", "File with the password of etcd's user");
    pub const CA_FILE: Setting = row("ca_file", SettingKind::File, "", "PEM file with the authorities of etcd's certificates; needed for https");
    pub const CERT_FILE: Setting = row("cert_file", SettingKind::File, "", "PEM file with the client certificate for etcd");
    pub const KEY_FILE: Setting = row("key_file", SettingKind::File, "", "PEM file with its private key");
    pub const SERVER_NAME: Setting = row("server_name", SettingKind::Text, "", "Server name in etcd's certificates, if it differs from the host in the URLs");
    pub const KEY_PREFIX: Setting = row("key_prefix", SettingKind::Text, "/fleet/v3/", "Prefix of all keys of fleet");
    pub const REQUEST_TIMEOUT: Setting = Setting { range: Some(("100ms", "1m")), ..row("request_timeout", SettingKind::Duration, "5s", "Timeout of a call to etcd") };
}

impl Default for Etcd {
    fn default() -> Self {
        defaults(&[
            Self::ENDPOINTS,
            Self::USERNAME,
            Self::PASSWORD_FILE,
            Self::CA_FILE,
            Self::CERT_FILE,
            Self::KEY_FILE,
            Self::SERVER_NAME,
            Self::KEY_PREFIX,
            Self::REQUEST_TIMEOUT,
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_the_largest_page_is_its_number() {
        let largest = PAGE_SIZES.map(|(_, most)| most.parse());
        assert_eq!(largest, Some(Ok(PAGE_SIZE_MAX)));
    }
}
