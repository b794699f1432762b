//! Followers of units or states: they receive the current state of whatever was touched, not each change.

mod source;

use std::collections::{BTreeSet, VecDeque};

use tokio::sync::watch;

pub use self::source::Followed;
use super::mirror::{MirrorProgress, Picture, Since, Touch, touches_of};
use super::states::without_empty;
use super::{Error, Fleet, StateView, UnitView};
use crate::keys::{KeyStore, Revision};
use crate::registry::{self, PageToken, StateFilter, Watch, WatchScope};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FollowUpdate<T: Followed> {
    /// The initial list, in parts, by name. It comes first unless the follower resumes.
    Listed {
        /// Set in the last part: the revision to resume after.
        revision: Option<Revision>,
        items: Vec<T>,
    },
    /// The current state of touched items, in parts.
    Changed {
        /// Set in the last part: the revision to resume after.
        revision: Option<Revision>,
        /// Each item at most once, in no order. An item may be repeated without a visible change.
        items: Vec<Item<T>>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item<T: Followed> {
    /// It exists.
    Is(T),
    /// It does not exist.
    Gone(T::Key),
}

/// Size of a part in bytes. The item that reaches it is included: a single unit may be larger. Slow followers
/// keep a part in memory for long.
const PART_BYTES: usize = 64 * 1024;

/// A follower. However slow it is, it costs only its position in the history. If that is older than what the
/// mirror keeps, the history is read from etcd.
pub struct Follower<S: KeyStore, T: Followed> {
    fleet: Fleet<S>,
    progress: watch::Receiver<MirrorProgress>,
    /// How often etcd had been restored before it began.
    restores: u32,
    filter: T::Filter,
    stage: Stage<S>,
    /// Items to deliver before the next stage. `stage` already includes them.
    due: Option<Due<T::Key>>,
}

/// Touched items to deliver.
struct Due<K> {
    keys: VecDeque<K>,
    /// Revision that the follower has reached with the last of them.
    upto: Revision,
}

enum Stage<S: KeyStore> {
    /// Delivering the initial list.
    Initial {
        after: Option<PageToken>,
        began: Option<Revision>,
    },
    /// Resuming from a revision that the mirror no longer knows.
    Catching {
        watch: Box<Watch<S>>,
        /// Result of the watch, up to a revision that the mirror must reach first.
        caught_up: Option<(Revision, Vec<Touch>)>,
    },
    /// Everything up to this revision was delivered.
    At(Revision),
}

impl<S: KeyStore> Fleet<S> {
    /// Follows units: from the initial list, or from what was touched after a revision.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a future revision; [`Error::Stale`] for one that is too old;
    /// [`Error::Unavailable`] while the mirror is not connected.
    pub async fn follow_units(
        &self,
        after: Option<Revision>,
    ) -> Result<Follower<S, UnitView>, Error> {
        self.follow((), after).await
    }

    /// Follows what machines report, as [`follow_units`](Self::follow_units).
    pub async fn follow_states(
        &self,
        filter: StateFilter,
        after: Option<Revision>,
    ) -> Result<Follower<S, StateView>, Error> {
        self.follow(without_empty(&filter), after).await
    }

    async fn follow<T: Followed>(
        &self,
        filter: T::Filter,
        after: Option<Revision>,
    ) -> Result<Follower<S, T>, Error> {
        if !self.is_connected() {
            return Err(Error::Unavailable(None));
        }
        let progress = self.mirror.subscribe();
        let restores = progress.borrow().restores;
        let stage = match after {
            Some(after) => self.stage_at(after).await?,
            None => Stage::Initial {
                after: None,
                began: None,
            },
        };
        Ok(Follower {
            fleet: self.clone(),
            progress,
            restores,
            filter,
            stage,
            due: None,
        })
    }

    async fn stage_at(&self, after: Revision) -> Result<Stage<S>, Error> {
        let (is_known, newest) = self
            .mirror
            .read(|picture| (picture.remembers(after), picture.snapshot.revision));
        if is_known && after <= newest {
            return Ok(Stage::At(after));
        }
        match self.registry.check_history(after).await {
            Ok(()) => {}
            Err(registry::Error::Token) => {
                let what = format!("revision {after} has not come yet");
                return Err(Error::Invalid(what));
            }
            Err(error) => return Err(error.into()),
        }
        if is_known {
            // The mirror has not reached this revision.
            return Ok(Stage::At(after));
        }
        let watch = self.registry.watch(&WatchScope::Everything, after)?;
        Ok(Stage::Catching {
            watch: Box::new(watch),
            caught_up: None,
        })
    }
}

impl<S: KeyStore, T: Followed> Follower<S, T> {
    /// Waits for the next update. Cancel-safe.
    ///
    /// # Guarantees
    /// A client that has applied all updates up to a revision has the state of that revision or a later one.
    ///
    /// # Errors
    /// [`Error::Stale`] if too much has happened since the last call, or if etcd was restored;
    /// [`Error::Unavailable`] if the history had to be read from etcd and could not be. Follow again then.
    pub async fn next(&mut self) -> Result<FollowUpdate<T>, Error> {
        loop {
            if self.progress.borrow().restores != self.restores {
                return Err(Error::Stale);
            }
            if let Some(update) = self.next_due() {
                return Ok(update);
            }
            match &mut self.stage {
                Stage::Initial { .. } => return self.list(),
                Stage::Catching { .. } => self.catch_up().await?,
                Stage::At(at) => {
                    let at = *at;
                    // Before the check, so that later news wakes it.
                    self.progress.mark_unchanged();
                    match self.touched_after(at) {
                        Some((upto, keys)) if upto > at => {
                            self.stage = Stage::At(upto);
                            self.due = due(keys, upto);
                        }
                        Some(_) => self.progress.changed().await.map_err(|_| never())?,
                        None => self.stage = self.fleet.stage_at(at).await?,
                    }
                }
            }
        }
    }

    /// The next part of the due items; `None` if there are none.
    fn next_due(&mut self) -> Option<FollowUpdate<T>> {
        let Due { keys, upto } = self.due.as_mut()?;
        let (items, upto) = self.fleet.mirror.read(|picture| {
            let mut items = Vec::new();
            let mut bytes = 0;
            while bytes < PART_BYTES
                && let Some(key) = keys.pop_front()
            {
                let thing = T::find(picture, &key);
                bytes += thing.as_ref().map_or(size_of::<T>(), T::bytes);
                items.push(thing.map_or(Item::Gone(key), Item::Is));
            }
            (items, keys.is_empty().then_some(*upto))
        });
        if upto.is_some() {
            self.due = None;
        }
        Some(FollowUpdate::Changed {
            revision: upto,
            items,
        })
    }

    fn list(&mut self) -> Result<FollowUpdate<T>, Error> {
        let Stage::Initial { after, began } = &mut self.stage else {
            return Err(Error::Stale);
        };
        let (part, now) = self.fleet.mirror.read(|picture| {
            let part = part::<T>(picture, &self.filter, after.take());
            (part, picture.snapshot.revision)
        });
        let (items, next) = part?;
        // Changes during the list are delivered after it.
        let began = *began.get_or_insert(now);
        let is_last = next.is_none();
        *after = next;
        if is_last {
            self.stage = Stage::At(began);
        }
        Ok(FollowUpdate::Listed {
            revision: is_last.then_some(began),
            items,
        })
    }

    /// What was touched after a revision, and up to which; `None` if the mirror does not know.
    fn touched_after(&self, after: Revision) -> Option<(Revision, BTreeSet<T::Key>)> {
        self.fleet
            .mirror
            .read(|picture| match picture.since(after) {
                Since::Forgotten => None,
                Since::Touched(upto, touches) => Some((upto, keys::<T>(&self.filter, touches))),
            })
    }

    /// Reads the next part of the history.
    async fn catch_up(&mut self) -> Result<(), Error> {
        let Stage::Catching { watch, caught_up } = &mut self.stage else {
            return Ok(());
        };
        if caught_up.is_none() {
            *caught_up = match watch.next().await? {
                registry::WatchUpdate::Changes { revision, changes } => {
                    let touches = changes.iter().flat_map(touches_of);
                    Some((revision, touches.collect()))
                }
                registry::WatchUpdate::Relisted { .. } => return Err(Error::Stale),
            };
        }
        let Some(revision) = caught_up.as_ref().map(|(revision, _)| *revision) else {
            return Ok(());
        };
        let restores = self.restores;
        let is_there = |progress: &MirrorProgress| {
            progress.revision >= revision || progress.restores != restores
        };
        let come = self.progress.wait_for(is_there).await;
        come.map_err(|_| never())?;
        let touches = caught_up
            .take()
            .map(|(_, touches)| touches)
            .unwrap_or_default();
        self.due = due(keys::<T>(&self.filter, &touches), revision);
        if self
            .fleet
            .mirror
            .read(|picture| picture.remembers(revision))
        {
            self.stage = Stage::At(revision);
        }
        Ok(())
    }
}

/// The mirror outlives its followers.
fn never() -> Error {
    Error::Unavailable(None)
}

/// A part of the list by name, and where the rest begins.
fn part<T: Followed>(
    picture: &Picture,
    filter: &T::Filter,
    mut after: Option<PageToken>,
) -> Result<(Vec<T>, Option<PageToken>), Error> {
    let mut items = Vec::new();
    let mut bytes = 0;
    loop {
        // One by one, because the size of the next item is unknown.
        let page = T::list(picture, filter, after.as_ref(), 1)?;
        bytes += page.items.iter().map(T::bytes).sum::<usize>();
        items.extend(page.items);
        after = page.next;
        if after.is_none() || bytes >= PART_BYTES {
            return Ok((items, after));
        }
    }
}

/// Touched items that the filter selects, each once.
fn keys<'a, T: Followed>(
    filter: &T::Filter,
    touches: impl IntoIterator<Item = &'a Touch>,
) -> BTreeSet<T::Key> {
    let touches = touches.into_iter();
    touches.filter_map(|touch| T::key(touch, filter)).collect()
}

fn due<K>(keys: BTreeSet<K>, upto: Revision) -> Option<Due<K>> {
    let keys: VecDeque<K> = keys.into_iter().collect();
    (!keys.is_empty()).then_some(Due { keys, upto })
}
