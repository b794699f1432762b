//! Following what happens: not each change, but what the things that were touched are now.

mod source;

use std::collections::{BTreeSet, VecDeque};

use tokio::sync::watch;

pub use self::source::Followed;
use super::mirror::{News, Picture, Since, Touch, touches_of};
use super::states::given;
use super::{Error, Fleet, StateView, UnitView};
use crate::keys::{KeyStore, Revision};
use crate::registry::{self, PageToken, Scope, StateFilter, Watch};

/// What a follower is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told<T: Followed> {
    /// What there is, in parts, by name. This comes first if it was not said what to go on from.
    Listed {
        /// Set in the last part: it is from here that one may go on.
        revision: Option<Revision>,
        /// Some of it.
        items: Vec<T>,
    },
    /// What some things are now that were touched, in parts.
    Changed {
        /// Set in the last part: it is from here that one may go on.
        revision: Option<Revision>,
        /// Each at most once, in no order. A thing may be told again though nothing can be seen to have changed.
        items: Vec<Item<T>>,
    },
}

/// What something is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item<T: Followed> {
    /// It is so.
    Is(T),
    /// It is not there, or no longer.
    Gone(T::Key),
}

/// How much is told at a time, in bytes, and the thing with which it is reached: one unit may be as large alone.
/// Followers that are slow keep it for long.
const PART_BYTES: usize = 64 * 1024;

/// A follower. It costs its place in the history, however slow it is; where that is older than what is kept in memory,
/// etcd is asked for the history.
pub struct Follow<S: KeyStore, T: Followed> {
    fleet: Fleet<S>,
    news: watch::Receiver<News>,
    /// How often etcd was restored before it began.
    restores: u32,
    filter: T::Filter,
    stage: Stage<S>,
    /// What is to be told before anything else: of the stage it is told already.
    due: Option<Due<T::Key>>,
}

/// Things that were touched, and are to be told.
struct Due<K> {
    keys: VecDeque<K>,
    /// The revision up to which everything has been told with the last of them.
    upto: Revision,
}

/// How far a follower is.
enum Stage<S: KeyStore> {
    /// It has been told some of what there is.
    Listing {
        after: Option<PageToken>,
        began: Option<Revision>,
    },
    /// It goes on from a revision that the mirror does not remember.
    Catching {
        watch: Box<Watch<S>>,
        /// What the watch has told, up to a revision to which the mirror has to come first.
        told: Option<(Revision, Vec<Touch>)>,
    },
    /// It has been told everything up to a revision.
    At(Revision),
}

impl<S: KeyStore> Fleet<S> {
    /// Follows units: everything first, or what was touched after a revision.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a revision that has not come yet; [`Error::Stale`] for one that is too long ago;
    /// [`Error::Unavailable`] while the mirror is not connected.
    pub async fn follow_units(
        &self,
        after: Option<Revision>,
    ) -> Result<Follow<S, UnitView>, Error> {
        self.follow((), after).await
    }

    /// Follows what machines report, as [`follow_units`](Self::follow_units).
    ///
    /// # Errors
    /// The same.
    pub async fn follow_states(
        &self,
        filter: StateFilter,
        after: Option<Revision>,
    ) -> Result<Follow<S, StateView>, Error> {
        self.follow(given(&filter), after).await
    }

    async fn follow<T: Followed>(
        &self,
        filter: T::Filter,
        after: Option<Revision>,
    ) -> Result<Follow<S, T>, Error> {
        if !self.is_connected() {
            return Err(Error::Unavailable(None));
        }
        let news = self.mirror.subscribe();
        let restores = news.borrow().restores;
        let stage = match after {
            Some(after) => self.stage_at(after).await?,
            None => Stage::Listing {
                after: None,
                began: None,
            },
        };
        Ok(Follow {
            fleet: self.clone(),
            news,
            restores,
            filter,
            stage,
            due: None,
        })
    }

    async fn stage_at(&self, after: Revision) -> Result<Stage<S>, Error> {
        let (is_known, newest) = self
            .mirror
            .read(|picture| (picture.remembers(after), picture.known.revision));
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
            // The mirror has not come so far yet.
            return Ok(Stage::At(after));
        }
        let watch = self.registry.watch(&Scope::Everything, after)?;
        Ok(Stage::Catching {
            watch: Box::new(watch),
            told: None,
        })
    }
}

