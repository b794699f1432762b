//! The lane of slow statements: searches, and lists whose time grows with the stored data.
//!
//! ```text
//! GET by id, report, write ─────────────────────▶ any connection of the thread
//! search, long list ──▶ place in the lane ──────▶ any connection, but at most half of them
//! ```
//!
//! A client chooses how long such a statement runs. Without a limit, a few of them would hold every connection, and
//! reports would wait behind them. So each thread lets them use at most half of its connections at a time. The other
//! half, at least one connection, is never used by a search.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use deadpool::managed::{PoolError, TimeoutType};
use tokio::runtime::Handle;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, sleep_until};

use super::Error;
use super::pool::GONE_NOTICED;

/// Statements that wait for a place at most, over all threads. Each is a request in progress: without a limit they
/// would take the places of all other requests (`server.limits.max_in_flight`).
const WAITING_MAX: usize = 256;

/// Limits the number of slow statements at a time on one thread.
#[derive(Clone)]
pub(super) struct Lane {
    places: Arc<Semaphore>,
    waiting: WaitingCount,
    no_connection: Arc<Notify>,
}

/// Number of statements that wait for a place, in all lanes of a process.
#[derive(Clone, Default)]
pub(super) struct WaitingCount(Arc<AtomicUsize>);

/// A waiting statement; the wait ends with the value.
struct Wait<'a>(&'a AtomicUsize);

/// The right to run one slow statement.
pub(super) struct LanePermit(OwnedSemaphorePermit);

impl Lane {
    /// For a pool with that many connections.
    pub(super) fn new(connections: usize, waiting: WaitingCount) -> Self {
        Self {
            // With a single connection there is no half: then searches share it with everything.
            places: Arc::new(Semaphore::new((connections / 2).max(1))),
            waiting,
            no_connection: Arc::default(),
        }
    }

    /// Waits for a place until the deadline.
    ///
    /// # Errors
    ///
    /// [`Error::TooSlow`] if other statements keep all places until then, or too many wait already;
    /// [`Error::Unavailable`] if those with a place get no connection.
    pub(super) async fn enter(&self, deadline: Instant) -> Result<LanePermit, Error> {
        let places = Arc::clone(&self.places);
        if let Ok(permit) = Arc::clone(&places).try_acquire_owned() {
            return Ok(LanePermit(permit));
        }
        let too_slow = Error::TooSlow {
            doing: "run a search beside others",
        };
        let Some(_wait) = self.waiting.begin() else {
            return Err(too_slow);
        };
        let no_connection = self.no_connection.notified();
        tokio::select! {
            biased;
            () = no_connection => Err(Error::no_connection(PoolError::Timeout(TimeoutType::Wait))),
            permit = places.acquire_owned() => match permit {
                Ok(permit) => Ok(LanePermit(permit)),
                Err(closed) => unreachable!("nothing closes it: {closed}"),
            },
            () = sleep_until(deadline) => Err(too_slow),
        }
    }

    /// Refuses the waiting statements, because one with a place got no connection: each would wait in vain in turn,
    /// and be answered as if others were slow.
    pub(super) fn send_away(&self) {
        self.no_connection.notify_waiters();
    }
}

impl WaitingCount {
    pub(super) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn begin(&self) -> Option<Wait<'_>> {
        let wait = Wait(&self.0);
        (self.0.fetch_add(1, Ordering::Relaxed) < WAITING_MAX).then_some(wait)
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl LanePermit {
    /// Keeps the place until the server has noticed that the client of the statement is gone. Until then the server
    /// works on it: clients that ask and leave would run any number of searches at a time.
    pub(super) fn leave_later(self) {
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                sleep(GONE_NOTICED).await;
                drop(self.0);
            });
        }
    }
}
