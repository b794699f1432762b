//! What a running adapter consists of.

use std::sync::Arc;
use std::time::Duration;

use hyperfleet_adapter::Api;
use hyperfleet_fleet::Fleet;
use hyperfleet_fleet::keys::KeyStore;

use crate::settings::Settings;
use crate::workloads::Workloads;

/// A fleet adapter to run.
#[derive(Debug, Clone)]
pub struct Running<S: KeyStore> {
    pub settings: Settings,
    /// The program keeps its mirror.
    pub fleet: Fleet<S>,
    pub store: S,
    pub api: Api,
    pub workloads: Arc<Workloads>,
    /// Name of this replica.
    pub instance: String,
    /// Prefix of its own keys in etcd ([`keys`](crate::approval::keys)).
    pub keys: String,
    /// Path segments of its kinds, such as `nodepools`.
    pub kinds: Vec<String>,
    /// How long work in progress may take at the end.
    pub grace: Duration,
}
