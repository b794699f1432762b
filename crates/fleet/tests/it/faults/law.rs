//! Properties of every write, at every revision, whatever happens to etcd and engines.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyperfleet_fleet::etcd::EtcdKeys;
use hyperfleet_fleet::registry::{KeyChange, Record, Registry, RunKey, WatchScope, WatchUpdate};
use tokio::task::JoinHandle;

/// Watches the registry and checks the properties.
pub(super) struct Guardian {
    machines_lost: Arc<Mutex<BTreeSet<String>>>,
    task: JoinHandle<()>,
}

/// The decisions so far.
#[derive(Debug, Default)]
struct Picture {
    placements: BTreeMap<String, String>,
    runs: BTreeSet<(String, String)>,
    /// Machines that are lost permanently. Their units may move.
    machines_lost: BTreeSet<String>,
}

impl Picture {
    fn apply(&mut self, change: KeyChange) {
        match change {
            KeyChange::Placement(unit, Record::Present(place)) => {
                self.placements.insert(unit, place.value.machine);
            }
            KeyChange::Placement(unit, _) => _ = self.placements.remove(&unit),
            KeyChange::Run(RunKey { machine, unit }, run) => {
                if let Record::Present(_) = run {
                    self.runs.insert((machine, unit));
                } else {
                    self.is_ordered_to_stop(&machine, &unit);
                    self.runs.remove(&(machine, unit));
                }
            }
            _ => {}
        }
    }

    /// No user of these tests wants a unit to stop.
    fn is_ordered_to_stop(&self, machine: &str, unit: &str) {
        let is_lost = self.machines_lost.contains(machine);
        assert!(
            is_lost,
            "{machine}, which is well, is ordered to stop {unit}"
        );
    }

    /// A unit runs on at most one machine: the one where it is placed.
    fn check(&self) {
        let places = self.placements.iter().map(|(u, m)| (m.clone(), u.clone()));
        let places: BTreeSet<_> = places.collect();
        assert_eq!(places, self.runs, "who runs it, has it");
    }

    fn replace(&mut self, found: Vec<KeyChange>) {
        let mut now = Self {
            machines_lost: self.machines_lost.clone(),
            ..Self::default()
        };
        for change in found {
            now.apply(change);
        }
        for (machine, unit) in self.runs.difference(&now.runs) {
            now.is_ordered_to_stop(machine, unit);
        }
        *self = now;
    }
}

impl Guardian {
    /// Watches from the first revision on. After a compaction, the whole state is checked.
    pub(super) fn start(registry: Registry<EtcdKeys>) -> Self {
        let machines_lost = Arc::<Mutex<BTreeSet<String>>>::default();
        let lost = Arc::clone(&machines_lost);
        let task = tokio::spawn(async move {
            let mut watch = registry.watch(&WatchScope::Everything, 1).unwrap();
            let mut picture = Picture::default();
            loop {
                let told = watch.next().await;
                picture.machines_lost = lost.lock().unwrap_or_else(PoisonError::into_inner).clone();
                match told {
                    Ok(WatchUpdate::Changes { changes, .. }) => {
                        for change in changes {
                            picture.apply(change);
                        }
                    }
                    Ok(WatchUpdate::Relisted { found, .. }) => picture.replace(found),
                    Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
                }
                picture.check();
            }
        });
        Self {
            machines_lost,
            task,
        }
    }

    /// A machine is lost permanently: from now on its units may move.
    pub(super) fn loses(&self, machine: &str) {
        let mut lost = self.machines_lost.lock().unwrap();
        lost.insert(machine.to_owned());
    }

    /// Fails if a property was broken.
    pub(super) fn is_content(&self) {
        assert!(!self.task.is_finished(), "a law was broken: see above");
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        self.task.abort();
    }
}
