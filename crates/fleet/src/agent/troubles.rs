//! Units that are not as desired because something failed, or has not come about yet, and when each is tried again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

/// How long a unit rests after its first failure; twice as long after each further one.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_mins(1);
/// When a unit that has not stopped yet is looked at again, if no signal says that it has.
const STOP_PAUSE: Duration = Duration::from_secs(5);

/// Troubles by unit.
#[derive(Debug, Default)]
pub(super) struct Troubles(BTreeMap<String, Trouble>);

#[derive(Debug)]
struct Trouble {
    /// Empty while the unit is only waited for.
    error: String,
    /// The digest of the file that the unit was to have; empty if it was to go.
    hash: String,
    failures: u32,
    /// None while it is tried, and how that ends is not known.
    retry_at: Option<Instant>,
}

impl Troubles {
    /// Forgets those of units that are to have another file by now: with that they may succeed.
    pub(super) fn forget_others<'a>(&mut self, hash_of: impl Fn(&str) -> &'a str) {
        self.0.retain(|unit, trouble| trouble.hash == hash_of(unit));
    }

    /// Forgets those of units with which nothing is left to be done. One that is tried, and may fail again, rests longer
    /// then.
    pub(super) fn keep_only(&mut self, left: &BTreeSet<&str>, is_tried: impl Fn(&str) -> bool) {
        self.0.retain(|unit, trouble| {
            let is_left = left.contains(unit.as_str());
            if !is_left {
                trouble.retry_at = None;
            }
            is_left || is_tried(unit)
        });
    }

    /// Units that are not to be tried yet.
    pub(super) fn resting(&self) -> BTreeSet<String> {
        let now = Instant::now();
        let rests = |trouble: &Trouble| trouble.retry_at.is_some_and(|at| now < at);
        let resting = self.0.iter().filter(|(_, trouble)| rests(trouble));
        resting.map(|(unit, _)| unit.clone()).collect()
    }

    /// When the next unit is to be tried.
    pub(super) fn retry_at(&self) -> Option<Instant> {
        self.0.values().filter_map(|trouble| trouble.retry_at).min()
    }

    pub(super) fn fail(&mut self, unit: &str, hash: &str, error: &str) {
        let trouble = self.entry(unit, hash);
        let pause = PAUSE.saturating_mul(1 << trouble.failures.min(10));
        trouble.failures += 1;
        trouble.retry_at = Some(Instant::now() + pause.min(PAUSE_MAX));
        if trouble.error != error {
            error.clone_into(&mut trouble.error);
            tracing::warn!(unit, error, "a unit cannot be brought to its desired state");
        }
    }

    /// A unit was told to stop, and has not stopped yet.
    pub(super) fn stopping(&mut self, unit: &str, hash: &str) {
        self.entry(unit, hash).retry_at = Some(Instant::now() + STOP_PAUSE);
    }

    /// The state of a unit has changed: it is looked at again if it was waited for.
    pub(super) fn changed(&mut self, unit: &str) {
        if let Some(trouble) = self.0.get_mut(unit)
            && trouble.error.is_empty()
        {
            trouble.retry_at = Some(Instant::now());
        }
    }

    /// What has failed, by unit, with the digest of the file that the unit was to have.
    pub(super) fn errors(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        let failed = self
            .0
            .iter()
            .filter(|(_, trouble)| !trouble.error.is_empty());
        failed.map(|(unit, trouble)| (unit.as_str(), trouble.hash.as_str(), trouble.error.as_str()))
    }

    fn entry(&mut self, unit: &str, hash: &str) -> &mut Trouble {
        self.0.entry(unit.to_owned()).or_insert_with(|| Trouble {
            error: String::new(),
            hash: hash.to_owned(),
            failures: 0,
            retry_at: Some(Instant::now()),
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_unit_rests_longer_after_each_failure_and_not_for_ever() {
        let mut troubles = Troubles::default();
        let mut rests = Vec::new();
        for _ in 0..9 {
            troubles.fail("a", "1", "it fails");
            let rest = troubles.retry_at().unwrap() - Instant::now();
            rests.push(rest.as_secs());
            advance(rest.saturating_sub(Duration::from_millis(1))).await;
            assert_eq!(troubles.resting().len(), 1);
            advance(Duration::from_millis(1)).await;
            assert!(troubles.resting().is_empty());
        }
        assert_eq!(rests, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        troubles.forget_others(|_| "1");
        assert!(troubles.retry_at().is_some());
        troubles.forget_others(|_| "2");
        assert_eq!(troubles.retry_at(), None, "another file may succeed");
    }

    #[tokio::test(start_paused = true)]
    async fn a_signal_ends_the_wait_for_a_stop_and_no_rest_after_a_failure() {
        let mut troubles = Troubles::default();
        troubles.stopping("a", "");
        assert_eq!(troubles.resting().len(), 1);
        troubles.changed("a");
        assert!(troubles.resting().is_empty());
        troubles.fail("a", "", "it fails");
        troubles.changed("a");
        assert_eq!(troubles.resting().len(), 1);
    }
}
