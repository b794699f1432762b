//! The watches of one instance, in groups of equal ones: a change is judged and written once for each group that it may
//! concern, and costs nothing for the others.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

use super::handed::HandedChange;
use super::metrics;
use super::portion::Portion;
use super::slices::Slices;
use crate::domain::change::ChangePosition;
use crate::domain::page::PageRequest;
use crate::domain::watch::{PolledEnd, ResourceImage, WatchFilter, WatchedChange};
use crate::domain::{EntityRegistry, ResourceId, Tenancy};

/// Events that a group keeps for watchers that are not as fast as the reader of changes. Slower ones read themselves.
const EVENTS_MAX: usize = 512;
/// The same in bytes, roughly.
const BYTES_MAX: usize = 256 * 1024;
/// Events that a watcher takes at a time.
const TAKEN_MAX: usize = 64;
/// Changes that a watcher who is behind reads at a time.
const READ_MAX: usize = 64;

/// How far this instance has read the changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Progress {
    pub(super) era: i64,
    /// Every change up to here was handed to the groups.
    pub(super) upto: i64,
    /// The highest position that was drawn, at the last poll.
    pub(super) drawn: i64,
    /// Up to which position changes are not stored any more.
    pub(super) removed: i64,
}

/// Every group, and how far changes were read.
pub(super) struct Groups {
    kinds: Arc<EntityRegistry>,
    progress: watch::Sender<Option<Progress>>,
    /// Number of polls.
    polls: AtomicU64,
    by_scope: Mutex<HashMap<Scope, Vec<Arc<Group>>>>,
    /// Asks for a poll.
    wake: Notify,
}

/// What a change must have in common with a watch; unset for anything.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Scope {
    kind: Option<String>,
    owner: Option<ResourceId>,
    tenancy: Option<Tenancy>,
}

/// Equal watches.
pub(super) struct Group {
    pub(super) filter: WatchFilter,
    form: String,
    scope: Scope,
    ring: Mutex<Ring>,
    /// What its watchers read who are behind.
    pub(super) slices: Slices,
    /// Size of the next slice.
    pub(super) slice_portion: Portion,
    /// Size of the next page of a list.
    pub(super) page_portion: Portion,
    /// Changes with the ring.
    moved: watch::Sender<()>,
}

/// The latest events of a group.
#[derive(Debug, Default)]
struct Ring {
    /// Events up to this position are not in it.
    floor: i64,
    events: VecDeque<Arc<HandedChange>>,
    bytes: usize,
    /// The database was set back.
    is_over: bool,
}

/// One watcher's part in its group, which ends with its last member.
pub(super) struct Member {
    groups: Arc<Groups>,
    pub(super) group: Arc<Group>,
    pub(super) moved: watch::Receiver<()>,
}

/// What a watcher finds in its group.
#[derive(Debug)]
pub(super) enum Taken {
    /// Events, in their order, and the position that the watcher has reached with them.
    Events(Vec<Arc<HandedChange>>, i64),
    /// Not every event after its position is here any more. Those up to this later position were here.
    Behind(i64),
    Over,
}

impl Progress {
    pub(super) fn position(self) -> ChangePosition {
        ChangePosition {
            era: self.era,
            number: self.upto,
        }
    }

    /// Whether another instance, which has handed the position out, may have read further than this one: later changes,
    /// or a later era.
    pub(super) fn may_lag_behind(self, position: ChangePosition) -> bool {
        let drawn = ChangePosition {
            era: self.era,
            number: self.drawn,
        };
        position > drawn
    }

    /// Whether a watch may begin after a position.
    pub(super) fn reaches(self, position: ChangePosition) -> bool {
        position.era == self.era && (self.removed..=self.drawn).contains(&position.number)
    }
}

impl Groups {
    pub(super) fn new(kinds: Arc<EntityRegistry>) -> Self {
        Self {
            kinds,
            progress: watch::Sender::default(),
            polls: AtomicU64::new(0),
            by_scope: Mutex::default(),
            wake: Notify::new(),
        }
    }

    /// How far changes were read; `None` before that is known.
    pub(super) fn progress(&self) -> Option<Progress> {
        *self.progress.borrow()
    }

