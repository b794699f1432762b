//! The last orders of the machine, kept over a reboot, for machines that must start their units even without
//! etcd (`offline_start`).
//!
//! Units that must never run twice are not kept: another machine may have started them meanwhile.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::disk::Disk;
use super::duties::{Files, Orders, requirements};
use crate::keys::Revision;
use hyperfleet_fleet_model::agent::Desired;
use hyperfleet_fleet_model::unit::{DesiredState, Options};

const DUTIES: &str = "duties.json";

/// A machine's orders on its disk.
#[derive(Debug)]
pub(super) struct Offline {
    disk: Disk,
    saved: Saved,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Saved {
    machine: String,
    units: BTreeMap<String, SavedUnit>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SavedUnit {
    state: DesiredState,
    /// The epoch of the engine that placed the unit here; 0 for a global unit.
    epoch: Revision,
    restarts: u64,
    /// The unit's file as canonical text.
    file: String,
}

impl Offline {
    /// Reads the orders from a folder, which is created if it does not exist. Unreadable orders count as none.
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        let disk = Disk::open(folder)?;
        let saved = disk.read(DUTIES).unwrap_or_else(|error| {
            tracing::warn!(error, "saved orders unreadable: ignoring them");
            None
        });
        Ok(Self {
            disk,
            saved: saved.unwrap_or_default(),
        })
    }

    /// Stores a machine's orders. Pinned units keep what was stored for them before.
    pub(super) fn save(&mut self, machine: &str, orders: &Orders, files: &Files) {
        let mut units = BTreeMap::new();
        for (unit, desired) in &orders.desired {
            let file = files
                .get(&desired.hash)
                .filter(|_| desired.state.is_active());
            let file = file.filter(|file| !requirements(unit, file).is_singleton);
            if let Some(file) = file {
                let unit_now = SavedUnit {
                    state: desired.state,
                    epoch: orders.epochs.get(unit).copied().unwrap_or_default(),
                    restarts: desired.restarts,
                    file: file.text(),
                };
                units.insert(unit.clone(), unit_now);
            }
        }
        for (unit, before) in &self.saved.units {
            if orders.pinned.contains_key(unit) && self.saved.machine == machine {
                units.entry(unit.clone()).or_insert_with(|| before.clone());
            }
        }
        let machine = machine.to_owned();
        let now = Saved { machine, units };
        if now == self.saved {
            return;
        }
        match self.disk.write_json(DUTIES, &now) {
            Ok(()) => self.saved = now,
            Err(error) => {
                tracing::warn!(%error, "saving orders for an offline start failed");
            }
        }
    }

    /// The stored orders of a machine with their files; `None` if nothing is stored for it.
    pub(super) fn orders(&self, machine: &str) -> Option<(Orders, Files)> {
        if self.saved.machine != machine || self.saved.units.is_empty() {
            return None;
        }
        let (mut orders, mut files) = (Orders::default(), Files::new());
        for (unit, saved) in &self.saved.units {
            let Ok(file) = Options::parse(saved.file.as_bytes()) else {
                tracing::warn!(unit, "saved unit file unusable");
                continue;
            };
            let hash = file.hash().to_string();
            let desired = Desired {
                hash: hash.clone(),
                state: saved.state,
                restarts: saved.restarts,
            };
            orders.desired.insert(unit.clone(), desired);
            orders.epochs.insert(unit.clone(), saved.epoch);
            files.insert(hash, file);
        }
        Some((orders, files))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orders(units: &[(&str, DesiredState, &str)]) -> (Orders, Files) {
        let (mut orders, mut files) = (Orders::default(), Files::new());
        for (unit, state, text) in units {
            let file = Options::parse(text.as_bytes()).unwrap();
            let hash = file.hash().to_string();
            let desired = Desired {
                hash: hash.clone(),
                state: *state,
                restarts: 3,
            };
            orders.desired.insert((*unit).to_owned(), desired);
            orders.epochs.insert((*unit).to_owned(), 7);
            files.insert(hash, file);
        }
        (orders, files)
    }

    #[test]
    fn what_is_kept_is_there_after_a_boot_but_for_singletons() {
        use DesiredState::{Inactive, Launched, Loaded};
        let folder = tempfile::tempdir().unwrap();
        let service = "[Service]\nExecStart=/bin/true\n";
        let singleton = "[Service]\nExecStart=/bin/true\n\n[X-Fleet]\nSingleton=true\n";
        let (told, files) = orders(&[
            ("a.service", Launched, service),
            ("b.service", Loaded, service),
            ("c.service", Inactive, service),
            ("one.service", Launched, singleton),
        ]);
        let mut offline = Offline::open(folder.path()).unwrap();
        assert!(offline.orders("m1").is_none());
        offline.save("m1", &told, &files);
        let again = Offline::open(folder.path()).unwrap();
        let (kept, kept_files) = again.orders("m1").unwrap();
        let names: Vec<_> = kept.desired.keys().map(String::as_str).collect();
        assert_eq!(names, ["a.service", "b.service"]);
        assert_eq!(kept.desired["a.service"], told.desired["a.service"]);
        assert_eq!(kept.epochs["b.service"], 7);
        assert!(kept_files.contains_key(&kept.desired["a.service"].hash));
        assert!(again.orders("m2").is_none(), "another machine");
    }

    #[test]
    fn held_units_stay_as_they_were_kept() {
        let folder = tempfile::tempdir().unwrap();
        let service = "[Service]\nExecStart=/bin/true\n";
        let (told, files) = orders(&[("a.service", DesiredState::Launched, service)]);
        let mut offline = Offline::open(folder.path()).unwrap();
        offline.save("m1", &told, &files);
        let mut pinned = Orders::default();
        pinned
            .pinned
            .insert("a.service".to_owned(), "why".to_owned());
        offline.save("m1", &pinned, &files);
        assert_eq!(offline.orders("m1").unwrap().0.desired.len(), 1);
        offline.save("m1", &Orders::default(), &files);
        assert!(offline.orders("m1").is_none());
    }

    #[test]
    fn what_cannot_be_read_counts_as_nothing() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(DUTIES), "junk").unwrap();
        assert!(Offline::open(folder.path()).unwrap().orders("").is_none());
    }
}
