//! The machine's registration on its disk, so that its next boot can end it instead of waiting until its lease expires.
//!
//! The next boot must be certain that no process renews that lease: it is on the same hardware, where only one boot runs at a
//! time, and it is another boot. A copy of the disk, such as an image that was made from a running machine, is on other
//! hardware (`docs/decisions/0082-a-boot-ends-the-earlier-one.md`).

use serde::{Deserialize, Serialize};

use super::Host;
use super::disk::Disk;
use crate::registry::Registration;

const FILE: &str = "registration.json";

#[derive(Debug)]
pub(super) struct KeptRegistration {
    host: Host,
    /// The machine's key in etcd.
    key: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    hardware: String,
    boot: String,
    key: String,
    registration: Registration,
}

impl KeptRegistration {
    pub(super) fn new(host: Host, key: String) -> Self {
        Self { host, key }
    }

    /// The registration of an earlier boot of this machine; `None` if there is none, or if it may be that of a machine
    /// that runs.
    pub(super) fn of_earlier_boot(&self) -> Option<Registration> {
        if !self.host.directory.join(FILE).exists() {
            return None;
        }
        let read = Disk::open(&self.host.directory).map_err(|error| error.to_string());
        let read = read.and_then(|disk| disk.read::<Kept>(FILE));
        let kept = read.unwrap_or_else(|error| {
            tracing::warn!(
                error,
                "registration of the earlier boot unreadable: ignoring it"
            );
            None
        })?;
        let is_earlier = kept.hardware == self.host.hardware
            && kept.boot != self.host.boot
            && kept.key == self.key;
        is_earlier.then_some(kept.registration)
    }

    /// A failure means only that the next boot waits for the lease.
    pub(super) fn keep(&self, registration: &Registration) {
        let kept = Kept {
            hardware: self.host.hardware.clone(),
            boot: self.host.boot.clone(),
            key: self.key.clone(),
            registration: registration.clone(),
        };
        let disk = Disk::open(&self.host.directory);
        if let Err(error) = disk.and_then(|disk| disk.write_json(FILE, &kept)) {
            tracing::debug!(%error, "registration not kept for the next boot");
        }
    }
}
