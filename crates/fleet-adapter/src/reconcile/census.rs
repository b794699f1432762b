//! State across all resources: which were checked in this term of the lease, and what the brake counts.

use std::time::Duration;

use anyhow::Context as _;
use hyperfleet_fleet::keys::KeyStore;
use tokio::time::Instant;

use super::{FleetAdapter, lock};
use crate::approval;
use crate::domain::{Blocker, Brake, BrakeDecision, Plan};

/// How long removals wait after a start until all resources were checked.
const CENSUS_MAX: Duration = Duration::from_mins(2);

impl<S: KeyStore> FleetAdapter<S> {
    /// Removes steps from a plan that the brake holds. Returns why, or when to retry.
    pub(super) async fn brake(
        &self,
        id: &str,
        plan: &mut Plan<'_>,
    ) -> anyhow::Result<(Option<Blocker>, Option<Duration>)> {
        let is_approved = plan.removals > 0
            && approval::is_approved(&self.running.store, &self.running.keys)
                .await
                .context("read the approval")?;
        let has_seen_all = plan.removals == 0 || self.has_seen_all(id);
        let now = self.began().elapsed();
        let verdict = lock(&self.brake).decide(
            id,
            plan.removals,
            self.index.active_count(),
            has_seen_all,
            is_approved,
            now,
        );
        Ok(match verdict {
            BrakeDecision::Go => (None, None),
            BrakeDecision::Wait(time) => {
                plan.postpone_removals();
                (None, Some(time))
            }
            BrakeDecision::Held {
                pending,
                removed,
                owned,
            } => {
                plan.postpone_removals();
                let command = approval::COMMAND.to_owned();
                (
                    Some(Blocker::Held {
                        pending,
                        removed,
                        owned,
                        command,
                    }),
                    None,
                )
            }
        })
    }

    /// Whether the removals of all other resources are known.
    fn has_seen_all(&self, but: &str) -> bool {
        if self.began().elapsed() > CENSUS_MAX {
            return true;
        }
        let resources = self.index.ids();
        let seen = lock(&self.seen);
        resources
            .iter()
            .all(|id| id == but || seen.contains_key(id))
    }

    pub(super) fn record_seen(&self, id: &str) {
        lock(&self.seen).insert(id.to_owned(), Instant::now());
    }

    /// How long ago a resource was checked, or the start was if it never was.
    pub(crate) fn unseen_for(&self, id: &str) -> Duration {
        let seen = lock(&self.seen).get(id).copied();
        seen.unwrap_or_else(|| self.began()).elapsed()
    }

    /// When the term began. Nothing is known in a new term: another replica may have worked before it.
    pub(super) fn began(&self) -> Instant {
        let mut term = lock(&self.term);
        let now = self.tenure.term();
        if term.0 != now {
            *term = (now, Instant::now());
            lock(&self.seen).clear();
            *lock(&self.brake) = Brake::new(self.running.settings.removal_limit);
        }
        term.1
    }

    /// Whether no workload covers a kind.
    pub(crate) fn is_without_workload(&self, kind: &str) -> bool {
        !self.running.workloads.kinds().contains(kind)
    }

    /// Forgets resources without units.
    pub(crate) fn forget_gone(&self) {
        let resources = self.index.ids();
        let has_units = |id: &str| resources.contains(id);
        lock(&self.brake).retain(has_units);
        let unseen = CENSUS_MAX;
        lock(&self.seen).retain(|id, at| at.elapsed() < unseen || has_units(id));
    }
}
