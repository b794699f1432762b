//! The task that keeps the mirror up to date.

use std::time::Duration;

use super::Mirror;
use crate::Fleet;
use crate::keys::KeyStore;
use crate::registry::{Error, Snapshot, Watch, WatchScope, WatchUpdate};
use hyperfleet_server_kit::causes::chain;

/// Pause after the first failure, doubled with each further one.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// A reopened watch counts as caught up after this time without events: etcd sends missed events at once.
const SETTLING: Duration = Duration::from_secs(1);

impl<S: KeyStore> Fleet<S> {
    /// Lists everything and then watches, for ever; run it under `supervise`. While it does not run, or etcd is
    /// unreachable, the mirror is not connected.
    ///
    /// After a failure it resumes. If the history was compacted meanwhile, it lists everything again.
    pub async fn run_mirror(self) {
        let _connection = Connection(&self.mirror);
        let mut backoff = Backoff::default();
        let mut watch = loop {
            match self.list_all().await {
                Ok(watch) => break watch,
                Err(error) => backoff.after(&error).await,
            }
        };
        loop {
            match self.watch_on(&mut watch, &mut backoff).await {
                Ok(update) => {
                    backoff.ended();
                    self.mirror.apply_update(update);
                }
                Err(error) => {
                    self.mirror.set_connected(false);
                    backoff.after(&error).await;
                }
            }
        }
    }

    async fn list_all(&self) -> Result<Watch<S>, Error> {
        let (found, position) = self.registry.list(&WatchScope::Everything).await?;
        let snapshot = Snapshot::of(position.revision, found);
        let watch = self.registry.watch(&WatchScope::Everything, position)?;
        self.mirror.replace(snapshot);
        Ok(watch)
    }

    /// The next update of the watch. A broken watch counts as connected again once etcd answers and the watch
    /// lives for a while.
    async fn watch_on(
        &self,
        watch: &mut Watch<S>,
        backoff: &mut Backoff,
    ) -> Result<WatchUpdate, Error> {
        if self.mirror.is_connected() {
            return watch.next().await;
        }
        self.registry.newest().await?;
        let next = watch.next();
        tokio::pin!(next);
        if let Ok(update) = tokio::time::timeout(SETTLING, &mut next).await {
            return update;
        }
        backoff.ended();
        self.mirror.set_connected(true);
        next.await
    }
}

impl Mirror {
    fn apply_update(&self, update: WatchUpdate) {
        match update {
            WatchUpdate::Changes { revision, changes } => self.apply(revision, changes),
            WatchUpdate::Relisted { revision, found } => {
                self.replace(Snapshot::of(revision, found));
            }
        }
    }
}

/// Marks the mirror as not connected when dropped.
struct Connection<'a>(&'a Mirror);

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        self.0.set_connected(false);
    }
}

/// Pauses after failures. The first failure in a row is logged.
#[derive(Default)]
struct Backoff {
    failures: u32,
}

impl Backoff {
    async fn after(&mut self, error: &Error) {
        if self.failures == 0 {
            tracing::warn!(error = chain(error), "mirror disconnected from etcd");
        }
        let pause = PAUSE.saturating_mul(1 << self.failures.min(16));
        self.failures += 1;
        tokio::time::sleep(pause.min(PAUSE_MAX)).await;
    }

    fn ended(&mut self) {
        if std::mem::take(&mut self.failures) > 0 {
            tracing::info!("mirror connected");
        }
    }
}
