use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Fleet's API, served beside the service's own.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Fleet {
    /// Whether it is served.
    pub enabled: bool,
    /// Where its units and machines are kept.
    pub etcd: Etcd,
    /// Most items of a page.
    pub page_size: usize,
}

/// How to reach etcd, and as whom. Servers are always verified where TLS is spoken.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Etcd {
    /// URLs of its servers.
    pub endpoints: Vec<String>,
    /// The user to log in as; empty for nobody.
    pub username: String,
    /// File with its password.
    pub password_file: PathBuf,
    /// PEM file with the authorities of the servers' certificates.
    pub ca_file: PathBuf,
    /// PEM file with the certificate to show.
    pub cert_file: PathBuf,
    /// PEM file with its private key.
    pub key_file: PathBuf,
    /// The name that the servers' certificates are for, if not that of their URLs.
    pub server_name: String,
    /// What all keys begin with.
    pub key_prefix: String,
    /// How long a call may take.
    #[serde(with = "humantime_serde")]
    pub request_timeout: Duration,
}

impl Default for Fleet {
    fn default() -> Self {
        Self {
            enabled: false,
            etcd: Etcd::default(),
            page_size: 100,
        }
    }
}

impl Default for Etcd {
    fn default() -> Self {
        Self {
            endpoints: vec!["http://127.0.0.1:2379".to_owned()],
            username: String::new(),
            password_file: PathBuf::new(),
            ca_file: PathBuf::new(),
            cert_file: PathBuf::new(),
            key_file: PathBuf::new(),
            server_name: String::new(),
            key_prefix: "/fleet/v3/".to_owned(),
            request_timeout: Duration::from_secs(5),
        }
    }
}
