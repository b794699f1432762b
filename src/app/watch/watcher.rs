//! One watcher: the list first if it wants it, then every change of it, in order, each once.

use std::sync::Arc;
use std::time::Duration;

use strum::{IntoStaticStr, VariantNames};
use tokio::time::{Instant, sleep, timeout_at};

use super::groups::{Member, Taken};
use super::handed::{HandedChange, change_bytes};
use super::initial_list::InitialList;
use super::metrics;
use super::slices::{SharedSlice, Slice};
use crate::app::{Error, Service};
use crate::domain::StoredResource;
use crate::domain::change::ChangePosition;
use crate::domain::watch::InitialPages;
use crate::storage::postgres::ChangesSlice;

/// Positions that one statement of a watcher looks at, whether they concern it or not.
const WINDOW: i64 = 5_000;
/// Time before another attempt while the database is unavailable.
const PAUSE: Duration = Duration::from_secs(1);

/// One watch. Dropping it ends it.
pub struct Watcher {
    service: Service,
    member: Member,
    /// Everything up to here was returned.
    reached: ChangePosition,
    stage: Stage,
    /// Since when it has been behind, after it was up to date.
    behind_since: Option<Instant>,
    was_current: bool,
    /// What it has read last while it is behind.
    slice: Option<SharedSlice>,
}

enum Stage {
    /// The list is returned page by page.
    Listing(InitialList),
    /// Changes are returned that the list does not show, up to the end of what it may show.
    Settling {
        pages: InitialPages,
        /// Unset until it is known.
        end: Option<i64>,
    },
    Following,
}

/// What a watcher has to show next.
#[derive(Debug)]
pub enum WatchStep {
    /// Resources of the list that the watch begins with. They have no positions: a client that breaks off before the list
    /// is complete begins again.
    Listed(Vec<StoredResource>),
    /// Changes, in their order. `has_positions` says whether a client may continue after one of them.
    Changes {
        changes: Vec<Arc<HandedChange>>,
        has_positions: bool,
    },
    /// The list is complete, and everything up to the position is shown.
    Complete(ChangePosition),
    /// Nothing until the deadline.
    Nothing,
}

