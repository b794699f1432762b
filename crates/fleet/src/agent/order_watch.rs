//! The orders for this machine: follows the registry, and reads the unit files that orders name.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::Settings;
use super::disk::{History, Memory};
use super::duties::{self, Duties, Files, Orders, Progress, ScopeUpdate};
use crate::keys::{KeyStore, Revision};
use crate::registry::{Error, Registry};
use hyperfleet_fleet_model::schedule::{Machine, MachineId};
use hyperfleet_fleet_model::unit::Options;

pub(super) struct OrderWatch<S> {
    registry: Registry<S>,
    machine: String,
    pub(super) duties: Duties,
    pub(super) files: Files,
    updates: mpsc::UnboundedReceiver<ScopeUpdate>,
    /// Tasks that follow the registry.
    following: JoinSet<()>,
    progress: Arc<Progress>,
}

impl<S: KeyStore> OrderWatch<S> {
    /// Follows the registry from the previous process's position.
    pub(super) fn new(
        registry: Registry<S>,
        machine: String,
        files: Files,
        history: Option<History>,
    ) -> Self {
        let progress = Arc::<Progress>::default();
        if let Some(history) = history {
            progress.store(history.revision, history.last_report);
        }
        let (following, updates) = duties::follow(&registry, &machine, &progress);
        Self {
            registry,
            machine,
            duties: Duties::default(),
            files,
            updates,
            following,
            progress,
        }
    }

    pub(super) async fn next_update(&mut self) -> Option<ScopeUpdate> {
        self.updates.recv().await
    }

    /// Notes how far the agent has read, for the followers.
    pub(super) fn record_progress(&self, history: History) {
        self.progress.store(history.revision, history.last_report);
    }

    /// Lists everything again. Until then the agent acts on no orders.
    pub(super) fn follow_again(&mut self, registered_at: Revision) {
        self.duties.expect_all(registered_at);
        (self.following, self.updates) =
            duties::follow(&self.registry, &self.machine, &self.progress);
    }

    /// Whether the lists are complete, and not older than the machine's registration.
    pub(super) fn is_current(&self) -> bool {
        self.duties.are_listed() && !self.duties.are_expected()
    }

    pub(super) fn orders(&self, settings: &Settings, memory: &Memory) -> Orders {
        let metadata = &settings.machine.borrow().metadata;
        let metadata = self.duties.metadata(&self.machine, metadata);
        let machine = Machine::new(MachineId::new(self.machine.as_str()), metadata);
        self.duties.orders(&machine, &self.files, &memory.units)
    }

    /// When a unit was placed here.
    pub(super) fn ordered_at(&self, unit: &str) -> Option<Revision> {
        self.duties.ordered_at(&self.machine, unit)
    }

    /// Whether the unit must never run twice.
    pub(super) fn is_singleton(&self, unit: &str, hash: &str) -> bool {
        let file = self.files.get(hash);
        file.is_some_and(|file| duties::requirements(unit, file).is_singleton)
    }

    /// Reads missing unit files.
    pub(super) async fn read_files(&mut self) -> Result<(), Error> {
        let missing = self.duties.hashes();
        let missing = missing.filter(|(_, hash)| !self.files.contains_key(*hash));
        let missing: BTreeSet<String> = missing.map(|(unit, _)| unit.to_owned()).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let missing: Vec<String> = missing.into_iter().collect();
        for (unit, body) in self.registry.find_bodies(&missing).await? {
            match Options::new(&body.options) {
                Ok(file) => _ = self.files.insert(file.hash().to_string(), file),
                Err(error) => tracing::warn!(unit, %error, "unit file unusable"),
            }
        }
        Ok(())
    }

    /// Forgets files that no unit uses.
    pub(super) fn drop_files(&mut self, orders: &Orders) {
        let desired = orders.desired.values().map(|desired| desired.hash.as_str());
        let used = self.duties.hashes().map(|(_, hash)| hash).chain(desired);
        let used: BTreeSet<&str> = used.collect();
        self.files.retain(|hash, _| used.contains(hash.as_str()));
    }
}
