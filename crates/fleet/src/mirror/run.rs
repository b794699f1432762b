//! The task that keeps the mirror up to date.

use std::time::Duration;

use super::Mirror;
use crate::Fleet;
use crate::keys::KeyStore;
use crate::registry::{Error, Snapshot, Watch, WatchScope, WatchUpdate};
use hyperfleet_server_kit::backoff::Backoff;
use hyperfleet_server_kit::causes::chain;

/// Pauses after failures.
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
        let mut backoff = Backoff::new(PAUSE, PAUSE_MAX);
        let mut watch = loop {
            match self.list_all().await {
                Ok(watch) => break watch,
                Err(error) => pause_after(&error, &mut backoff).await,
            }
        };
        loop {
            match self.watch_on(&mut watch, &mut backoff).await {
                Ok(update) => {
                    log_recovery(&mut backoff);
                    self.mirror.apply_update(update);
                }
                Err(error) => {
                    self.mirror.set_connected(false);
                    pause_after(&error, &mut backoff).await;
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
        log_recovery(backoff);
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

/// Logs the first failure in a row, and pauses.
async fn pause_after(error: &Error, backoff: &mut Backoff) {
    if !backoff.is_failing() {
        tracing::warn!(error = chain(error), "mirror disconnected from etcd");
    }
    tokio::time::sleep(backoff.next_pause()).await;
}

fn log_recovery(backoff: &mut Backoff) {
    if backoff.reset() {
        tracing::info!("mirror connected");
    }
}
