//! The latest changes, for all watchers of one instance.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

use super::event::SharedChange;
use super::metrics;
use hyperfleet_domain::change::ChangePosition;
use hyperfleet_domain::watch::{PolledEnd, WatchedChange};

/// Changes that are held for watchers that are not as fast as the reader of changes. Slower ones read the table.
const CHANGES_MAX: usize = 4_096;
/// The same in bytes, roughly.
const BYTES_MAX: usize = 8 << 20;
/// Changes that a watcher takes at a time.
const TAKEN_MAX: usize = 256;
/// The same in bytes, roughly: a slow watcher holds them when the ring has lost them already.
const TAKEN_BYTES_MAX: usize = 256 << 10;

/// How far this instance has read the changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Progress {
    pub(super) era: i64,
    /// Every change up to here is visible, and was published.
    pub(super) horizon: i64,
    /// The highest allocated position, as of the last poll.
    pub(super) latest: i64,
    /// Up to which position changes may no longer be stored.
    pub(super) removed: i64,
}

/// The latest changes, and how far they were read.
pub(super) struct Feed {
    progress: watch::Sender<Option<Progress>>,
    /// Number of polls.
    polls: AtomicU64,
    watchers: AtomicUsize,
    /// How often the database was set back.
    resets: AtomicU64,
    ring: Mutex<Ring>,
    /// Asks for a poll.
    wake: Notify,
}

#[derive(Debug, Default)]
struct Ring {
    /// Changes up to this position are not in it.
    oldest: i64,
    changes: VecDeque<Arc<SharedChange>>,
    bytes: usize,
}

/// What a watcher finds after its position.
#[derive(Debug)]
pub(super) enum Taken {
    /// Changes in their order, and the position that is reached with them.
    Changes(Vec<Arc<SharedChange>>, i64),
    /// The ring no longer contains every change after the position. All changes up to this later position can be read.
    Behind(i64),
    /// The database was set back.
    Over,
}

/// One watcher's access to the feed; counts it until it is dropped.
pub(super) struct Subscription {
    pub(super) feed: Arc<Feed>,
    progress: watch::Receiver<Option<Progress>>,
    /// Of the feed, when the watcher began.
    resets: u64,
}

impl Progress {
    pub(super) fn position(self) -> ChangePosition {
        ChangePosition {
            era: self.era,
            number: self.horizon,
        }
    }

    /// Whether another instance, which has answered with the position, may have read further than this one: later changes,
    /// or a later era.
    pub(super) fn may_lag_behind(self, position: ChangePosition) -> bool {
        let latest = ChangePosition {
            era: self.era,
            number: self.latest,
        };
        position > latest
    }

    /// Whether a watch may begin after a position.
    pub(super) fn reaches(self, position: ChangePosition) -> bool {
        position.era == self.era && (self.removed..=self.latest).contains(&position.number)
    }
}

impl Feed {
    pub(super) fn new() -> Self {
        Self {
            progress: watch::Sender::default(),
            polls: AtomicU64::new(0),
            watchers: AtomicUsize::new(0),
            resets: AtomicU64::new(0),
            ring: Mutex::default(),
            wake: Notify::new(),
        }
    }

    /// How far changes were read; `None` before that is known.
    pub(super) fn progress(&self) -> Option<Progress> {
        *self.progress.borrow()
    }

    /// Waits for a poll that begins after this call, and asks for it.
    pub(super) async fn polled_from_now(&self) -> Progress {
        let mut progress = self.progress.subscribe();
        // The next poll may have begun already.
        let needed = self.polls.load(Ordering::SeqCst) + 2;
        loop {
            let now = *progress.borrow_and_update();
            if let Some(now) = now
                && self.polls.load(Ordering::SeqCst) >= needed
            {
                return now;
            }
            self.wake.notify_one();
            // This value owns the sender, so it cannot close.
            let _ = progress.changed().await;
        }
    }

    /// Waits until a poll is asked for.
    pub(super) async fn woken(&self) {
        self.wake.notified().await;
    }

    pub(super) fn subscribe(feed: &Arc<Self>) -> Subscription {
        feed.watchers.fetch_add(1, Ordering::SeqCst);
        metrics::joined();
        feed.wake.notify_one();
        Subscription {
            progress: feed.progress.subscribe(),
            resets: feed.resets.load(Ordering::SeqCst),
            feed: Arc::clone(feed),
        }
    }

    pub(super) fn is_watched(&self) -> bool {
        self.watchers.load(Ordering::SeqCst) > 0
    }

    /// Records a poll, with the position up to which all changes are visible. Returns the position after which changes
    /// must be read, if there are any: without watchers nothing is.
    pub(super) fn polled(&self, end: &PolledEnd, visible: i64) -> Option<i64> {
        let before = self.progress();
        let mut horizon = before.map_or(visible, |before| before.horizon);
        // At first, and after a reset, the ring has nothing up to here, although a watcher that has ended may still be
        // subscribed.
        if before.is_none() || !self.is_watched() {
            horizon = horizon.max(visible);
            *self.ring() = Ring {
                oldest: horizon,
                ..Ring::default()
            };
        }
        self.progress.send_replace(Some(Progress {
            era: end.era,
            horizon,
            latest: end.allocated,
            removed: end.removed,
        }));
        // Last: a watch that counts polls must not see the progress of the previous poll.
        self.polls.fetch_add(1, Ordering::SeqCst);
        (horizon < visible).then_some(horizon)
    }