/// Why a watch ends before its client wants it to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantNames)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum WatchEnd {
    /// Changes after its position are not stored any more.
    Gone,
    /// The client takes changes more slowly than they happen.
    Behind,
    /// The caller may not watch any more.
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
    pub(super) fn new(service: Service, member: Member, reached: ChangePosition) -> Self {
        Self {
            service,
            member,
            reached,
            stage: Stage::Following,
            behind_since: None,
            was_current: false,
            slice: None,
        }
    }

    /// The same, beginning with the list.
    pub(super) fn with_list(self, has_specs: bool) -> Self {
        let stage = Stage::Listing(InitialList::new(has_specs));
        Self { stage, ..self }
    }

    /// Everything up to this position was returned; `None` while the list is not complete.
    pub fn position(&self) -> Option<ChangePosition> {
        matches!(self.stage, Stage::Following).then_some(self.reached)
    }

    /// What to show next, at the deadline at the latest; a page of the list that is being read then is waited for. If it
    /// is cancelled, the next call returns the same.
    ///
    /// # Errors
    ///
    /// Why the watch ends.
    pub async fn next(&mut self, deadline: Instant) -> Result<WatchStep, WatchEnd> {
        loop {
            let step = match &self.stage {
                Stage::Listing(_) => self.list(deadline).await,
                Stage::Settling { .. } | Stage::Following => self.follow(deadline).await,
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

    /// The next page of the list.
    async fn list(&mut self, deadline: Instant) -> Result<Option<WatchStep>, Stopped> {
        let Stage::Listing(list) = &mut self.stage else {
            return Ok(None);
        };
        let (items, is_last) = list.next(&self.service, &self.member.group).await?;
        if is_last {
            let pages = std::mem::take(&mut list.pages);
            self.stage = Stage::Settling { pages, end: None };
        }
        if items.is_empty() {
            // The next page may take its time, too, and be as empty.
            let is_over = Instant::now() >= deadline;
            return Ok(is_over.then_some(WatchStep::Nothing));
        }
        Ok(Some(WatchStep::Listed(items)))
    }

    /// The next changes.
    async fn follow(&mut self, deadline: Instant) -> Result<Option<WatchStep>, Stopped> {
        // Before the ring is read, so that no event is missed.
        self.member.moved.mark_unchanged();
        let (changes, reached) = match self.member.take(self.reached) {
            Taken::Over => return Err(Stopped::End(WatchEnd::Gone)),
            Taken::Behind(floor) => match timeout_at(deadline, self.catch_up(floor)).await {
                Ok(caught_up) => caught_up?,
                Err(_) => return Ok(Some(WatchStep::Nothing)),
            },
            Taken::Events(changes, reached) => {
                self.was_current = true;
                self.behind_since = None;
                self.slice = None;
                (changes, reached)
            }
        };
        let is_further = reached > self.reached.number;
        self.reached.number = reached.max(self.reached.number);
        let step = self.step(changes);
        if step.is_some() || is_further {
            return Ok(step);
        }
        if Instant::now() >= deadline {
            return Ok(Some(WatchStep::Nothing));
        }
        // Whatever ends the wait, the next call looks.
        let _ = timeout_at(deadline, self.wait()).await;
        Ok(None)
    }

    /// Waits for something to do.
    async fn wait(&mut self) {
        let groups = self.member.groups();
        match &mut self.stage {
            Stage::Settling { end, .. } => {
                let known = match *end {
                    Some(known) => known,
                    // Everything that a page may show was drawn before this poll begins.
                    None => *end.insert(groups.polled_from_now().await.drawn),
                };
                let end = ChangePosition {
                    number: known,
                    ..self.reached
                };
                let mut moved = self.member.moved.clone();
                tokio::select! {
                    () = groups.handed_upto(end) => {}
                    _ = moved.changed() => {}
                }
            }
            Stage::Listing(_) | Stage::Following => {
                let mut moved = self.member.moved.clone();
                let _ = moved.changed().await;
            }
        }
    }

    /// What these changes are to the client, with what they complete.
    fn step(&mut self, mut changes: Vec<Arc<HandedChange>>) -> Option<WatchStep> {
        let Stage::Settling { pages, end } = &self.stage else {
            return changes_step(changes, true);
        };
        changes.retain(|change| !pages.show(change.change()));
        let is_settled = end.is_some_and(|end| self.reached.number >= end);
        if changes.is_empty() && is_settled {
            self.stage = Stage::Following;
            return Some(WatchStep::Complete(self.reached));
        }
        changes_step(changes, false)
    }

    /// Reads changes, or takes what another watcher of the group has read after the same position.
    async fn catch_up(&mut self, floor: i64) -> Result<(Vec<Arc<HandedChange>>, i64), Stopped> {
        if self.was_current {
            let since = *self.behind_since.get_or_insert_with(Instant::now);
            if since.elapsed() > self.service.watch_behind_max {
                return Err(Stopped::End(WatchEnd::Behind));
            }
        }
        let slice = self.member.group.slices.after(self.reached.number);
        // Kept while the watcher shows it: others may come for it.
        self.slice = Some(Arc::clone(&slice));
        let read = slice.get_or_try_init(|| self.read_slice(floor)).await?;
        Ok((read.changes.clone(), read.reached))
    }

    /// Reads at least up to `floor`, which is beyond the watcher's position: so it gets on. The reader of changes has handed
    /// those changes on, also if it has not finished its batch, so no earlier one can appear.
    async fn read_slice(&self, floor: i64) -> Result<Slice, Stopped> {
        metrics::catch_up();
        let (groups, group) = (self.member.groups(), &self.member.group);
        let handed = groups.progress().map_or(floor, |now| now.upto.max(floor));
        let after = self.reached.number;
        let filter = &group.filter;
        let slice = ChangesSlice {
            after,
            upto: handed.min(after.saturating_add(WINDOW)),
            kind: filter.kind(),
            count_max: group.slice_portion.count(),
        };
        let mut session = self.service.store.slow_session().await?;
        let read = session.db().read_changes(slice).await?;
        if read.era != self.reached.era || read.removed > after {
            return Err(Stopped::End(WatchEnd::Gone));
        }
        group
            .slice_portion
            .learn(read.changes.iter().map(change_bytes));
        let changes = read.changes.into_iter().filter_map(|change| {
            let (kind, _) = filter.event(&change, groups.kinds())?;
            let change = change.shown_as([kind].into_iter());
            Some(Arc::new(HandedChange::new(kind, Arc::new(change))))
        });
        Ok(Slice {
            changes: changes.collect(),
            reached: read.reached,
        })
    }
}

fn changes_step(changes: Vec<Arc<HandedChange>>, has_positions: bool) -> Option<WatchStep> {
    for change in &changes {
        metrics::sent(change.kind);
    }
    (!changes.is_empty()).then_some(WatchStep::Changes {
        changes,
        has_positions,
    })
}

/// Why there is no next step.
enum Stopped {
    End(WatchEnd),
    Storage(Error),
}

impl From<crate::storage::postgres::Error> for Stopped {
    fn from(error: crate::storage::postgres::Error) -> Self {
        Self::Storage(error.into())
    }
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Self::Storage(error)
    }
}
