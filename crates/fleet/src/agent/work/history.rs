//! The agent's position in the history of the registry, and its halt if the registry has gone back in time.

use super::Work;
use crate::agent::disk::History;
use crate::agent::duties::ScopeUpdate;
use crate::agent::systemd::Connect;
use crate::agent::units::Units;
use crate::keys::{KeyStore, Revision};

impl<S: KeyStore, C: Connect> Work<S, C> {
    /// Halts if the registry was replaced or has gone back in time, as after a restore of etcd: its contents
    /// may be outdated.
    pub(super) fn check_history(&mut self, update: &ScopeUpdate) {
        let (revision, before) = (update.revision(), self.units.memory.history);
        let store = update.listed.map(|listed| listed.store);
        let Some(store) = store.or(before.map(|before| before.store)) else {
            return;
        };
        if before.is_some_and(|before| before.store != store) {
            return self.halt("is another one", store, revision);
        }
        if update.listed.is_some_and(|listed| listed.went_back) {
            return self.halt("went back in time", store, revision);
        }
        self.remember_history(History {
            store,
            revision: before.map_or(revision, |before| before.revision.max(revision)),
            // Reports of this agent only: those of another machine with this id are deleted when that machine
            // leaves.
            last_report: before.map_or(0, |before| before.last_report),
        });
        if before.is_none() {
            self.units.remember();
        }
    }

    fn remember_history(&mut self, history: History) {
        self.units.memory.history = Some(history);
        self.orders.record_progress(history);
    }

    /// Stores the revision of the last report: an etcd that does not know it was restored.
    pub(super) fn record_report(&mut self) {
        let last_report = self.reporter.last_report();
        if let Some(history) = self.units.memory.history
            && history.last_report < last_report
        {
            self.remember_history(History {
                last_report,
                ..history
            });
            self.units.remember();
        }
    }

    /// Halts the agent until an operator orders it to resume, because of the registry's state at this revision.
    /// Everything is listed and reported again.
    pub(super) fn halt(&mut self, why: &str, store: u64, revision: Revision) {
        let reason = format!(
            "the registry {why}, as after a restore of etcd: nothing is done until an operator runs fleetctl resume"
        );
        tracing::error!(revision, reason, "agent halted: units keep running");
        // Replaces an earlier halt: its revision, and an order to resume from before the restore, mean nothing
        // in this registry.
        self.units.memory.halt = Some((reason, revision));
        self.orders.duties.forget_resume();
        self.remember_history(History {
            store,
            revision,
            last_report: 0,
        });
        self.reporter.recall_later();
        let registration = self.membership.registration();
        self.reporter.resume(registration, &self.units.memory);
        self.units.remember();
        // Also if it was halted before: this registry may have an older record of the machine.
        self.membership.show_halted(true);
        // Last, because the followers compare what they read with the history. The registration's revision means
        // nothing in this registry.
        self.orders.follow_again(0);
    }

    /// Resumes after a halt if an operator has ordered it since. Epochs start again with the registry.
    pub(super) fn resume_if_ordered(&mut self) {
        let memory = &mut self.units.memory;
        let Some((_, halted_at)) = &memory.halt else {
            return;
        };
        let resumed_at = self.orders.duties.resumed_at();
        if resumed_at.is_some_and(|resumed_at| resumed_at > *halted_at) {
            tracing::warn!("agent resumed by an operator");
            memory.halt = None;
            for known in memory.units.values_mut() {
                known.epoch = 0;
            }
            self.units.remember();
            self.membership.show_halted(false);
        }
    }
}

/// Forgets the machine's last report, which is no longer in the registry.
pub(super) fn forget_last_report(units: &mut Units) {
    if let Some(history) = &mut units.memory.history {
        history.last_report = 0;
        units.remember();
    }
}
