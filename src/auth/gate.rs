//! Lets one fetch through at a time, and one per cooldown when requests ask for it.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use hyperfleet_server_kit::telemetry::TraceContext;

/// Connects requests that ask for a fetch with the one task that fetches.
#[derive(Debug)]
pub(super) struct FetchGate {
    cooldown: Duration,
    state: watch::Sender<State>,
}

#[derive(Debug, Default)]
struct State {
    is_requested: bool,
    /// The first request that asks.
    asked_by: TraceContext,
    is_under_way: bool,
    last: Option<Instant>,
    /// Number of completed fetches.
    ended: u64,
}

pub(super) struct Fetching<'a> {
    gate: &'a FetchGate,
    /// The request that asked for it; empty if none did.
    pub(super) asked_by: TraceContext,
}

impl Drop for Fetching<'_> {
    fn drop(&mut self) {
        self.gate.state.send_modify(|state| {
            state.is_under_way = false;
            state.ended += 1;
        });
    }
}

impl FetchGate {
    pub(super) fn new(cooldown: Duration) -> Self {
        Self {
            cooldown,
            state: watch::Sender::default(),
        }
    }

    /// Asks for a fetch. Returns the number of completed fetches, for [`FetchGate::ended`]; `None` if one has just ended.
    pub(super) fn request(&self) -> Option<u64> {
        let mut ended = None;
        self.state.send_if_modified(|state| {
            let is_coming = state.is_under_way || state.is_requested;
            if !is_coming && state.last.is_some_and(|at| at.elapsed() < self.cooldown) {
                return false;
            }
            ended = Some(state.ended);
            if !is_coming {
                state.is_requested = true;
                state.asked_by = TraceContext::current();
            }
            !is_coming
        });
        ended
    }

    /// Waits until more than `count` fetches have ended.
    pub(super) async fn ended(&self, count: u64) {
        let mut state = self.state.subscribe();
        // This gate owns the sender, so it cannot close.
        let _ = state.wait_for(|state| state.ended > count).await;
    }

    /// Begins a fetch, which serves all requests so far. It ends when the returned value is dropped, so that no
    /// request waits for one that panicked.
    pub(super) fn begin(&self) -> Fetching<'_> {
        let mut asked_by = TraceContext::default();
        self.state.send_modify(|state| {
            asked_by = std::mem::take(&mut state.asked_by);
            state.is_requested = false;
            state.is_under_way = true;
            state.last = Some(Instant::now());
        });
        Fetching {
            gate: self,
            asked_by,
        }
    }

    /// Waits until the time is over, or a request asks for a fetch.
    pub(super) async fn wait(&self, time: Duration) {
        let mut state = self.state.subscribe();
        let _ = timeout(time, state.wait_for(|state| state.is_requested)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_hours(1);
    const SHORT: Duration = Duration::from_millis(50);

    #[tokio::test]
    async fn a_wish_that_was_granted_wakes_nobody_again() {
        let gate = FetchGate::new(Duration::ZERO);
        assert!(gate.request().is_some());
        drop(gate.begin());
        assert!(timeout(SHORT, gate.wait(LONG)).await.is_err());
        assert!(gate.request().is_some());
        gate.wait(LONG).await;
    }

    #[tokio::test]
    async fn whoever_wishes_during_a_fetch_hears_of_its_end_and_then_it_is_quiet() {
        let gate = FetchGate::new(LONG);
        let fetching = gate.begin();
        let wishes: Vec<_> = (0..3).map(|_| gate.request().unwrap()).collect();
        let ends = wishes.into_iter().map(|ended| gate.ended(ended));
        let ends = futures_util::future::join_all(ends);
        let (_, ()) = tokio::join!(ends, async { drop(fetching) });
        assert!(gate.request().is_none());
        gate.ended(0).await;
        assert!(timeout(SHORT, gate.wait(LONG)).await.is_err());
    }
}
