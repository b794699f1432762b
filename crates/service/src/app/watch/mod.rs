//! Watches of lists (`docs/decisions/0074-watch.md`).
//!
//! ```text
//! database ──tail: every change once──▶ feed (the latest changes) ──▶ watchers, each with its filter
//!     └──────────── a watcher that is behind the feed reads the table ────────────▲
//! ```

mod batch;
mod event;
mod feed;
mod metrics;
mod tail;
mod watcher;

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::time::{Instant, timeout_at};

pub use event::WatchEvent;
pub use watcher::{WatchEnd, WatchStep, Watcher};

use super::expiry::{STEP_ROWS, Steps};
use super::{Collection, Error, Service};
use feed::{Feed, Progress};
use hyperfleet_domain::change::ChangePosition;
use hyperfleet_domain::tenancy::TenantScope;
use hyperfleet_domain::watch::{WatchFilter, WatchStart};
use hyperfleet_domain::{Constraint, ListFilter, Violation};

/// How long the start of a watch waits for the reader of changes.
const START_TIME_MAX: Duration = Duration::from_secs(5);

/// What the watches of one instance share, as do clones.
#[derive(Clone)]
pub(super) struct Watches(Arc<Feed>);

/// A watch of a list, as a client asks for it.
#[derive(Debug, Clone)]
pub struct WatchRequest {
    pub start: WatchStart,
    /// Filters of the list, from [`Service::filters`].
    pub filters: Vec<ListFilter>,
    /// Whether events show specs.
    pub has_specs: bool,
}

impl Watches {
    pub(super) fn new() -> Self {
        Self(Arc::new(Feed::new()))
    }
}

impl Service {
    /// The position to watch from after an answer that is read from now on: such a watch misses no change. `None` until the
    /// instance has read it for the first time.
    pub fn position(&self) -> Option<ChangePosition> {
        self.watches.0.progress().map(Progress::position)
    }

    /// Reads changes and publishes them to watchers, forever.
    pub async fn follow_changes(&self) {
        tail::follow(&self.watches.0, self.store.change_feed()).await;
    }

    /// Begins a watch of what a caller sees of a list.
    ///
    /// # Errors
    ///
    /// The list does not exist; it cannot be watched; changes after the position are no longer stored.
    pub async fn watch(
        &self,
        tenants: &TenantScope,
        collection: Collection<'_>,
        request: WatchRequest,
    ) -> Result<Watcher, Error> {
        let filter = WatchFilter {
            tenants: tenants.clone(),
            owner: Self::owner(collection)?,
            filters: self.conditions(collection, request.filters),
        };
        self.require_collection(tenants, collection).await?;
        refuse_times(&filter)?;
        self.finalizing_lists.record(&filter.filters);
        let begun = self.begin_at(request.start).await?;
        let subscription = Feed::subscribe(&self.watches.0);
        let watcher = Watcher::new(self.clone(), filter, subscription, begun);
        Ok(if request.start == WatchStart::Initial {
            watcher.with_list(request.has_specs)
        } else {
            watcher
        })
    }

    /// The position at which a watch begins.
    async fn begin_at(&self, start: WatchStart) -> Result<ChangePosition, Error> {
        let feed = &self.watches.0;
        let known = match (start, feed.progress()) {
            (WatchStart::After(position), Some(known)) if !known.may_lag_behind(position) => known,
            // Another instance may be ahead of this one.
            _ => {
                let until = Instant::now() + START_TIME_MAX;
                let polled = timeout_at(until, feed.polled_from_now()).await;
                polled.map_err(|_| not_following())?
            }
        };
        match start {
            WatchStart::Now | WatchStart::Initial => Ok(known.position()),
            WatchStart::After(position) if known.reaches(position) => Ok(position),
            WatchStart::After(_) => Err(Error::PositionGone),
        }
    }

    /// Removes all changes that are older than `before`; returns their number.
    pub async fn expire_changes(&self, before: DateTime<Utc>) -> Result<u64, Error> {
        let mut steps = Steps::begin();
        loop {
            let mut session = self.store.session().await?;
            let count = session
                .db()
                .delete_changes_before(before, STEP_ROWS)
                .await?;
            drop(session);
            if !steps.rest_after(count).await {
                return Ok(steps.removed());
            }
        }
    }
}

/// Creates the series of watches with the value 0.
pub(super) fn count_from_zero() {
    metrics::count_from_zero(WatchEnd::REASONS);
}

/// Reports move times of conditions without a recorded change, so that nothing would tell when such a search begins or
/// ceases to match.
fn refuse_times(filter: &WatchFilter) -> Result<(), Error> {
    let mentions = |filter: &ListFilter| match filter {
        ListFilter::Search(search) => search.mentions_report_times(),
        _ => false,
    };
    if filter.filters.iter().any(mentions) {
        let message =
            "cannot be watched: it names a time of a condition, which changes without an event";
        return Err(Violation::new("search", Constraint::Format, message).into());
    }
    Ok(())
}

fn not_following() -> Error {
    Error::Unavailable(hyperfleet_storage::Error::Unavailable {
        doing: "follow changes",
        source: "the reader of changes does not get on".into(),
    })
}
