//! Following what happens: not each change, but what the things that were touched are now.

mod source;

use std::collections::BTreeSet;

use tokio::sync::watch;

use super::mirror::{News, Picture, Since, Touch, touches_of};
use super::states::given;
use super::view::{StateView, UnitView};
use super::{Error, Fleet};
use crate::storage::keys::{KeyStore, Revision};
use crate::storage::registry::{self, LISTED_MAX, PageToken, Scope, StateFilter, Watch};

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
    /// What some things are now that were touched.
    Changed {
        /// It is from here that one may go on.
        revision: Revision,
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

/// What can be followed: [`UnitView`] and [`StateView`].
pub trait Followed: source::Source {}

impl Followed for UnitView {}
impl Followed for StateView {}

/// A follower. It costs its place in the history, however slow it is; where that is older than what is kept in memory,
/// etcd is asked for the history.
pub struct Follow<S: KeyStore, T: Followed> {
    fleet: Fleet<S>,
    news: watch::Receiver<News>,
    filter: T::Filter,
    stage: Stage<S>,
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
            filter,
            stage,
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
    /// [`Error::Stale`] if too much has happened since it was asked last; [`Error::Unavailable`] if etcd had to be
    /// asked for the history and cannot be. Follow anew then.
    pub async fn next(&mut self) -> Result<Told<T>, Error> {
        loop {
            match &mut self.stage {
                Stage::Listing { .. } => return self.list(),
                Stage::Catching { .. } => {
                    if let Some(told) = self.catch_up().await? {
                        return Ok(told);
                    }
                }
                Stage::At(at) => {
                    let at = *at;
                    // Before the look: what comes behind it wakes us.
                    self.news.mark_unchanged();
                    match self.look(at) {
                        Some((upto, items)) if !items.is_empty() => {
                            self.stage = Stage::At(upto);
                            let revision = upto;
                            return Ok(Told::Changed { revision, items });
                        }
                        Some((upto, _)) if upto > at => self.stage = Stage::At(upto),
                        Some(_) => self.news.changed().await.map_err(|_| never())?,
                        None => self.stage = self.fleet.stage_at(at).await?,
                    }
                }
            }
        }
    }

    fn list(&mut self) -> Result<Told<T>, Error> {
        let Stage::Listing { after, began } = &mut self.stage else {
            return Err(Error::Stale);
        };
        let (page, now) = self.fleet.mirror.read(|picture| {
            let page = T::list(picture, &self.filter, after.as_ref(), LISTED_MAX);
            (page, picture.known.revision)
        });
        let page = page?;
        // What changes while it lists is told behind it.
        let began = *began.get_or_insert(now);
        let is_last = page.next.is_none();
        *after = page.next;
        if is_last {
            self.stage = Stage::At(began);
        }
        Ok(Told::Listed {
            revision: is_last.then_some(began),
            items: page.items,
        })
    }

    /// What was touched after a revision, and up to which; none if the mirror does not remember.
    fn look(&self, after: Revision) -> Option<(Revision, Vec<Item<T>>)> {
        self.fleet
            .mirror
            .read(|picture| match picture.since(after) {
                Since::Forgotten => None,
                Since::Touched(upto, touches) => {
                    Some((upto, items(picture, &self.filter, touches)))
                }
            })
    }

    /// What the history tells next, if it is asked for.
    async fn catch_up(&mut self) -> Result<Option<Told<T>>, Error> {
        let Stage::Catching { watch, told } = &mut self.stage else {
            return Ok(None);
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
            return Ok(None);
        };
        let come = self.news.wait_for(|news| news.revision >= revision).await;
        come.map_err(|_| never())?;
        let touches = told.take().map(|(_, touches)| touches).unwrap_or_default();
        let (items, is_remembered) = self.fleet.mirror.read(|picture| {
            let items = items(picture, &self.filter, &touches);
            (items, picture.remembers(revision))
        });
        if is_remembered {
            self.stage = Stage::At(revision);
        }
        Ok((!items.is_empty()).then_some(Told::Changed { revision, items }))
    }
}

/// The mirror is there as long as somebody follows it.
fn never() -> Error {
    Error::Unavailable(None)
}

/// What those that were touched are now, each once.
fn items<'a, T: Followed>(
    picture: &Picture,
    filter: &T::Filter,
    touches: impl IntoIterator<Item = &'a Touch>,
) -> Vec<Item<T>> {
    let touches = touches.into_iter();
    let keys: BTreeSet<T::Key> = touches.filter_map(|touch| T::key(touch, filter)).collect();
    let item = |key: T::Key| match T::find(picture, &key) {
        Some(thing) => Item::Is(thing),
        None => Item::Gone(key),
    };
    keys.into_iter().map(item).collect()
}
