//! Failures of the store: told once, however many they are, and each tried again later than the one before.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::registry::Error;
use hyperfleet_server_kit::causes;

/// How long to wait after a first failure.
const PAUSE_MIN: Duration = Duration::from_millis(100);
/// How long to wait at most.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// What an engine asks of the store, each of which may fail by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// To lead, or to see who does.
    Leadership,
    /// To keep the term.
    Lease,
    /// To read all, and to write.
    Work,
}

/// What an engine knows of the store's health. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Outages(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Failures of each part since its last success.
    failures: [u32; 3],
    /// Since when something fails; told.
    since: Option<Instant>,
}

impl Outages {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something failed. How long to wait before it is tried again.
    pub(super) fn failed(&self, part: Part, error: &Error) -> Duration {
        let mut state = self.state();
        let failures = &mut state.failures[part as usize];
        *failures = failures.saturating_add(1);
        let factor = 2_u32.saturating_pow(*failures - 1);
        let error = causes::chain(error);
        if state.since.is_none() {
            state.since = Some(Instant::now());
            tracing::warn!(
                ?part,
                error,
                "the engine cannot use its registry; it tries again"
            );
        } else {
            tracing::debug!(?part, error, "the engine still cannot use its registry");
        }
        PAUSE_MIN.saturating_mul(factor).min(PAUSE_MAX)
    }

    /// Something went well, or is not asked for any more.
    pub(super) fn is_well(&self, part: Part) {
        let mut state = self.state();
        state.failures[part as usize] = 0;
        if state.failures == [0; 3]
            && let Some(since) = state.since.take()
        {
            let seconds = since.elapsed().as_secs_f64();
            tracing::info!(seconds, "the engine can use its registry again");
        }
    }

    /// What belongs to a term is not asked for any more.
    pub(super) fn term_ended(&self) {
        let mut state = self.state();
        state.failures[Part::Lease as usize] = 0;
    }
}
