//! The order of work. At most one worker has a resource; a change during the work leads to another run.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use tokio::time::Instant;

/// Pauses before a retry: after the first failure in a row, and the longest.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_mins(5);

/// A resource of a listed kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    /// Position of its kind in the settings.
    pub(crate) kind: usize,
    /// Its path.
    pub(crate) href: String,
}

/// A resource that waits or is worked on.
#[derive(Debug)]
struct Entry {
    state: State,
    /// Failures in a row.
    failures: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting(Instant),
    /// With the time of its next run; `None` for never.
    Working(Option<Instant>),
}

/// Resources that wait for work, and those that are worked on.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    entries: HashMap<Key, Entry>,
    waiting: BTreeSet<(Instant, Key)>,
}

impl Queue {
    /// Schedules a resource, unless it is scheduled earlier. A failed resource keeps its pause, and one that is
    /// worked on is not scheduled again, unless it `is_news`.
    pub(crate) fn add(&mut self, key: Key, at: Instant, is_news: bool) {
        let Some(entry) = self.entries.get_mut(&key) else {
            self.wait(key, at, 0);
            return;
        };
        match &mut entry.state {
            State::Waiting(_) if entry.failures > 0 && !is_news => {}
            State::Waiting(before) => {
                let before = *before;
                if at < before {
                    let failures = entry.failures;
                    self.waiting.remove(&(before, key.clone()));
                    self.wait(key, at, failures);
                }
            }
            State::Working(_) if !is_news => {}
            State::Working(again) => {
                *again = Some(again.map_or(at, |before| before.min(at)));
            }
        }
    }

    fn wait(&mut self, key: Key, at: Instant, failures: u32) {
        let state = State::Waiting(at);
        self.waiting.insert((at, key.clone()));
        self.entries.insert(key, Entry { state, failures });
    }

    /// Removes a waiting resource. Work in progress continues.
    pub(crate) fn forget(&mut self, key: &Key) {
        let Some(Entry { state, .. }) = self.entries.get(key) else {
            return;
        };
        if let State::Waiting(at) = *state {
            self.waiting.remove(&(at, key.clone()));
            self.entries.remove(key);
        }
    }

    /// When the next resource is due.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.waiting.first().map(|(at, _)| *at)
    }

    /// Takes a due resource. The caller must report it [done](Self::done) or [failed](Self::failed).
    pub(crate) fn take(&mut self, now: Instant) -> Option<Key> {
        if self.next_at()? > now {
            return None;
        }
        let (_, key) = self.waiting.pop_first()?;
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.state = State::Working(None);
        }
        Some(key)
    }

    /// Completes a resource, and schedules its next run if there is one.
    pub(crate) fn done(&mut self, key: Key, again: Option<Instant>) {
        let Some(Entry { state, .. }) = self.entries.remove(&key) else {
            return;
        };
        let asked = match state {
            State::Working(asked) => asked,
            State::Waiting(at) => Some(at),
        };
        if let Some(at) = [asked, again].into_iter().flatten().min() {
            self.wait(key, at, 0);
        }
    }

    /// Schedules a failed resource after a pause, doubled with each failure. `jitter` from 0 to 1 spreads
    /// retries. `at_least` is the pause that a server asked for.
    pub(crate) fn failed(&mut self, key: Key, now: Instant, jitter: f64, at_least: Duration) {
        let Some(entry) = self.entries.remove(&key) else {
            return;
        };
        let pause = PAUSE.saturating_mul(1 << entry.failures.min(16));
        let pause = pause.min(PAUSE_MAX).max(at_least);
        let at = now + pause.mul_f64(1.0 - jitter / 2.0).max(at_least);
        self.wait(key, at, entry.failures.saturating_add(1));
    }

    /// Forgets all waiting and running work.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// How many resources wait, and how many are worked on.
    pub(crate) fn count(&self) -> (usize, usize) {
        let waiting = self.waiting.len();
        (waiting, self.entries.len() - waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(href: &str) -> Key {
        Key {
            kind: 0,
            href: href.to_owned(),
        }
    }

    fn after(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    #[test]
    fn the_earliest_is_first_and_none_is_taken_twice() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.add(key("b"), after(now, 2), true);
        queue.add(key("a"), after(now, 3), true);
        queue.add(key("a"), after(now, 1), true);
        queue.add(key("a"), after(now, 5), true);
        assert_eq!(queue.next_at(), Some(after(now, 1)));
        assert_eq!(queue.take(now), None);
        assert_eq!(queue.take(after(now, 9)), Some(key("a")));
        assert_eq!(queue.take(after(now, 9)), Some(key("b")));
        assert_eq!(queue.take(after(now, 9)), None);
        assert_eq!(queue.count(), (0, 2));
    }

    #[test]
    fn what_is_asked_for_during_work_is_done_afterwards() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.add(key("a"), now, true);
        queue.take(now).unwrap();
        queue.add(key("a"), after(now, 1), false);
        queue.add(key("a"), after(now, 4), true);
        assert_eq!(queue.take(after(now, 9)), None, "a worker has it");
        queue.done(key("a"), Some(after(now, 6)));
        assert_eq!(queue.next_at(), Some(after(now, 4)));
        queue.take(after(now, 4)).unwrap();
        queue.done(key("a"), None);
        assert_eq!((queue.next_at(), queue.count()), (None, (0, 0)));
    }

    #[test]
    fn changes_during_work_are_one_more_run() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.add(key("a"), now, true);
        queue.take(now).unwrap();
        for _ in 0..100 {
            queue.add(key("a"), now, true);
        }
        queue.done(key("a"), None);
        assert_eq!(queue.take(now), Some(key("a")));
        queue.done(key("a"), None);
        assert_eq!(queue.take(now), None);
    }

    #[test]
    fn a_forgotten_resource_is_not_worked_on_unless_a_worker_has_it() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.add(key("a"), now, true);
        queue.take(now).unwrap();
        queue.add(key("b"), now, true);
        for name in ["a", "b", "c"] {
            queue.forget(&key(name));
        }
        assert_eq!((queue.next_at(), queue.count()), (None, (0, 1)));
        queue.failed(key("a"), now, 0.0, Duration::ZERO);
        queue.forget(&key("a"));
        assert_eq!((queue.next_at(), queue.count()), (None, (0, 0)));
    }

    #[test]
    fn failures_come_later_and_later_until_one_succeeds() {
        let (mut queue, mut now) = (Queue::default(), Instant::now());
        queue.add(key("a"), now, true);
        let mut pauses = Vec::new();
        for _ in 0..12 {
            queue.take(now).unwrap();
            queue.failed(key("a"), now, 0.0, Duration::ZERO);
            let at = queue.next_at().unwrap();
            pauses.push((at - now).as_secs());
            queue.add(key("a"), now, false);
            assert_eq!(queue.next_at(), Some(at), "it is listed again and again");
            now = at;
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
        queue.take(now).unwrap();
        queue.done(key("a"), Some(now));
        queue.take(now).unwrap();
        queue.failed(key("a"), now, 1.0, Duration::ZERO);
        let pause = queue.next_at().unwrap() - now;
        assert_eq!(pause, PAUSE / 2, "with all the jitter there is");
    }

    #[test]
    fn news_do_not_wait_for_the_next_try_and_servers_are_obeyed() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.add(key("a"), now, true);
        queue.take(now).unwrap();
        queue.failed(key("a"), now, 1.0, Duration::from_secs(30));
        assert_eq!(queue.next_at(), Some(after(now, 30)));
        queue.add(key("a"), after(now, 3), true);
        assert_eq!(queue.next_at(), Some(after(now, 3)));
    }
}
