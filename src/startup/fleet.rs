//! Fleet on etcd, as both programs have it: what is kept beside the requests.

use anyhow::{Context as _, anyhow};
use tokio::task::JoinSet;

use super::etcd;
use crate::config;
use crate::fleet::{EtcdFleet, Fleet};
use crate::kit::faults::Faults;
use crate::kit::supervise::{PAUSE, supervise};
use crate::storage::etcd::{EtcdKeys, Settings};
use crate::storage::registry::{Prefix, Registry};

/// What the settings of etcd are called in the service.
const ETCD: etcd::Names = etcd::Names {
    endpoints: "fleet.etcd.endpoints",
    username: "fleet.etcd.username",
    password: "fleet.etcd.password_file",
    ca_file: "fleet.etcd.ca_file",
    cert_file: "fleet.etcd.cert_file",
    key_file: "fleet.etcd.key_file",
};

/// Where units and machines are kept.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) etcd: Settings,
    pub(super) prefix: Prefix,
    pub(super) page_size: usize,
}

/// What the service serves of fleet; nothing unless the settings say so. Reads the files that they name.
///
/// # Errors
///
/// Everything that cannot be right, with its setting.
pub(super) fn place(settings: &config::Fleet) -> anyhow::Result<Option<Place>> {
    if !settings.enabled {
        return Ok(None);
    }
    let etcd = etcd::settings(&settings.etcd, &config::Secret::default(), &ETCD);
    let prefix = prefix("fleet.etcd.key_prefix", &settings.etcd.key_prefix);
    let mut faults = Faults::default();
    let parts = faults.part(etcd).zip(faults.part(prefix));
    faults.refuse()?;
    Ok(parts.map(|(etcd, prefix)| Place {
        etcd,
        prefix,
        page_size: settings.page_size,
    }))
}

/// The prefix of all keys, by the setting that names it.
///
/// # Errors
///
/// It can be none.
pub(super) fn prefix(name: &str, text: &str) -> anyhow::Result<Prefix> {
    Prefix::new(text).map_err(|_| {
        anyhow!("{name} is {text:?}: give 1 to 255 printable characters, such as /fleet/v3/")
    })
}

/// Fleet, before anything was asked of etcd.
#[derive(Clone)]
pub(super) struct Prepared {
    pub(super) fleet: EtcdFleet,
    pub(super) registry: Registry<EtcdKeys>,
    etcd: Settings,
}

impl Prepared {
    /// Prepares for talking to etcd, and talks to nobody yet.
    ///
    /// # Errors
    ///
    /// Settings that cannot be right, which they were checked for.
    pub(super) fn new(place: Place) -> anyhow::Result<Self> {
        let keys = EtcdKeys::prepare(place.etcd.clone()).context("cannot prepare for etcd")?;
        let registry = Registry::new(keys, place.prefix);
        Ok(Self {
            fleet: Fleet::new(registry.clone(), place.page_size),
            registry,
            etcd: place.etcd,
        })
    }

    /// Keeps what comes from etcd, and says whether it is there, from now on: until the tasks end.
    pub(super) fn keep(self, tasks: &mut JoinSet<()>) {
        let Self {
            fleet,
            registry,
            etcd,
        } = self;
        let mirrored = fleet.clone();
        tasks.spawn(supervise("keep the mirror of fleet", PAUSE, move || {
            mirrored.clone().keep_mirror()
        }));
        tasks.spawn(supervise("say whether etcd is there", PAUSE, move || {
            let fleet = fleet.clone();
            etcd::keep_told(registry.clone(), etcd.clone(), move || fleet.is_connected())
        }));
    }
}