impl<S: KeyStore, T: Followed> Follow<S, T> {
    /// Waits for what is to be told next. May be given up half-way, nothing is lost.
    ///
    /// # Guarantees
    /// Whoever has been told everything up to a revision, and takes each thing for what it was last told to be, has
    /// what there was at that revision, or later.
    ///
    /// # Errors
    /// [`Error::Stale`] if too much has happened since it was asked last, or if etcd was restored; [`Error::Unavailable`] if
    /// etcd had to be asked for the history and cannot be. Follow anew then.
    pub async fn next(&mut self) -> Result<Told<T>, Error> {
        loop {
            if self.news.borrow().restores != self.restores {
                return Err(Error::Stale);
            }
            if let Some(told) = self.tell_due() {
                return Ok(told);
            }
            match &mut self.stage {
                Stage::Listing { .. } => return self.list(),
                Stage::Catching { .. } => self.catch_up().await?,
                Stage::At(at) => {
                    let at = *at;
                    // Before the look: what comes behind it wakes us.
                    self.news.mark_unchanged();
                    match self.look(at) {
                        Some((upto, keys)) if upto > at => {
                            self.stage = Stage::At(upto);
                            self.due = due(keys, upto);
                        }
                        Some(_) => self.news.changed().await.map_err(|_| never())?,
                        None => self.stage = self.fleet.stage_at(at).await?,
                    }
                }
            }
        }
    }

    /// What some of those are now that are to be told, if there are any.
    fn tell_due(&mut self) -> Option<Told<T>> {
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
        Some(Told::Changed {
            revision: upto,
            items,
        })
    }

    fn list(&mut self) -> Result<Told<T>, Error> {
        let Stage::Listing { after, began } = &mut self.stage else {
            return Err(Error::Stale);
        };
        let (part, now) = self.fleet.mirror.read(|picture| {
            let part = part::<T>(picture, &self.filter, after.take());
            (part, picture.known.revision)
        });
        let (items, next) = part?;
        // What changes while it lists is told behind it.
        let began = *began.get_or_insert(now);
        let is_last = next.is_none();
        *after = next;
        if is_last {
            self.stage = Stage::At(began);
        }
        Ok(Told::Listed {
            revision: is_last.then_some(began),
            items,
        })
    }

    /// What was touched after a revision, and up to which; none if the mirror does not remember.
    fn look(&self, after: Revision) -> Option<(Revision, BTreeSet<T::Key>)> {
        self.fleet
            .mirror
            .read(|picture| match picture.since(after) {
                Since::Forgotten => None,
                Since::Touched(upto, touches) => Some((upto, keys::<T>(&self.filter, touches))),
            })
    }

    /// Takes over what the history tells next.
    async fn catch_up(&mut self) -> Result<(), Error> {
        let Stage::Catching { watch, told } = &mut self.stage else {
            return Ok(());
        };
        if told.is_none() {
            *told = match watch.next().await? {
                registry::Told::Changes { revision, changes } => {
                    let touches = changes.iter().flat_map(touches_of);
                    Some((revision, touches.collect()))
                }
                registry::Told::Relisted { .. } => return Err(Error::Stale),
            };
        }
        let Some(revision) = told.as_ref().map(|(revision, _)| *revision) else {
            return Ok(());
        };
        let restores = self.restores;
        let is_there = |news: &News| news.revision >= revision || news.restores != restores;
        let come = self.news.wait_for(is_there).await;
        come.map_err(|_| never())?;
        let touches = told.take().map(|(_, touches)| touches).unwrap_or_default();
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

/// The mirror is there as long as somebody follows it.
fn never() -> Error {
    Error::Unavailable(None)
}

/// Some of what there is, by name, and where the rest of it begins.
fn part<T: Followed>(
    picture: &Picture,
    filter: &T::Filter,
    mut after: Option<PageToken>,
) -> Result<(Vec<T>, Option<PageToken>), Error> {
    let mut items = Vec::new();
    let mut bytes = 0;
    loop {
        // One by one, for nobody knows how large the next is.
        let page = T::list(picture, filter, after.as_ref(), 1)?;
        bytes += page.items.iter().map(T::bytes).sum::<usize>();
        items.extend(page.items);
        after = page.next;
        if after.is_none() || bytes >= PART_BYTES {
            return Ok((items, after));
        }
    }
}

/// Those that were touched and are asked for, each once.
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