    pub(super) fn kinds(&self) -> &EntityRegistry {
        &self.kinds
    }

    /// Waits for a poll that begins after this call, and asks for it.
    pub(super) async fn polled_from_now(&self) -> Progress {
        let mut progress = self.progress.subscribe();
        // The next poll may have begun already.
        let needed = self.polls.load(Ordering::SeqCst) + 2;
        loop {
            let now = *progress.borrow_and_update();
            if let Some(now) = now
                && self.polls.load(Ordering::SeqCst) >= needed
            {
                return now;
            }
            self.wake.notify_one();
            // This value owns the sender, so it cannot close.
            let _ = progress.changed().await;
        }
    }

    /// Waits until changes were handed on up to a position of the era; ends early if the era does.
    pub(super) async fn handed_upto(&self, position: ChangePosition) {
        let mut progress = self.progress.subscribe();
        let is_there = |now: &Option<Progress>| {
            now.is_none_or(|now| now.era != position.era || now.upto >= position.number)
        };
        let _ = progress.wait_for(is_there).await;
    }

    /// Waits until a poll is asked for.
    pub(super) async fn woken(&self) {
        self.wake.notified().await;
    }

    /// Joins the group of a watch, or begins it.
    pub(super) fn join(groups: &Arc<Self>, filter: WatchFilter, form: String) -> Member {
        let scope = Scope {
            kind: filter.kind().map(ToOwned::to_owned),
            owner: filter.owner,
            tenancy: filter.tenants.tenancy().cloned(),
        };
        let mut by_scope = groups.by_scope();
        let equal = by_scope.entry(scope.clone()).or_default();
        let found = equal.iter().find(|g| g.filter == filter && g.form == form);
        let group = found.cloned().unwrap_or_else(|| {
            let floor = groups.progress().map_or(0, |now| now.upto);
            let group = Arc::new(Group {
                filter,
                form,
                scope,
                ring: Mutex::new(Ring {
                    floor,
                    ..Ring::default()
                }),
                slices: Slices::default(),
                slice_portion: Portion::up_to(READ_MAX),
                page_portion: Portion::up_to(PageRequest::SIZE_MAX.try_into().unwrap_or(1)),
                moved: watch::Sender::default(),
            });
            equal.push(Arc::clone(&group));
            group
        });
        drop(by_scope);
        metrics::joined();
        groups.wake.notify_one();
        Member {
            groups: Arc::clone(groups),
            moved: group.moved.subscribe(),
            group,
        }
    }

    pub(super) fn is_watched(&self) -> bool {
        !self.by_scope().is_empty()
    }

    /// Records a poll. Without watchers the instance has handed on everything up to `upto`, because nothing is to be done;
    /// returns from where on changes must be read, if there are any.
    pub(super) fn polled(&self, end: &PolledEnd, upto: i64) -> Option<i64> {
        let by_scope = self.by_scope();
        let before = self.progress();
        let handed = before.map_or(upto, |before| before.upto);
        let next = if by_scope.is_empty() {
            handed.max(upto)
        } else {
            handed
        };
        self.progress.send_replace(Some(Progress {
            era: end.era,
            upto: next,
            drawn: end.drawn,
            removed: end.removed,
        }));
        // Last: a watch that counts polls must not see the progress of the one before.
        self.polls.fetch_add(1, Ordering::SeqCst);
        (next < upto).then_some(next)
    }

    /// Hands changes to the groups that they concern: all of those up to `upto`.
    pub(super) fn hand_on(&self, changes: Vec<WatchedChange>, upto: i64) {
        let by_scope = self.by_scope();
        for change in changes {
            let mut concerned = Vec::new();
            for scope in scopes(&change) {
                let groups = by_scope.get(&scope).into_iter().flatten();
                concerned.extend(groups.filter_map(|group| {
                    let (kind, _) = group.filter.event(&change, &self.kinds)?;
                    Some((group, kind))
                }));
            }
            if concerned.is_empty() {
                continue;
            }
            // Groups keep events for a while: only what is shown.
            let kinds = concerned.iter().map(|(_, kind)| *kind);
            let change = Arc::new(change.shown_as(kinds));
            for (group, kind) in concerned {
                group.push(HandedChange::new(kind, Arc::clone(&change)));
            }
        }
        self.progress.send_modify(|progress| {
            if let Some(progress) = progress {
                progress.upto = progress.upto.max(upto);
            }
        });
    }

