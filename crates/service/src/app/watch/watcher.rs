//! One watcher: the list first if it wants it, then every change after the list's position, in order.

use std::sync::Arc;
use std::time::Duration;

use strum::{IntoStaticStr, VariantNames};
use tokio::time::{Instant, sleep, timeout_at};

use super::batch::BatchSize;
use super::event::{SharedChange, WatchEvent, change_bytes, resource_bytes};
use super::feed::{Subscription, Taken};
use super::metrics;
use crate::app::{Error, Service};
use hyperfleet_domain::StoredResource;
use hyperfleet_domain::change::ChangePosition;
use hyperfleet_domain::page::{Order, PageRequest};
use hyperfleet_domain::position::RowPosition;
use hyperfleet_domain::watch::WatchFilter;
use hyperfleet_storage::{ChangesSlice, ListQuery};

/// Positions that one statement of a watcher looks at, whether they concern it or not.
const WINDOW: i64 = 5_000;
/// Time before another attempt while the database is unavailable.
const PAUSE: Duration = Duration::from_secs(1);

/// One watch. Dropping it ends it.
pub struct Watcher {
    service: Service,
    filter: WatchFilter,
    subscription: Subscription,
    /// Everything up to here was returned; while the list is read, everything up to here is in it.
    position: ChangePosition,
    /// The rest of the list that the watch begins with.
    list: Option<InitialList>,
    batch: BatchSize,
    /// Since when it has been behind, after it was up to date.
    behind_since: Option<Instant>,
    was_current: bool,
}

struct InitialList {
    /// The last resource that was returned.
    after: Option<RowPosition>,
    has_specs: bool,
    is_read: bool,
}

/// What a watcher has to show next.
#[derive(Debug)]
pub enum WatchStep {
    /// Resources of the list that the watch begins with. They have no positions: a client that breaks off before the list
    /// is complete begins again.
    Listed(Vec<StoredResource>),
    /// The list is complete. Every change after the position follows, including changes that the list already contains.
    Complete(ChangePosition),
    /// Events, in the order of their changes.
    Events(Vec<WatchEvent>),
    /// Nothing until the deadline.
    Nothing,
}

/// Why a watch ends before its client wants it to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantNames)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum WatchEnd {
    /// Changes after its position are no longer stored.
    Gone,
    /// The client takes changes more slowly than they happen.
    Behind,
    /// The caller is no longer allowed to watch.
    Unauthorized,
    /// The service failed.
    Failed,
}

impl WatchEnd {
    pub(super) const REASONS: &[&str] = Self::VARIANTS;

    /// Counts a watch that ends like this.
    pub fn count(self) {
        metrics::ended(self.into_str());
    }
}

impl Watcher {
    pub(super) fn new(
        service: Service,
        filter: WatchFilter,
        subscription: Subscription,
        position: ChangePosition,
    ) -> Self {
        Self {
            service,
            filter,
            subscription,
            position,
            list: None,
            batch: BatchSize::default(),
            behind_since: None,
            was_current: false,
        }
    }

    /// The same, beginning with the list.
    pub(super) fn with_list(self, has_specs: bool) -> Self {
        let list = InitialList {
            after: None,
            has_specs,
            is_read: false,
        };
        Self {
            list: Some(list),
            ..self
        }
    }

    /// Everything up to this position was returned; `None` while the list is not complete.
    pub fn position(&self) -> Option<ChangePosition> {
        self.list.is_none().then_some(self.position)
    }

    /// What to show next, at the deadline at the latest; a page of the list that is being read then is waited for. If it
    /// is cancelled, the next call returns the same.
    ///
    /// # Errors
    ///
    /// Why the watch ends.
    pub async fn next(&mut self, deadline: Instant) -> Result<WatchStep, WatchEnd> {
        loop {
            let step = match &self.list {
                Some(list) if list.is_read => {
                    self.list = None;
                    return Ok(WatchStep::Complete(self.position));
                }
                Some(_) => self.list().await,
                None => self.follow(deadline).await,
            };
            match step {
                Ok(Some(step)) => return Ok(step),
                Ok(None) => {}
                Err(Stopped::End(end)) => return Err(end),
                Err(Stopped::Storage(error)) => {
                    if !matches!(
                        error,
                        Error::Unavailable(_) | Error::Contended(_) | Error::TooSlow
                    ) {
                        tracing::error!(error = &error as &dyn std::error::Error, "watch failed");
                        return Err(WatchEnd::Failed);
                    }
                    tracing::debug!(error = &error as &dyn std::error::Error, "watch waits");
                    // The connection to the client outlives an outage of the database.
                    if timeout_at(deadline, sleep(PAUSE)).await.is_err() {
                        return Ok(WatchStep::Nothing);
                    }
                }
            }
        }
    }

