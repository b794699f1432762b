//! The typed settings of fleetd.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use figment::Figment;
use serde::Deserialize;

use super::Address;
use super::keys::TABLE;
use hyperfleet_fleet::agent::{Bus, Leave};
use hyperfleet_fleet::inspect::PeerFiles;
use hyperfleet_fleet::settings::Etcd;
use hyperfleet_server_kit::settings::{
    Level, LimitSettings, Logging, Output, RedactionSettings, Secret, Timeouts, Tracing,
    default_layers,
};

/// All settings.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub etcd: Etcd,
    /// The password of etcd's user, if it is not in a file.
    #[serde(default)]
    pub etcd_password: Secret,
    pub engine: EngineSettings,
    pub agent: AgentSettings,
    /// Empty: the id in `/etc/machine-id`.
    pub machine_id: String,
    pub listen: Listen,
    /// Most items of a page.
    pub page_size: usize,
    pub limits: LimitSettings,
    pub timeouts: Timeouts,
    /// How long requests in progress may take during shutdown.
    #[serde(with = "humantime_serde")]
    pub shutdown_timeout: Duration,
    pub logging: Logging,
    pub tracing: Tracing,
    /// Level by the older `verbosity`; `log_level` takes precedence.
    pub(super) verbosity: usize,
    pub(super) level: Option<Level>,
}

/// The engine, which decides where units run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EngineSettings {
    pub is_disabled: bool,
    /// How often everything is checked without a change.
    #[serde(with = "humantime_serde")]
    pub interval: Duration,
    /// How long machines count as members without a sign of life, and may take to return.
    #[serde(with = "humantime_serde")]
    pub machine_lease: Duration,
}

/// The agent, which runs units.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentSettings {
    pub is_disabled: bool,
    /// Address of the machine; empty: detected.
    pub public_ip: String,
    /// Where other machines reach the API; empty: nowhere.
    pub advertise_address: String,
    /// Pairs `key=value`, separated by commas.
    pub metadata: String,
    pub units_directory: PathBuf,
    pub systemd_user: bool,
    pub state_directory: PathBuf,
    shutdown_mode: ShutdownMode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ShutdownMode {
    Keep,
    Stop,
    Move,
}

/// The listeners of the API, and their clients.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listen {
    pub addresses: Vec<Address>,
    /// Permissions of unix sockets.
    pub socket_mode: u32,
    /// PEM file with the certificate of TCP listeners; empty: no TLS.
    pub cert_file: PathBuf,
    /// PEM file with its private key.
    pub key_file: PathBuf,
    /// PEM file with the authorities of clients' certificates; empty: no client certificates.
    pub client_ca_file: PathBuf,
    /// Whether other machines may connect without a certificate.
    pub is_anonymous: bool,
    /// Whether the API is not served.
    pub is_disabled: bool,
}

impl Listen {
    /// The certificates for mutual TLS between fleetd instances, if configured.
    pub fn peer_files(&self) -> Option<PeerFiles> {
        let files = [&self.cert_file, &self.key_file, &self.client_ca_file];
        let has_all = files.iter().all(|file| !file.as_os_str().is_empty());
        has_all.then(|| PeerFiles {
            cert: self.cert_file.clone(),
            key: self.key_file.clone(),
            ca: self.client_ca_file.clone(),
        })
    }
}

impl AgentSettings {
    /// The metadata by key.
    pub fn pairs(&self) -> BTreeMap<String, String> {
        let pairs = self
            .metadata
            .split(',')
            .filter_map(|pair| pair.split_once('='));
        let trimmed = pairs.map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()));
        trimmed.filter(|(key, _)| !key.is_empty()).collect()
    }

    /// The systemd that runs its units.
    pub fn bus(&self) -> Bus {
        if self.systemd_user {
            Bus::User
        } else {
            Bus::System
        }
    }

    /// What happens to units when it stops.
    pub fn leave(&self) -> Leave {
        match self.shutdown_mode {
            ShutdownMode::Keep => Leave::Running,
            ShutdownMode::Stop => Leave::Stopped,
            ShutdownMode::Move => Leave::Moved,
        }
    }
}

impl EngineSettings {
    /// How long a leader stays one without a sign of life, in seconds: five times the interval, as in the older
    /// fleet, and at least two, which is etcd's minimum.
    pub fn lease_seconds(&self) -> u32 {
        let seconds = (5 * self.interval.as_nanos()).div_ceil(1_000_000_000);
        // The interval is limited.
        u32::try_from(seconds).unwrap_or(u32::MAX).max(2)
    }
}

/// The defaults: those of the table, and those without a key.
pub(super) fn base() -> Figment {
    let tracing = Tracing {
        enabled: true,
        service_name: "fleetd".to_owned(),
    };
    default_layers(TABLE.settings)
        .merge(("logging.level", Level::Info))
        // Standard output is for the status that SIGUSR1 prints.
        .merge(("logging.output", Output::Stderr))
        .merge(("logging.masking", RedactionSettings::default()))
        .merge(("tracing", tracing))
}

impl Settings {
    /// Combines keys that belong together.
    pub(super) fn combine(&mut self) {
        let by_verbosity = if self.verbosity > 0 {
            Level::Debug
        } else {
            Level::Info
        };
        self.logging.level = self.level.unwrap_or(by_verbosity);
    }
}
