//! Failures of the store: logged once per outage, with growing pauses between attempts.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::registry::Error;
use hyperfleet_server_kit::causes;

/// Pause after the first failure.
const PAUSE_MIN: Duration = Duration::from_millis(100);
/// Longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// A kind of request to the store. Each can fail on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Leading, or watching who leads.
    Leadership,
    /// Renewing the term.
    Lease,
    /// Reading and writing.
    Work,
}

/// The store's health as an engine sees it. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Outages(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Failures of each part since its last success.
    failures: [u32; 3],
    /// Start of the logged outage.
    since: Option<Instant>,
}

impl Outages {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a failure. Returns the pause before the next attempt.
    pub(super) fn failed(&self, part: Part, error: &Error) -> Duration {
        let mut state = self.state();
        let failures = &mut state.failures[part as usize];
        *failures = failures.saturating_add(1);
        let factor = 2_u32.saturating_pow(*failures - 1);
        let error = causes::chain(error);
        if state.since.is_none() {
            state.since = Some(Instant::now());
            tracing::warn!(?part, error, "registry unavailable: retrying");
        } else {
            tracing::debug!(?part, error, "registry still unavailable");
        }
        PAUSE_MIN.saturating_mul(factor).min(PAUSE_MAX)
    }

    /// Records a success, or that a part is no longer needed.
    pub(super) fn is_well(&self, part: Part) {
        let mut state = self.state();
        state.failures[part as usize] = 0;
        if state.failures == [0; 3]
            && let Some(since) = state.since.take()
        {
            let seconds = since.elapsed().as_secs_f64();
            tracing::info!(seconds, "registry available again");
        }
    }

    /// Resets the parts that belong to a term.
    pub(super) fn term_ended(&self) {
        let mut state = self.state();
        state.failures[Part::Lease as usize] = 0;
    }
}
