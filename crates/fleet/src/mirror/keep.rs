//! The task that keeps the mirror up to date.

use std::time::Duration;

use super::Mirror;
use crate::Fleet;
use crate::keys::KeyStore;
use crate::registry::{Error, Scope, Snapshot, Told, Watch};
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
    pub async fn keep_mirror(self) {
        let _connection = Connection(&self.mirror);
        let mut rest = Rest::default();
        let mut watch = loop {
            match self.list_all().await {
                Ok(watch) => break watch,
                Err(error) => rest.after(&error).await,
            }
        };
        loop {
            match self.watch_on(&mut watch, &mut rest).await {
                Ok(told) => {
                    rest.ended();
                    self.mirror.take(told);
                }
                Err(error) => {
                    self.mirror.set_connected(false);
                    rest.after(&error).await;
                }
            }
        }
    }

    async fn list_all(&self) -> Result<Watch<S>, Error> {
        let (found, position) = self.registry.list(&Scope::Everything).await?;
        let snapshot = Snapshot::of(position.revision, found);
        let watch = self.registry.watch(&Scope::Everything, position)?;
        self.mirror.replace(snapshot);
        Ok(watch)
    }

    /// The next update of the watch. A broken watch counts as connected again once etcd answers and the watch
    /// lives for a while.
    async fn watch_on(&self, watch: &mut Watch<S>, rest: &mut Rest) -> Result<Told, Error> {
        if self.mirror.is_connected() {
            return watch.next().await;
        }
        self.registry.newest().await?;
        let next = watch.next();
        tokio::pin!(next);
        if let Ok(told) = tokio::time::timeout(SETTLING, &mut next).await {
            return told;
        }
        rest.ended();
        self.mirror.set_connected(true);
        next.await
    }
}

impl Mirror {
    fn take(&self, told: Told) {
        match told {
            Told::Changes { revision, changes } => self.apply(revision, changes),
            Told::Relisted { revision, found } => self.replace(Snapshot::of(revision, found)),
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
struct Rest {
    failures: u32,
}

impl Rest {
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
