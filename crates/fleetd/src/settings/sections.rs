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
    Level, Limits, Logging, Masking, Output, Secret, Timeouts, Tracing, default_layers,
};

/// Everything that can be set.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Where units and machines are kept.
    pub etcd: Etcd,
    /// The password of etcd's user, where it stands in the settings themselves.
    #[serde(default)]
    pub etcd_password: Secret,
    /// What decides where units run.
    pub engine: Engine,
    /// What runs units.
    pub agent: Agent,
    /// What this machine is called; empty for what `/etc/machine-id` says.
    pub machine_id: String,
    /// Where the API is served, and to whom.
    pub listen: Listen,
    /// Most items of a page.
    pub page_size: usize,
    /// How much is served at a time.
    pub limits: Limits,
    /// How long clients may take.
    pub timeouts: Timeouts,
    /// How long requests under way may take once it is to end.
    #[serde(with = "humantime_serde")]
    pub shutdown_timeout: Duration,
    /// The log.
    pub logging: Logging,
    /// Traces.
    pub tracing: Tracing,
    /// What the older `verbosity` says; `log_level` counts before it.
    pub(super) verbosity: usize,
    pub(super) level: Option<Level>,
}

/// What decides where units run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Engine {
    /// Whether this instance ever does.
    pub is_disabled: bool,
    /// How often all is looked at, changes or not.
    #[serde(with = "humantime_serde")]
    pub interval: Duration,
    /// How long machines count as there without a sign of life, and have to come back.
    #[serde(with = "humantime_serde")]
    pub machine_lease: Duration,
}

/// What runs units.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// Whether this instance never does.
    pub is_disabled: bool,
    /// Address of the machine; empty to find it out.
    pub public_ip: String,
    /// Where other machines reach the API; empty if they do not.
    pub advertise_address: String,
    /// Pairs `key=value`, with commas between them.
    pub metadata: String,
    pub units_directory: PathBuf,
    pub systemd_user: bool,
    is_offline_start: bool,
    state_directory: PathBuf,
    shutdown_mode: ShutdownMode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ShutdownMode {
    Keep,
    Stop,
    Move,
}

/// Where the API is served, and to whom.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listen {
    /// The sockets.
    pub addresses: Vec<Address>,
    /// Permissions of those in the file system.
    pub socket_mode: u32,
    /// PEM file with the certificate of TCP listeners; empty for no TLS.
    pub cert_file: PathBuf,
    /// PEM file with its private key.
    pub key_file: PathBuf,
    /// PEM file with the authorities of clients' certificates; empty where clients show none.
    pub client_ca_file: PathBuf,
    /// Whether other machines may call without a certificate.
    pub is_anonymous: bool,
}

impl Listen {
    /// The files by which this fleetd and those of other machines know each other, if there are any.
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

impl Agent {
    /// The metadata, by key.
    pub fn pairs(&self) -> BTreeMap<String, String> {
        let pairs = self
            .metadata
            .split(',')
            .filter_map(|pair| pair.split_once('='));
        let trimmed = pairs.map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()));
        trimmed.filter(|(key, _)| !key.is_empty()).collect()
    }

    /// Which systemd runs its units.
    pub fn bus(&self) -> Bus {
        if self.systemd_user {
            Bus::User
        } else {
            Bus::System
        }
    }

    /// Where duties are kept over a reboot, if they are to be taken up without etcd.
    pub fn offline_directory(&self) -> Option<PathBuf> {
        self.is_offline_start.then(|| self.state_directory.clone())
    }

    /// What becomes of units when it ends.
    pub fn leave(&self) -> Leave {
        match self.shutdown_mode {
            ShutdownMode::Keep => Leave::Running,
            ShutdownMode::Stop => Leave::Stopped,
            ShutdownMode::Move => Leave::Moved,
        }
    }
}

impl Engine {
    /// How long a leader stays one without a sign of life, in seconds: five times the interval, as in the older
    /// fleet (fleet.md §4.1), and two at least, which is etcd's own least.
    pub fn lease_seconds(&self) -> u32 {
        let seconds = (5 * self.interval.as_nanos()).div_ceil(1_000_000_000);
        // Few, as the interval is limited.
        u32::try_from(seconds).unwrap_or(u32::MAX).max(2)
    }
}

/// The defaults: those of the table, and what has no key.
pub(super) fn base() -> Figment {
    let tracing = Tracing {
        enabled: true,
        service_name: "fleetd".to_owned(),
    };
    default_layers(TABLE.settings)
        .merge(("logging.level", Level::Info))
        // Standard output is for what SIGUSR1 asks for.
        .merge(("logging.output", Output::Stderr))
        .merge(("logging.masking", Masking::default()))
        .merge(("tracing", tracing))
}

impl Settings {
    /// Takes what several keys say together.
    pub(super) fn settle(&mut self) {
        let by_verbosity = if self.verbosity > 0 {
            Level::Debug
        } else {
            Level::Info
        };
        self.logging.level = self.level.unwrap_or(by_verbosity);
    }
}
