//! From settings to fleet on etcd, for every program: checks, preparation, and tasks beside the requests.

pub mod etcd;

use anyhow::{Context as _, anyhow};
use hyperfleet_server_kit::supervise::supervise;
use tokio::task::JoinSet;

use crate::etcd::{EtcdKeys, Settings};
use crate::registry::{Prefix, Registry};
use crate::{EtcdFleet, Fleet};

/// Where the registry is stored.
#[derive(Clone)]
pub struct RegistryLocation {
    pub etcd: Settings,
    pub prefix: Prefix,
    pub page_size: usize,
}

/// Parses the prefix of all keys. `name` is its setting.
///
/// # Errors
/// The prefix is invalid.
pub fn registry_prefix(name: &str, text: &str) -> anyhow::Result<Prefix> {
    Prefix::new(text).map_err(|_| {
        anyhow!("{name} is {text:?}: give 1 to 255 printable characters, such as /fleet/v3/")
    })
}

/// Fleet before its first request to etcd.
#[derive(Clone)]
pub struct Prepared {
    pub fleet: EtcdFleet,
    pub registry: Registry<EtcdKeys>,
    /// The key store, for keys that are not fleet's.
    pub keys: EtcdKeys,
    etcd: Settings,
}

impl Prepared {
    /// Prepares for etcd without contacting it.
    ///
    /// # Errors
    /// Invalid settings, which were checked before.
    pub fn new(location: RegistryLocation) -> anyhow::Result<Self> {
        let keys = EtcdKeys::prepare(location.etcd.clone()).context("cannot prepare for etcd")?;
        let registry = Registry::new(keys.clone(), location.prefix);
        Ok(Self {
            fleet: Fleet::new(registry.clone(), location.page_size),
            registry,
            keys,
            etcd: location.etcd,
        })
    }

    /// Starts the tasks that keep the mirror and log whether etcd is reachable.
    pub fn spawn(self, tasks: &mut JoinSet<()>) {
        let Self {
            fleet,
            registry,
            etcd,
            ..
        } = self;
        let mirrored = fleet.clone();
        tasks.spawn(supervise("keep the mirror of fleet", move || {
            mirrored.clone().run_mirror()
        }));
        tasks.spawn(supervise("say whether etcd is there", move || {
            let fleet = fleet.clone();
            etcd::log_connection(registry.clone(), etcd.clone(), fleet.mirror.subscribe())
        }));
    }
}
