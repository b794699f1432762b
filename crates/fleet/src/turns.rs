//! Turns for writers of one unit. A write is guarded by the records that were read. So of several concurrent writers,
//! all but one must decide again, and without turns one of them could always lose. Correctness does not depend on
//! turns: other processes do not share them.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard};

/// Number of locks. Names that share one wait for each other. Uses about 64 KiB.
const LOCKS: usize = 1024;
/// Longest wait for a turn. A write takes milliseconds, and if etcd is in trouble requests should not wait for
/// each other.
const PATIENCE: Duration = Duration::from_secs(2);
/// Longest pause after a race lost against another process.
const PAUSE_MAX: Duration = Duration::from_millis(64);

#[derive(Debug)]
pub(super) struct Turns {
    hasher: RandomState,
    locks: Box<[Mutex<()>]>,
    /// For units that are given `Replaces`.
    replaces: Mutex<()>,
}

impl Default for Turns {
    fn default() -> Self {
        Self {
            hasher: RandomState::new(),
            locks: (0..LOCKS).map(|_| Mutex::new(())).collect(),
            replaces: Mutex::default(),
        }
    }
}

impl Turns {
    /// Waits until no other request here writes a unit of that name, first come, first served, with a timeout.
    pub(super) async fn acquire(&self, name: &str) -> Option<MutexGuard<'_, ()>> {
        let at = self.hasher.hash_one(name) % (LOCKS as u64);
        let lock = usize::try_from(at).ok().and_then(|at| self.locks.get(at))?;
        tokio::time::timeout(PATIENCE, lock.lock()).await.ok()
    }

    /// Waits until no other request here gives a unit `Replaces`, with a timeout. Take it after the unit's own
    /// turn.
    pub(super) async fn acquire_replaces(&self) -> Option<MutexGuard<'_, ()>> {
        let lock = tokio::time::timeout(PATIENCE, self.replaces.lock());
        lock.await.ok()
    }
}

/// Pauses for a random time after so many lost races, so that the same writers do not collide again.
pub(super) async fn pause(lost: u32) {
    let longest = Duration::from_millis(1 << lost.min(6)).min(PAUSE_MAX);
    // The hasher has random keys: random enough, without another crate.
    let share = RandomState::new().hash_one(lost) % 1024;
    let pause = longest.mul_f64(f64::from(u32::try_from(share).unwrap_or(0)) / 1024.0);
    tokio::time::sleep(pause).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_turn_is_waited_for_and_not_for_ever() {
        let turns = Turns::default();
        let first = turns.acquire("a.service").await;
        assert!(first.is_some());
        let begun = tokio::time::Instant::now();
        assert!(turns.acquire("a.service").await.is_none());
        assert_eq!(begun.elapsed(), PATIENCE);
        drop(first);
        assert!(turns.acquire("a.service").await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_are_short_and_differ() {
        let mut pauses = std::collections::BTreeSet::new();
        for lost in 0..40 {
            let begun = tokio::time::Instant::now();
            pause(lost).await;
            assert!(begun.elapsed() <= PAUSE_MAX + Duration::from_millis(1));
            pauses.insert(begun.elapsed());
        }
        assert!(pauses.len() > 10, "{pauses:?}");
    }
}