    /// The database was set back: every watch ends.
    pub(super) fn reset(&self) {
        let mut by_scope = self.by_scope();
        for group in by_scope.drain().flat_map(|(_, groups)| groups) {
            group.ring().is_over = true;
            group.moved.send_replace(());
        }
        self.progress.send_replace(None);
    }

    fn by_scope(&self) -> MutexGuard<'_, HashMap<Scope, Vec<Arc<Group>>>> {
        self.by_scope.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The scopes of all watches that a change may concern.
fn scopes(change: &WatchedChange) -> Vec<Scope> {
    let images = || [&change.before, &change.after].into_iter().flatten();
    let stored = || images().map(|image: &ResourceImage| &image.stored);
    let kinds: BTreeSet<_> = stored().map(|r| Some(&r.kind)).chain([None]).collect();
    let owners: BTreeSet<_> = stored().map(|r| r.owner).chain([None]).collect();
    let tenancies = stored().map(|r| Some(&r.tenancy));
    let tenancies: BTreeSet<_> = tenancies.chain([None]).collect();
    let mut scopes = Vec::with_capacity(8);
    for kind in &kinds {
        for owner in &owners {
            for tenancy in &tenancies {
                scopes.push(Scope {
                    kind: kind.cloned(),
                    owner: *owner,
                    tenancy: tenancy.cloned(),
                });
            }
        }
    }
    scopes
}

impl Group {
    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, event: HandedChange) {
        let mut ring = self.ring();
        ring.bytes += event.bytes();
        ring.events.push_back(Arc::new(event));
        while ring.events.len() > EVENTS_MAX || (ring.bytes > BYTES_MAX && ring.events.len() > 1) {
            if let Some(oldest) = ring.events.pop_front() {
                ring.bytes -= oldest.bytes();
                ring.floor = oldest.position().number;
            }
        }
        drop(ring);
        self.moved.send_replace(());
    }
}

impl Member {
    /// The next events after a position.
    pub(super) fn take(&self, after: ChangePosition) -> Taken {
        // Read first: everything up to it is in the ring by now.
        let handed = self.groups.progress();
        let ring = self.group.ring();
        if ring.is_over || handed.is_some_and(|handed| handed.era != after.era) {
            return Taken::Over;
        }
        let (after, handed) = (after.number, handed.map_or(0, |handed| handed.upto));
        if after < ring.floor {
            return Taken::Behind(ring.floor);
        }
        let place = ring
            .events
            .partition_point(|e| e.position().number <= after);
        let mut events: Vec<_> = ring
            .events
            .range(place..)
            .take(TAKEN_MAX)
            .cloned()
            .collect();
        events.shrink_to_fit();
        let is_all = place + events.len() == ring.events.len();
        let last = events.last().map_or(after, |last| last.position().number);
        Taken::Events(events, if is_all { last.max(handed) } else { last })
    }

    pub(super) fn groups(&self) -> &Groups {
        &self.groups
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let mut by_scope = self.groups.by_scope();
        // The map and this member. Others join under the lock.
        if Arc::strong_count(&self.group) == 2
            && let Some(equal) = by_scope.get_mut(&self.group.scope)
        {
            equal.retain(|group| !Arc::ptr_eq(group, &self.group));
            if equal.is_empty() {
                by_scope.remove(&self.group.scope);
            }
        }
        drop(by_scope);
        metrics::left();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_may_lag_behind_positions_of_later_changes_and_later_eras() {
        let known = Progress {
            era: 5,
            upto: 7,
            drawn: 9,
            removed: 0,
        };
        for (era, number, expected) in [
            (5, 7, false),
            (5, 9, false),
            (5, 10, true),
            (6, 1, true),
            (4, 10, false),
        ] {
            let position = ChangePosition { era, number };
            assert_eq!(known.may_lag_behind(position), expected, "{position}");
        }
    }
}
