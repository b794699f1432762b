//! A [`KeyStore`] in memory, for simulations and for tests.
//!
//! It uses tokio's clock: where that is paused, the test decides when leases expire.

mod history;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use self::history::History;
use hyperfleet_fleet::keys::{
    Batch, Error, KeyStore, KeyWatch, Lease, Range, RangePart, ReadPosition, Renewal, Revision,
    Transaction, TransactionOutcome,
};

/// A store. Clones share it.
#[derive(Debug, Clone)]
pub struct MemoryKeys {
    state: Arc<Mutex<State>>,
    /// The newest revision.
    newest: Arc<watch::Sender<Revision>>,
    /// How often the watches have lost their connection.
    breaks: Arc<AtomicU64>,
}

/// Stores created so far.
static COUNT: AtomicU64 = AtomicU64::new(0);

#[derive(Debug, Clone)]
struct State {
    identity: u64,
    history: History,
    leases: BTreeMap<i64, Term>,
    leases_granted: i64,
}

#[derive(Debug, Clone)]
struct Term {
    seconds: u32,
    ends_at: Instant,
}

impl Default for MemoryKeys {
    fn default() -> Self {
        Self {
            state: Arc::default(),
            newest: Arc::new(watch::Sender::new(1)),
            breaks: Arc::default(),
        }
    }
}

impl MemoryKeys {
    pub fn new() -> Self {
        Self::default()
    }

    /// A separate copy with the same identity, as restored from a snapshot of this moment.
    pub fn restored(&self) -> Self {
        let state = self.now().clone();
        let newest = watch::Sender::new(state.history.newest());
        Self {
            state: Arc::new(Mutex::new(state)),
            newest: Arc::new(newest),
            breaks: Arc::default(),
        }
    }

    /// Takes the contents of another store. Watches continue, and notice it only if that is behind them.
    pub fn become_as(&self, other: &Self) {
        let other = other.now().clone();
        *self.now() = other;
        self.notify(&self.now());
    }

    /// Every watch fails once, and resumes.
    pub fn break_watches(&self) {
        self.breaks.fetch_add(1, Ordering::Relaxed);
        self.newest.send_modify(|_| {});
    }

    /// Compacts the history before a revision, which itself stays readable.
    pub fn compact(&self, revision: Revision) {
        self.now().history.compact(revision);
        // Wakes watches of earlier revisions.
        self.newest.send_modify(|_| {});
    }

    /// The state, without expired leases.
    fn now(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let ended = state.leases.iter().filter(|(_, term)| term.ends_at <= now);
        let ended: Vec<i64> = ended.map(|(id, _)| *id).collect();
        for id in ended {
            state.end_lease(id);
        }
        self.notify(&state);
        state
    }

    fn notify(&self, state: &State) {
        let newest = state.history.newest();
        self.newest
            .send_if_modified(|delivered| std::mem::replace(delivered, newest) != newest);
    }

    fn next_end(&self) -> Option<Instant> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.leases.values().map(|term| term.ends_at).min()
    }
}

impl Default for State {
    fn default() -> Self {
        Self {
            identity: COUNT.fetch_add(1, Ordering::Relaxed),
            history: History::default(),
            leases: BTreeMap::new(),
            leases_granted: 0,
        }
    }
}

impl State {
    fn end_lease(&mut self, id: i64) {
        self.leases.remove(&id);
        self.history.delete_leased(Lease(id));
    }
}

impl KeyStore for MemoryKeys {
    type Watch = MemoryWatch;

    async fn commit(&self, transaction: Transaction) -> Result<TransactionOutcome, Error> {
        let mut state = self.now();
        let State {
            history, leases, ..
        } = &mut *state;
        let outcome = history.commit(transaction, |lease| leases.contains_key(&lease.0))?;
        self.notify(&state);
        Ok(outcome)
    }

    async fn list(
        &self,
        range: Range,
        limit: usize,
        at: Option<Revision>,
    ) -> Result<RangePart, Error> {
        self.now().history.list(&range, limit, at)
    }

    async fn identity(&self) -> Result<u64, Error> {
        Ok(self.now().identity)
    }

    async fn grant(&self, seconds: u32) -> Result<Lease, Error> {
        let mut state = self.now();
        state.leases_granted += 1;
        let id = state.leases_granted;
        let ends_at = Instant::now() + Duration::from_secs(seconds.into());
        state.leases.insert(id, Term { seconds, ends_at });
        // Wakes waiters to use the new expiry.
        self.newest.send_modify(|_| {});
        Ok(Lease(id))
    }

    async fn renew(&self, lease: Lease) -> Result<Renewal, Error> {
        let mut state = self.now();
        let Some(term) = state.leases.get_mut(&lease.0) else {
            return Ok(Renewal::Expired);
        };
        term.ends_at = Instant::now() + Duration::from_secs(term.seconds.into());
        Ok(Renewal::Renewed)
    }

    async fn revoke(&self, lease: Lease) -> Result<(), Error> {
        let mut state = self.now();
        state.end_lease(lease.0);
        self.notify(&state);
        Ok(())
    }

    fn watch(&self, range: Range, after: ReadPosition) -> MemoryWatch {
        MemoryWatch {
            newest: self.newest.subscribe(),
            store: self.clone(),
            range,
            delivered: after.revision,
            breaks: self.breaks.load(Ordering::Relaxed),
        }
    }
}

/// A watch of a [`MemoryKeys`].
#[derive(Debug)]
pub struct MemoryWatch {
    store: MemoryKeys,
    newest: watch::Receiver<Revision>,
    range: Range,
    delivered: Revision,
    /// How often it has lost its connection.
    breaks: u64,
}

impl KeyWatch for MemoryWatch {
    async fn next(&mut self) -> Result<Batch, Error> {
        loop {
            self.newest.mark_unchanged();
            let breaks = self.store.breaks.load(Ordering::Relaxed);
            if std::mem::replace(&mut self.breaks, breaks) != breaks {
                return Err(Error::Unavailable {
                    doing: "watch a range",
                    source: "the connection is lost".into(),
                });
            }
            let batch = self
                .store
                .now()
                .history
                .since(&self.range, self.delivered)?;
            // Progress elsewhere is reported, too.
            if batch.revision > self.delivered {
                self.delivered = batch.revision;
                return Ok(batch);
            }
            let end = self.store.next_end();
            tokio::select! {
                _ = self.newest.changed() => {}
                () = sleep_until(end) => {}
            }
        }
    }
}

async fn sleep_until(end: Option<Instant>) {
    match end {
        Some(end) => tokio::time::sleep_until(end).await,
        None => std::future::pending().await,
    }
}