    /// Gives watchers these changes: all of those up to `horizon`.
    pub(super) fn publish(&self, changes: Vec<WatchedChange>, horizon: i64) {
        self.ring().extend(changes);
        self.progress.send_modify(|progress| {
            if let Some(progress) = progress {
                progress.horizon = progress.horizon.max(horizon);
            }
        });
    }

    /// The database was set back: every watch ends.
    pub(super) fn reset(&self) {
        self.resets.fetch_add(1, Ordering::SeqCst);
        *self.ring() = Ring::default();
        self.progress.send_replace(None);
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ring {
    fn extend(&mut self, changes: Vec<WatchedChange>) {
        for change in changes {
            let change = SharedChange::new(change);
            self.bytes += change.bytes();
            self.changes.push_back(Arc::new(change));
        }
        while self.changes.len() > CHANGES_MAX || (self.bytes > BYTES_MAX && self.changes.len() > 1)
        {
            if let Some(first) = self.changes.pop_front() {
                self.bytes -= first.bytes();
                self.oldest = first.position();
            }
        }
    }
}

impl Subscription {
    /// The next changes after a position.
    pub(super) fn take(&mut self, after: ChangePosition) -> Taken {
        // Seen first: everything up to it is in the ring by now, and later changes wake the watcher.
        let progress = *self.progress.borrow_and_update();
        let is_over = self.feed.resets.load(Ordering::SeqCst) != self.resets
            || progress.is_some_and(|now| now.era != after.era);
        if is_over {
            return Taken::Over;
        }
        let horizon = progress.map_or(0, |now| now.horizon);
        let after = after.number;
        let ring = self.feed.ring();
        if after < ring.oldest {
            return Taken::Behind(horizon.max(ring.oldest));
        }
        let first = ring.changes.partition_point(|c| c.position() <= after);
        let mut bytes = 0;
        let taken = ring.changes.range(first..).take(TAKEN_MAX);
        let taken = taken.take_while(|change| {
            let is_first = bytes == 0;
            bytes += change.bytes();
            is_first || bytes <= TAKEN_BYTES_MAX
        });
        let taken: Vec<_> = taken.cloned().collect();
        let is_all = first + taken.len() == ring.changes.len();
        let last = taken.last().map_or(after, |last| last.position());
        Taken::Changes(taken, if is_all { last.max(horizon) } else { last })
    }

    /// Waits until there may be more to take.
    pub(super) async fn changed(&mut self) {
        // The feed owns the sender, so it cannot close.
        let _ = self.progress.changed().await;
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.feed.watchers.fetch_sub(1, Ordering::SeqCst);
        metrics::left();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_may_lag_behind_later_changes_and_eras() {
        let known = Progress {
            era: 5,
            horizon: 7,
            latest: 9,
            removed: 0,
        };
        for (era, number, expected) in [
            (5, 7, false),
            (5, 9, false),
            (5, 10, true),
            (6, 1, true),
            (4, 10, false),
        ] {
            let position = ChangePosition { era, number };
            assert_eq!(known.may_lag_behind(position), expected, "{position}");
        }
    }

    fn change(number: i64) -> WatchedChange {
        WatchedChange {
            position: ChangePosition { era: 0, number },
            before: None,
            after: None,
        }
    }

    fn numbers(taken: &Taken) -> (Vec<i64>, i64) {
        match taken {
            Taken::Changes(changes, reached) => {
                (changes.iter().map(|c| c.position()).collect(), *reached)
            }
            other => panic!("{other:?}"),
        }
    }

    fn end(allocated: i64) -> PolledEnd {
        PolledEnd {
            era: 0,
            allocated,
            removed: 0,
            writers: [].into(),
        }
    }

    #[test]
    fn a_watcher_that_is_behind_the_ring_has_to_read() {
        let feed = Arc::new(Feed::new());
        assert_eq!(feed.polled(&end(3), 3), None, "nobody watches");
        let mut watcher = Feed::subscribe(&feed);
        let at = |number| ChangePosition { era: 0, number };
        assert_eq!(feed.polled(&end(9), 9), Some(3));
        feed.publish(vec![change(5), change(8)], 9);
        assert!(matches!(watcher.take(at(2)), Taken::Behind(9)));
        assert_eq!(numbers(&watcher.take(at(3))), (vec![5, 8], 9));
        assert_eq!(numbers(&watcher.take(at(5))), (vec![8], 9));
        assert_eq!(numbers(&watcher.take(at(9))), (vec![], 9));
        let many = i64::try_from(CHANGES_MAX).unwrap();
        feed.publish((10..10 + many).map(change).collect(), 9 + many);
        assert!(matches!(watcher.take(at(5)), Taken::Behind(_)));
        let (taken, reached) = numbers(&watcher.take(at(9)));
        assert_eq!((taken.len(), reached), (TAKEN_MAX, 9 + 256));
        feed.reset();
        assert!(matches!(watcher.take(at(9)), Taken::Over));
    }

    #[test]
    fn a_new_watcher_after_a_reset_reads_the_table() {
        let feed = Arc::new(Feed::new());
        let ended = Feed::subscribe(&feed);
        feed.polled(&end(3), 3);
        feed.reset();
        assert_eq!(feed.polled(&end(20), 20), None);
        let mut watcher = Feed::subscribe(&feed);
        let after = |number| ChangePosition { era: 0, number };
        assert!(matches!(watcher.take(after(9)), Taken::Behind(20)));
        assert_eq!(numbers(&watcher.take(after(20))), (vec![], 20));
        drop(ended);
    }
}
