//! Lets through one fetch at a time, and one per cooldown at the wish of requests.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until};

/// Between those who wish for a fetch and the one task that fetches.
#[derive(Debug)]
pub(super) struct Gate {
    cooldown: Duration,
    state: Mutex<State>,
    wake: Notify,
    /// How many fetches have ended.
    ended: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    is_wanted: bool,
    is_under_way: bool,
    last: Option<Instant>,
}

/// A fetch that is under way.
pub(super) struct Fetching<'a>(&'a Gate);

impl Drop for Fetching<'_> {
    fn drop(&mut self) {
        let Self(gate) = self;
        gate.state().is_under_way = false;
        gate.ended.send_modify(|count| *count += 1);
    }
}

impl Gate {
    pub(super) fn new(cooldown: Duration) -> Self {
        Self {
            cooldown,
            state: Mutex::default(),
            wake: Notify::new(),
            ended: watch::Sender::new(0),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wishes for a fetch. Gives what changes when the next one ends; `None` if there was one just
    /// now.
    pub(super) fn wish(&self) -> Option<watch::Receiver<u64>> {
        let mut state = self.state();
        if !state.is_under_way && !state.is_wanted {
            if state.last.is_some_and(|at| at.elapsed() < self.cooldown) {
                return None;
            }
            state.is_wanted = true;
            self.wake.notify_one();
        }
        // Under the lock: what ends after it is seen.
        Some(self.ended.subscribe())
    }

    /// Waits until one has ended, be it long ago.
    pub(super) async fn first(&self) {
        let mut ended = self.ended.subscribe();
        // The sender is ours: it does not go away.
        let _ = ended.wait_for(|count| *count > 0).await;
    }

    /// A fetch begins: it grants all wishes so far. It has ended when what is given is dropped,
    /// however that comes: nobody waits for one that has panicked.
    pub(super) fn begin(&self) -> Fetching<'_> {
        *self.state() = State {
            is_wanted: false,
            is_under_way: true,
            last: Some(Instant::now()),
        };
        Fetching(self)
    }

    /// Waits until it is time, or somebody wishes.
    pub(super) async fn rest(&self, time: Duration) {
        let until = Instant::now() + time;
        loop {
            tokio::select! {
                () = sleep_until(until) => return,
                () = self.wake.notified() => {}
            }
            // A call that was granted already may still be in the air.
            if self.state().is_wanted {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    const LONG: Duration = Duration::from_hours(1);
    const SHORT: Duration = Duration::from_millis(50);

    #[tokio::test]
    async fn a_wish_that_was_granted_wakes_nobody_again() {
        let gate = Gate::new(Duration::ZERO);
        assert!(gate.wish().is_some());
        drop(gate.begin());
        assert!(timeout(SHORT, gate.rest(LONG)).await.is_err());
        assert!(gate.wish().is_some());
        gate.rest(LONG).await;
    }

    #[tokio::test]
    async fn whoever_wishes_during_a_fetch_hears_of_its_end_and_then_it_is_quiet() {
        let gate = Gate::new(LONG);
        let fetching = gate.begin();
        let mut ends: Vec<_> = (0..3).map(|_| gate.wish().unwrap()).collect();
        drop(fetching);
        for end in &mut ends {
            end.changed().await.unwrap();
        }
        assert!(gate.wish().is_none());
        gate.first().await;
        assert!(timeout(SHORT, gate.rest(LONG)).await.is_err());
    }
}