    /// The next page of the list, newest first: an index has them in this order. A search that takes too long for a list
    /// ends the watch.
    async fn list(&mut self) -> Result<Option<WatchStep>, Stopped> {
        let Some(list) = &mut self.list else {
            return Ok(None);
        };
        let query = ListQuery {
            tenants: &self.filter.tenants,
            owner: self.filter.owner,
            filters: self.filter.filters.clone(),
            registry: self.service.registry(),
            order: Order::newest_first(),
            page: PageRequest {
                number: 1,
                size: self.batch.count().try_into().unwrap_or(1),
            },
            after: list.after.clone(),
            has_specs: list.has_specs,
        };
        let mut session = self.service.store.slow_session().await?;
        let page = session
            .db()
            .list_resources(&query)
            .await
            .map_err(Error::from);
        drop(session);
        if let Err(Error::TooSlow) = page {
            tracing::warn!("a watch ends: its list takes too long");
            return Err(Stopped::End(WatchEnd::Failed));
        }
        let page = page?;
        self.batch.learn(page.items.iter().map(resource_bytes));
        list.is_read = page.next.is_none();
        list.after = page.next;
        Ok((!page.items.is_empty()).then_some(WatchStep::Listed(page.items)))
    }

    /// The next changes.
    async fn follow(&mut self, deadline: Instant) -> Result<Option<WatchStep>, Stopped> {
        let (changes, reached) = match self.subscription.take(self.position) {
            Taken::Over => return Err(Stopped::End(WatchEnd::Gone)),
            Taken::Behind(horizon) => match timeout_at(deadline, self.catch_up(horizon)).await {
                Ok(read) => read?,
                Err(_) => return Ok(Some(WatchStep::Nothing)),
            },
            Taken::Changes(changes, reached) => {
                self.was_current = true;
                self.behind_since = None;
                (changes, reached)
            }
        };
        let is_further = reached > self.position.number;
        self.position.number = reached.max(self.position.number);
        let events = self.events(changes);
        if !events.is_empty() {
            return Ok(Some(WatchStep::Events(events)));
        }
        if is_further && Instant::now() < deadline {
            return Ok(None);
        }
        // Whatever ends the wait, the next call looks.
        let waited = timeout_at(deadline, self.subscription.changed()).await;
        Ok(waited.is_err().then_some(WatchStep::Nothing))
    }

    /// What these changes are to the client.
    fn events(&self, changes: Vec<Arc<SharedChange>>) -> Vec<WatchEvent> {
        let kinds = self.service.registry();
        let events = changes.into_iter().filter_map(|change| {
            let (kind, _) = self.filter.event(&change.change, kinds)?;
            metrics::sent(kind);
            Some(WatchEvent::new(kind, change))
        });
        events.collect()
    }

    /// Reads changes from the table, because the ring no longer contains them: up to `horizon`, which is beyond the
    /// watcher's position. The reader of changes has published those, so no earlier one can appear.
    async fn catch_up(&mut self, horizon: i64) -> Result<(Vec<Arc<SharedChange>>, i64), Stopped> {
        if self.was_current {
            let since = *self.behind_since.get_or_insert_with(Instant::now);
            if since.elapsed() > self.service.watch_behind_max {
                return Err(Stopped::End(WatchEnd::Behind));
            }
        }
        metrics::catch_up();
        let after = self.position.number;
        let slice = ChangesSlice {
            after,
            upto: horizon.min(after.saturating_add(WINDOW)),
            kind: self.filter.kind(),
            count_max: self.batch.count(),
        };
        let mut session = self.service.store.slow_session().await?;
        let read = session.db().read_changes(slice).await?;
        drop(session);
        if read.era != self.position.era || read.removed > after {
            return Err(Stopped::End(WatchEnd::Gone));
        }
        self.batch.learn(read.changes.iter().map(change_bytes));
        let changes = read.changes.into_iter().map(SharedChange::new);
        Ok((changes.map(Arc::new).collect(), read.reached))
    }
}

/// Why there is no next step.
enum Stopped {
    End(WatchEnd),
    Storage(Error),
}

impl From<hyperfleet_storage::Error> for Stopped {
    fn from(error: hyperfleet_storage::Error) -> Self {
        Self::Storage(error.into())
    }
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Self::Storage(error)
    }
}
