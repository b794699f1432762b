//! Lanes: requests whose time in the database depends on others hold only a part of the connections.
//!
//! ```text
//! GET by id, report, patch ─────────────────────▶ any connection of the thread
//! search, long list ────▶ place in their lane ──▶ any connection, but at most half of them
//! change of a held row ─▶ place in their lane ──▶ any connection, but not the last one that searches leave
//! ```
//!
//! A client chooses how long a search runs, and the transaction that holds a row decides how long a change waits for it. Without a
//! limit, a few of them would hold every connection, and all other requests would wait behind them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use deadpool::managed::{PoolError, TimeoutType};
use tokio::runtime::Handle;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, sleep_until};

use super::Error;
use super::pool::GONE_NOTICED;

/// Searches that wait for a place at most, over all threads. Each is a request in progress: without a limit they
/// would take the places of all other requests (`server.limits.max_in_flight`).
const SEARCHES_WAITING_MAX: usize = 256;

/// The same for changes of held rows. Both together are fewer than the default of that setting.
const HELD_ROWS_WAITING_MAX: usize = 192;

/// The lanes of one thread.
pub(super) struct Lanes {
    pub(super) searches: Lane,
    pub(super) held_rows: Lane,
}

/// Limits the number of such requests at a time on one thread.
pub(super) struct Lane {
    places: Arc<Semaphore>,
    waiting: WaitingCount,
    no_connection: Arc<Notify>,
    /// The error of a request that gets no place.
    full: fn() -> Error,
}

/// Number of requests that wait for a place, in all lanes of one sort.
#[derive(Clone)]
struct WaitingCount {
    count: Arc<AtomicUsize>,
    max: usize,
}

/// A waiting request; the wait ends with the value.
struct Wait<'a>(&'a AtomicUsize);

/// A place in a lane.
pub(super) struct LanePermit(OwnedSemaphorePermit);

impl Lanes {
    /// For a pool with that many connections.
    pub(super) fn new(connections: usize) -> Self {
        Self {
            searches: Lane::of_searches(connections, WaitingCount::new(SEARCHES_WAITING_MAX)),
            held_rows: Lane::of_held_rows(connections, WaitingCount::new(HELD_ROWS_WAITING_MAX)),
        }
    }

    /// For another pool. Waiting requests of both are counted together.
    pub(super) fn share(&self, connections: usize) -> Self {
        Self {
            searches: Lane::of_searches(connections, self.searches.waiting.clone()),
            held_rows: Lane::of_held_rows(connections, self.held_rows.waiting.clone()),
        }
    }
}

impl Lane {
    /// For statements that may be slow, on a pool with that many connections.
    fn of_searches(connections: usize, waiting: WaitingCount) -> Self {
        // With a single connection there is no half: then searches share it with everything.
        Self::new(connections / 2, waiting, || Error::TooSlow {
            doing: "run a search",
        })
    }

    /// For changes that found a row held, on a pool with that many connections.
    fn of_held_rows(connections: usize, waiting: WaitingCount) -> Self {
        let left_by_searches = connections - connections / 2;
        Self::new(left_by_searches - 1, waiting, || Error::Contended {
            doing: "lock a row that others hold",
            source: "other changes wait for such rows".into(),
        })
    }

    fn new(places: usize, waiting: WaitingCount, full: fn() -> Error) -> Self {
        Self {
            places: Arc::new(Semaphore::new(places.max(1))),
            waiting,
            no_connection: Arc::default(),
            full,
        }
    }

    /// Number of requests that wait for a place, also of shares.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.count.load(Ordering::Relaxed)
    }

    /// Waits for a place until the deadline.
    ///
    /// # Errors
    ///
    /// That of the lane if others keep all places until then, or too many wait already;
    /// [`Error::Unavailable`] if those with a place get no connection.
    pub(super) async fn enter(&self, deadline: Instant) -> Result<LanePermit, Error> {
        let places = Arc::clone(&self.places);
        if let Ok(permit) = Arc::clone(&places).try_acquire_owned() {
            return Ok(LanePermit(permit));
        }
        let Some(_wait) = self.waiting.begin() else {
            return Err((self.full)());
        };
        let no_connection = self.no_connection.notified();
        tokio::select! {
            biased;
            () = no_connection => Err(Error::no_connection(PoolError::Timeout(TimeoutType::Wait))),
            permit = places.acquire_owned() => match permit {
                Ok(permit) => Ok(LanePermit(permit)),
                Err(closed) => unreachable!("nothing closes it: {closed}"),
            },
            () = sleep_until(deadline) => Err((self.full)()),
        }
    }

    /// Refuses the waiting requests, because a request with a place got no connection: each would run into the same
    /// timeout, and be answered as if others were slow.
    pub(super) fn send_away(&self) {
        self.no_connection.notify_waiters();
    }
}

impl WaitingCount {
    fn new(max: usize) -> Self {
        Self {
            count: Arc::default(),
            max,
        }
    }

    fn begin(&self) -> Option<Wait<'_>> {
        let wait = Wait(&self.count);
        (self.count.fetch_add(1, Ordering::Relaxed) < self.max).then_some(wait)
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl LanePermit {
    /// Keeps the place until the server has noticed that the client of the statement is gone. Until then the server
    /// works on it: clients that ask and leave would run any number of statements at a time.
    pub(super) fn leave_later(self) {
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                sleep(GONE_NOTICED).await;
                drop(self.0);
            });
        }
    }
}
