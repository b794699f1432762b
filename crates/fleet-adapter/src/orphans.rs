//! Removes units whose resource no longer exists: a force-delete does not wait for the adapter.
//!
//! The removal waits for a grace period, so that an API that temporarily lost resources, as during a restore of
//! its database, stops no service.

use std::collections::HashMap;
use std::time::Duration;

use hyperfleet_fleet::keys::KeyStore;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::reconcile::FleetAdapter;

/// Longest time between two searches for units without a resource.
const INTERVAL_MAX: Duration = Duration::from_secs(30);

impl<S: KeyStore> FleetAdapter<S> {
    /// Removes units of missing resources, for ever, while `leads` is true.
    pub async fn run_orphan_removal(&self, leads: watch::Receiver<bool>) {
        let mut gone = HashMap::new();
        loop {
            sleep(self.running.settings.sweep_interval.min(INTERVAL_MAX)).await;
            if *leads.borrow() && self.has_etcd() {
                self.remove_orphans(&mut gone).await;
            } else {
                gone.clear();
            }
        }
    }

    async fn remove_orphans(&self, gone: &mut HashMap<String, Instant>) {
        let settings = &self.running.settings;
        // An existing resource was seen since the last pass over all.
        let unseen = settings.sweep_interval + settings.poll_interval;
        let resources = self.index.resources();
        let ids = self.index.ids();
        gone.retain(|id, _| ids.contains(id));
        self.forget_gone();
        for (id, units) in resources {
            if self.unseen_for(&id) < unseen {
                gone.remove(&id);
                continue;
            }
            match self.running.api.get(&units.path).await {
                Ok(None) => {}
                // Lists omit kinds that have nothing left to do.
                Ok(Some(resource)) if self.is_without_workload(&resource.kind) => {}
                Ok(Some(_)) => {
                    gone.remove(&id);
                    continue;
                }
                Err(error) => {
                    tracing::debug!(resource = units.path, %error, "checking whether a resource exists failed");
                    continue;
                }
            }
            let since = *gone.entry(id.clone()).or_insert_with(|| {
                let (grace_seconds, units) = (settings.orphan_grace.as_secs(), units.names.len());
                tracing::warn!(
                    resource = id,
                    units,
                    grace_seconds,
                    "removing units without a resource or workload"
                );
                Instant::now()
            });
            if since.elapsed() < settings.orphan_grace {
                continue;
            }
            if let Err(error) = self.remove_all(&id).await {
                tracing::warn!(
                    resource = id,
                    error = format!("{error:#}"),
                    "removing units without a resource failed"
                );
            }
        }
    }
}
