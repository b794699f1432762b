//! The store of an engine that may be frozen at any moment, behind a network that is slow, loses responses, and
//! delivers requests late.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyperfleet_fleet::keys::{
    Batch, Error, Guard, KeyOperation, KeyStore, KeyWatch, Lease, Range, RangePart, ReadPosition,
    Renewal, Revision, Transaction, TransactionOutcome,
};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use hyperfleet_testkit::Random;

/// How long an engine waits for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The store of one engine. Clones are frozen together.
#[derive(Clone)]
pub(super) struct Held<S> {
    inner: S,
    is_frozen: Arc<watch::Sender<bool>>,
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    random: Random,
    /// Whether responses get lost and requests arrive late.
    is_rough: bool,
    /// Transactions of a deposed leader.
    refused: u64,
}

impl<S: KeyStore> Held<S> {
    pub(super) fn new(inner: S, seed: u64) -> Self {
        let shared = Shared {
            random: Random::seeded(seed),
            is_rough: true,
            refused: 0,
        };
        Self {
            inner,
            is_frozen: Arc::new(watch::Sender::new(false)),
            shared: Arc::new(Mutex::new(shared)),
        }
    }

    /// A slow network without other faults.
    pub(super) fn calmed(inner: S) -> Self {
        let held = Self::new(inner, 1);
        held.calm();
        held
    }

    /// While frozen, nothing is sent or received.
    pub(super) fn freeze(&self, is_frozen: bool) {
        self.is_frozen.send_replace(is_frozen);
    }

    pub(super) fn calm(&self) {
        self.freeze(false);
        self.with(|shared| shared.is_rough = false);
    }

    /// How many writes were refused because the term had ended.
    pub(super) fn refused(&self) -> u64 {
        self.with(|shared| shared.refused)
    }

    fn with<T>(&self, run: impl FnOnce(&mut Shared) -> T) -> T {
        run(&mut self.shared.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn thawed(&self) {
        self.is_frozen.subscribe().wait_for(|is| !is).await.unwrap();
    }

    /// True once in `one_in` times.
    fn happens(&self, one_in: usize) -> bool {
        self.with(|shared| shared.is_rough && shared.random.below(one_in) == 0)
    }

    fn delay(&self) -> Duration {
        let most = match (self.happens(40), self.happens(10)) {
            (true, _) => 9_000, // longer than anybody waits
            (_, true) => 300,
            _ => 5,
        };
        let random = self.with(|shared| shared.random.below(most + 1));
        Duration::from_millis(random.try_into().unwrap())
    }

    async fn call<T: Send + 'static>(
        &self,
        effect: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        self.thawed().await;
        let (this, delay) = (self.clone(), self.delay());
        let (waits_before, is_lost) = (self.happens(2), self.happens(50));
        // A sent request arrives even if its caller stops waiting.
        let sent = tokio::spawn(async move {
            sleep(delay).await;
            if waits_before {
                this.thawed().await;
            }
            let answer = effect.await;
            if is_lost { Err(unavailable()) } else { answer }
        });
        let answer = tokio::time::timeout(PATIENCE, sent).await;
        self.thawed().await;
        answer.map_or_else(|_| Err(unavailable()), |sent| sent.unwrap())
    }

    /// Every write of an engine is guarded by its term, except that of the leader itself.
    fn check(transaction: &Transaction) {
        let writes = |operation: &KeyOperation| match operation {
            KeyOperation::Put(key, ..) | KeyOperation::Delete(key) => !key.contains("/engine/"),
            KeyOperation::Get(_) => false,
        };
        let guard = |guard: &Guard| term(guard).is_some();
        assert!(
            !transaction.then.iter().any(writes) || transaction.guards.iter().any(guard),
            "{transaction:?}"
        );
    }
}

/// The term that a write is guarded by.
fn term(guard: &Guard) -> Option<Revision> {
    match guard {
        Guard::Created(key, at) if key.ends_with("/engine/leader") => Some(*at),
        _ => None,
    }
}

fn unavailable() -> Error {
    Error::Unavailable {
        doing: "get through",
        source: "the test says so".into(),
    }
}

impl<S: KeyStore> KeyStore for Held<S> {
    type Watch = HeldWatch<S>;

    async fn commit(&self, transaction: Transaction) -> Result<TransactionOutcome, Error> {
        Self::check(&transaction);
        let this = self.clone();
        self.call(async move {
            let term = transaction.guards.iter().find_map(term);
            let outcome = this.inner.commit(transaction).await?;
            let leader = outcome
                .found
                .iter()
                .find(|e| e.key.ends_with(b"/engine/leader"));
            if !outcome.succeeded && term.is_some() && leader.map(|leader| leader.created) != term {
                this.with(|shared| shared.refused += 1);
            }
            Ok(outcome)
        })
        .await
    }

    async fn list(
        &self,
        range: Range,
        limit: usize,
        at: Option<Revision>,
    ) -> Result<RangePart, Error> {
        let inner = self.inner.clone();
        self.call(async move { inner.list(range, limit, at).await })
            .await
    }

    async fn identity(&self) -> Result<u64, Error> {
        let inner = self.inner.clone();
        self.call(async move { inner.identity().await }).await
    }

    async fn grant(&self, seconds: u32) -> Result<Lease, Error> {
        let inner = self.inner.clone();
        self.call(async move { inner.grant(seconds).await }).await
    }

    async fn renew(&self, lease: Lease) -> Result<Renewal, Error> {
        let inner = self.inner.clone();
        self.call(async move { inner.renew(lease).await }).await
    }

    async fn revoke(&self, lease: Lease) -> Result<(), Error> {
        let inner = self.inner.clone();
        self.call(async move { inner.revoke(lease).await }).await
    }

    fn watch(&self, range: Range, after: ReadPosition) -> HeldWatch<S> {
        HeldWatch {
            inner: self.inner.watch(range, after),
            store: self.clone(),
            under_way: None,
        }
    }
}

/// A watch with late events.
pub(super) struct HeldWatch<S: KeyStore> {
    inner: S::Watch,
    store: Held<S>,
    under_way: Option<(Instant, Result<Batch, Error>)>,
}

impl<S: KeyStore> KeyWatch for HeldWatch<S> {
    async fn next(&mut self) -> Result<Batch, Error> {
        if self.under_way.is_none() {
            let told = if self.store.happens(60) {
                Err(unavailable())
            } else {
                self.inner.next().await
            };
            self.under_way = Some((Instant::now() + self.store.delay(), told));
        }
        let until = self.under_way.as_ref().map(|(until, _)| *until).unwrap();
        sleep_until(until).await;
        self.store.thawed().await;
        self.under_way.take().unwrap().1
    }
}
