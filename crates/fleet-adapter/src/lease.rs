//! The lease of the adapter: of several replicas, only the holder of a key in etcd works.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hyperfleet_fleet::keys::{self, Error, KeyOperation, KeyStore, Lease, Renewal, Transaction};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// How often a lease is renewed during its time.
const RENEWALS: u32 = 3;

/// A replica's view of its lease. Clones share it.
#[derive(Debug, Clone)]
pub struct Tenure {
    /// Until when the lease certainly lasts; `None` for a single replica.
    lasts: Option<watch::Receiver<Instant>>,
    /// How often this replica has acquired the lease.
    terms: Arc<AtomicU64>,
}

impl Tenure {
    /// For a single replica.
    pub fn unshared() -> Self {
        Self {
            lasts: None,
            terms: Arc::default(),
        }
    }

    /// Whether no other replica can hold the lease now. Only then fleet may be changed.
    pub fn is_certain(&self) -> bool {
        let lasts = self.lasts.as_ref().map(|lasts| *lasts.borrow());
        lasts.is_none_or(|until| Instant::now() < until)
    }

    /// Identifies a term of this replica.
    pub fn term(&self) -> u64 {
        self.terms.load(Ordering::Acquire)
    }
}

/// Acquires and renews the lease.
#[derive(Debug)]
pub struct LeaseKeeper<S> {
    store: S,
    key: String,
    instance: String,
    time: Duration,
    leads: watch::Sender<bool>,
    lasts: watch::Sender<Instant>,
    terms: Arc<AtomicU64>,
}

impl<S: KeyStore> LeaseKeeper<S> {
    /// Prepares a lease on a key, for the replica of this name.
    pub fn new(store: S, key: String, instance: String, seconds: u32) -> Self {
        Self {
            store,
            key,
            instance,
            time: Duration::from_secs(seconds.max(1).into()),
            leads: watch::channel(false).0,
            lasts: watch::channel(Instant::now()).0,
            terms: Arc::default(),
        }
    }

    /// Reports whether this replica works.
    pub fn leads(&self) -> watch::Receiver<bool> {
        self.leads.subscribe()
    }

    pub fn tenure(&self) -> Tenure {
        Tenure {
            lasts: Some(self.lasts.subscribe()),
            terms: Arc::clone(&self.terms),
        }
    }

    /// Acquires the lease whenever it is free, until `stop`, and then releases it.
    ///
    /// A replica that loses etcd continues to work: no other replica can acquire the lease then, and the only
    /// effect is a report that etcd is away.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        tokio::pin!(stop);
        let mut held = None;
        loop {
            tokio::select! {
                () = &mut stop => break,
                () = self.step(&mut held) => {}
            }
        }
        self.leads.send_replace(false);
        if let Some(lease) = held
            && self.store.revoke(lease).await.is_err()
        {
            tracing::info!("releasing the adapter lease failed: it will expire");
        }
    }

    async fn step(&self, held: &mut Option<Lease>) {
        let asked_at = Instant::now();
        match *held {
            None => match self.acquire().await {
                Ok(Some(lease)) => {
                    *held = Some(lease);
                    self.terms.fetch_add(1, Ordering::AcqRel);
                    self.lasts.send_replace(asked_at + self.time);
                    self.leads.send_replace(true);
                    tracing::info!(key = self.key, "adapter lease acquired");
                }
                Ok(None) => {}
                Err(error) => tracing::debug!(%error, "acquiring the adapter lease failed"),
            },
            Some(lease) => match self.store.renew(lease).await {
                Ok(Renewal::Renewed) => {
                    self.lasts.send_replace(asked_at + self.time);
                }
                Ok(Renewal::Expired) => {
                    tracing::warn!(key = self.key, "adapter lease lost");
                    *held = None;
                    self.leads.send_replace(false);
                    return;
                }
                Err(error) => tracing::debug!(%error, "renewing the adapter lease failed"),
            },
        }
        sleep(self.time / RENEWALS).await;
    }

    /// `None` if another replica holds it.
    async fn acquire(&self) -> Result<Option<Lease>, Error> {
        let found = self.store.commit(Transaction {
            then: vec![KeyOperation::Get(self.key.clone())],
            ..Transaction::default()
        });
        if found.await?.entry(&self.key).is_some() {
            return Ok(None);
        }
        let seconds = u32::try_from(self.time.as_secs()).unwrap_or(u32::MAX);
        let value = self.instance.clone().into_bytes();
        let acquired = keys::acquire(&self.store, self.key.clone(), value, seconds).await?;
        Ok(acquired.ok().map(|held| held.lease))
    }
}

#[cfg(test)]
#[path = "tests/lease.rs"]
mod tests;
