//! Failures of the store: logged once per outage, with growing pauses between attempts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::registry::Error;
use hyperfleet_server_kit::backoff::Backoff;
use hyperfleet_server_kit::causes;

/// Pause after the first failure.
const PAUSE_MIN: Duration = Duration::from_millis(100);
/// Longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// A kind of request to the store. Each can fail on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
    /// Of each part that has failed since its last success.
    backoffs: BTreeMap<Part, Backoff>,
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
        let error = causes::chain(error);
        if state.since.is_none() {
            state.since = Some(Instant::now());
            tracing::warn!(?part, error, "registry unavailable: retrying");
        } else {
            tracing::debug!(?part, error, "registry still unavailable");
        }
        let backoff = state.backoffs.entry(part);
        let backoff = backoff.or_insert(Backoff::new(PAUSE_MIN, PAUSE_MAX));
        backoff.next_pause()
    }

    /// Records a success, or that a part is no longer needed.
    pub(super) fn is_well(&self, part: Part) {
        let mut state = self.state();
        state.backoffs.remove(&part);
        if state.backoffs.is_empty()
            && let Some(since) = state.since.take()
        {
            let seconds = since.elapsed().as_secs_f64();
            tracing::info!(seconds, "registry available again");
        }
    }

    /// Resets the parts that belong to a term.
    pub(super) fn term_ended(&self) {
        self.state().backoffs.remove(&Part::Lease);
    }
}
