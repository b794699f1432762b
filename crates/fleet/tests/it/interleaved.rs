//! The store of one client that sees and does things later than others, as over a slow network.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyperfleet_fleet::keys::{
    Batch, Error, KeyStore, KeyWatch, Lease, Range, RangePart, ReadPosition, Renewal, Revision,
    Transaction, TransactionOutcome,
};
use hyperfleet_testkit::Random;
use tokio::sync::watch;
use tokio::time::sleep;

type Overtaking = Pin<Box<dyn Future<Output = ()> + Send>>;
type IsOvertaken = Box<dyn Fn(&Transaction) -> bool + Send>;

/// A store that delays its client. Clones are delayed together.
#[derive(Clone)]
pub(super) struct Interleaved<S> {
    inner: S,
    are_reads_held: Arc<watch::Sender<bool>>,
    watches: Arc<AtomicUsize>,
    delays: Arc<Mutex<Option<Delays>>>,
    overtaking: Arc<Mutex<Option<(IsOvertaken, Overtaking)>>>,
}

struct Delays {
    random: Random,
    most: usize,
}

impl<S: KeyStore> Interleaved<S> {
    pub(super) fn new(inner: S) -> Self {
        Self {
            inner,
            are_reads_held: Arc::new(watch::Sender::new(false)),
            watches: Arc::default(),
            delays: Arc::default(),
            overtaking: Arc::default(),
        }
    }

    /// Delays every list, event and transaction by a random time up to this one.
    pub(super) fn delayed(inner: S, seed: u64, most: Duration) -> Self {
        let this = Self::new(inner);
        let (random, most) = (Random::seeded(seed), most.as_millis().try_into().unwrap());
        *this.delays.lock().unwrap() = Some(Delays { random, most });
        this
    }

    /// While held, no list is answered and no event delivered. Transactions are carried out.
    pub(super) fn hold_reads(&self, are_held: bool) {
        self.are_reads_held.send_replace(are_held);
    }

    /// How many watches were started.
    pub(super) fn watches(&self) -> usize {
        self.watches.load(Ordering::Relaxed)
    }

    /// Runs something right before the first transaction of this kind is carried out.
    pub(super) fn overtake(
        &self,
        is_overtaken: impl Fn(&Transaction) -> bool + Send + 'static,
        overtaking: impl Future<Output = ()> + Send + 'static,
    ) {
        let mut next = self.overtaking.lock().unwrap();
        *next = Some((Box::new(is_overtaken), Box::pin(overtaking)));
    }

    /// Whether the transaction of [`overtake`](Self::overtake) has come.
    pub(super) fn has_overtaken(&self) -> bool {
        self.overtaking.lock().unwrap().is_none()
    }

    async fn delay(&self) {
        let pause = {
            let mut delays = self.delays.lock().unwrap_or_else(PoisonError::into_inner);
            delays
                .as_mut()
                .map(|delays| delays.random.below(delays.most + 1))
        };
        if let Some(pause) = pause {
            sleep(Duration::from_millis(pause.try_into().unwrap())).await;
        }
    }

    async fn readable(&self) {
        self.delay().await;
        let mut are_held = self.are_reads_held.subscribe();
        are_held.wait_for(|are_held| !are_held).await.unwrap();
    }

    fn overtaking(&self, transaction: &Transaction) -> Option<Overtaking> {
        let mut next = self.overtaking.lock().unwrap();
        next.take_if(|(is_overtaken, _)| is_overtaken(transaction))
            .map(|(_, overtaking)| overtaking)
    }
}

impl<S: KeyStore> KeyStore for Interleaved<S> {
    type Watch = InterleavedWatch<S>;

    async fn commit(&self, transaction: Transaction) -> Result<TransactionOutcome, Error> {
        self.delay().await;
        if let Some(overtaking) = self.overtaking(&transaction) {
            overtaking.await;
        }
        self.inner.commit(transaction).await
    }

    async fn list(
        &self,
        range: Range,
        limit: usize,
        at: Option<Revision>,
    ) -> Result<RangePart, Error> {
        self.readable().await;
        self.inner.list(range, limit, at).await
    }

    async fn identity(&self) -> Result<u64, Error> {
        self.inner.identity().await
    }

    async fn grant(&self, seconds: u32) -> Result<Lease, Error> {
        self.inner.grant(seconds).await
    }

    async fn renew(&self, lease: Lease) -> Result<Renewal, Error> {
        self.inner.renew(lease).await
    }

    async fn revoke(&self, lease: Lease) -> Result<(), Error> {
        self.inner.revoke(lease).await
    }

    fn watch(&self, range: Range, after: ReadPosition) -> InterleavedWatch<S> {
        self.watches.fetch_add(1, Ordering::Relaxed);
        InterleavedWatch {
            inner: self.inner.watch(range, after),
            store: self.clone(),
            under_way: None,
        }
    }
}

/// A watch with late events.
pub(super) struct InterleavedWatch<S: KeyStore> {
    inner: S::Watch,
    store: Interleaved<S>,
    under_way: Option<Result<Batch, Error>>,
}

impl<S: KeyStore> KeyWatch for InterleavedWatch<S> {
    async fn next(&mut self) -> Result<Batch, Error> {
        if self.under_way.is_none() {
            self.under_way = Some(self.inner.next().await);
        }
        self.store.readable().await;
        self.under_way.take().unwrap()
    }
}
