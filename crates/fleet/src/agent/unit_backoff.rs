//! Units that are not in their desired state because of a failure or a pending stop, and when each is retried.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use hyperfleet_server_kit::backoff::Backoff;

/// Pause after a unit's first failure, doubled with each further one.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_mins(1);
/// When a stopping unit is checked again without a signal.
const STOP_PAUSE: Duration = Duration::from_secs(5);

/// By unit.
#[derive(Debug, Default)]
pub(super) struct UnitBackoff(BTreeMap<String, Retry>);

#[derive(Debug)]
struct Retry {
    /// Empty while the agent only waits for the unit.
    error: String,
    /// Digest of the file that the unit must have; empty if it must be removed.
    hash: String,
    backoff: Backoff,
    /// Whether systemd does not start it, perhaps because another unit is missing.
    is_not_started: bool,
    /// `None` while a task of the unit runs.
    due_at: Option<Instant>,
}

impl UnitBackoff {
    /// Forgets units whose file has changed: with the new file they may succeed.
    pub(super) fn retain_current<'a>(&mut self, hash_of: impl Fn(&str) -> &'a str) {
        self.0.retain(|unit, retry| retry.hash == hash_of(unit));
    }

    /// Forgets a unit: it is tried immediately.
    pub(super) fn forget(&mut self, unit: &str) {
        self.0.remove(unit);
    }

    /// Whether systemd has not started a unit.
    pub(super) fn is_not_started(&self, unit: &str) -> bool {
        self.0.get(unit).is_some_and(|retry| retry.is_not_started)
    }

    /// Forgets units that have nothing left to do. A unit that is retried and fails again keeps its longer
    /// pause.
    pub(super) fn retain(&mut self, left: &BTreeSet<&str>, is_tried: impl Fn(&str) -> bool) {
        self.0.retain(|unit, retry| {
            let is_left = left.contains(unit.as_str());
            if !is_left {
                retry.due_at = None;
            }
            is_left || is_tried(unit)
        });
    }

    /// Units that must not be retried yet.
    pub(super) fn waiting(&self) -> BTreeSet<String> {
        let now = Instant::now();
        let waits = |retry: &Retry| retry.due_at.is_some_and(|at| now < at);
        let waiting = self.0.iter().filter(|(_, retry)| waits(retry));
        waiting.map(|(unit, _)| unit.clone()).collect()
    }

    /// When the next unit is due.
    pub(super) fn retry_at(&self) -> Option<Instant> {
        self.0.values().filter_map(|retry| retry.due_at).min()
    }

    pub(super) fn fail(&mut self, unit: &str, hash: &str, error: &str) {
        let retry = self.entry(unit, hash);
        retry.is_not_started = false;
        retry.due_at = Some(Instant::now() + retry.backoff.next_pause());
        if retry.error != error {
            error.clone_into(&mut retry.error);
            tracing::warn!(unit, error, "unit not in its desired state: retrying");
        }
    }

    /// Records a unit that systemd does not start.
    pub(super) fn not_started(&mut self, unit: &str, hash: &str, error: &str) {
        self.fail(unit, hash, error);
        self.entry(unit, hash).is_not_started = true;
    }

    /// Makes all units due that systemd did not start, and returns them.
    pub(super) fn retry_starts(&mut self) -> BTreeSet<String> {
        let waiting = self.0.iter_mut();
        let waiting = waiting.filter(|(_, retry)| retry.is_not_started);
        let due = waiting.map(|(unit, retry)| {
            retry.due_at = Some(Instant::now());
            unit.clone()
        });
        due.collect()
    }

    /// Records that a unit was asked to stop and has not stopped yet.
    pub(super) fn stopping(&mut self, unit: &str, hash: &str) {
        self.entry(unit, hash).due_at = Some(Instant::now() + STOP_PAUSE);
    }

    /// Records a change of a unit's state: if the agent was waiting for it, it is due now.
    pub(super) fn changed(&mut self, unit: &str) {
        if let Some(retry) = self.0.get_mut(unit)
            && retry.error.is_empty()
        {
            retry.due_at = Some(Instant::now());
        }
    }

    /// Failures by unit, with the digest of the file that the unit must have.
    pub(super) fn errors(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        let failed = self.0.iter().filter(|(_, retry)| !retry.error.is_empty());
        failed.map(|(unit, retry)| (unit.as_str(), retry.hash.as_str(), retry.error.as_str()))
    }

    fn entry(&mut self, unit: &str, hash: &str) -> &mut Retry {
        self.0.entry(unit.to_owned()).or_insert_with(|| Retry {
            error: String::new(),
            hash: hash.to_owned(),
            backoff: Backoff::new(PAUSE, PAUSE_MAX),
            is_not_started: false,
            due_at: Some(Instant::now()),
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_unit_rests_longer_after_each_failure_and_not_for_ever() {
        let mut backoff = UnitBackoff::default();
        let mut rests = Vec::new();
        for _ in 0..9 {
            backoff.fail("a", "1", "it fails");
            let rest = backoff.retry_at().unwrap() - Instant::now();
            rests.push(rest.as_secs());
            advance(rest.saturating_sub(Duration::from_millis(1))).await;
            assert_eq!(backoff.waiting().len(), 1);
            advance(Duration::from_millis(1)).await;
            assert!(backoff.waiting().is_empty());
        }
        assert_eq!(rests, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        backoff.retain_current(|_| "1");
        assert!(backoff.retry_at().is_some());
        backoff.retain_current(|_| "2");
        assert_eq!(backoff.retry_at(), None, "another file may succeed");
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_order_ends_the_pause_of_a_unit() {
        let mut backoff = UnitBackoff::default();
        backoff.not_started("a", "1", "an option is not met");
        assert!(backoff.is_not_started("a") && !backoff.waiting().is_empty());
        backoff.forget("a");
        assert!(!backoff.is_not_started("a") && backoff.waiting().is_empty());
        assert_eq!(backoff.errors().count(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_signal_ends_the_wait_for_a_stop_but_no_backoff() {
        let mut backoff = UnitBackoff::default();
        backoff.stopping("a", "");
        assert_eq!(backoff.waiting().len(), 1);
        backoff.changed("a");
        assert!(backoff.waiting().is_empty());
        backoff.fail("a", "", "it fails");
        backoff.changed("a");
        assert_eq!(backoff.waiting().len(), 1);
    }
}
