//! What happens, as it happens.

use super::change::Change;
use super::key::{Family, check_part};
use super::reading::Reading;
use super::{Error, Registry};
use crate::keys::{self, KeyStore, KeyWatch as _, Position, Range, Revision};

/// What to watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// All of it: for engines and caches.
    Everything,
    /// What one machine's agent has to do.
    Runs {
        /// Whose.
        machine: String,
    },
    /// What all agents have to do.
    Globals,
    /// Metadata of one machine that was set while it runs.
    Labels {
        /// Whose.
        machine: String,
    },
    /// Who decides, and the newest engine that ever did: for engines that stand by.
    Leader,
    /// What puts things in order, among it the word to go on after the registry went back.
    Order,
}

/// What a watch tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// What has changed since it told before, oldest first. None: nothing has, up to that revision.
    Changes {
        /// Everything up to here has been told.
        revision: Revision,
        /// In order.
        changes: Vec<Change>,
    },
    /// What is there now, because the history in between was compacted, is too large, or is that of a store that was
    /// restored. What is not among it is gone.
    Relisted {
        /// When it was so.
        revision: Revision,
        /// By key.
        found: Vec<Change>,
    },
}

/// A watch of the registry.
#[derive(Debug)]
pub struct Watch<S: KeyStore> {
    registry: Registry<S>,
    range: Range,
    keys: S::Watch,
    /// What has been listed so far, where the history cannot be told.
    listed: Option<Listed>,
}

/// A list that is under way. Given up half-way it goes on where it was: whoever gives a watch a second at a time would
/// never see the end of a long one otherwise.
#[derive(Debug)]
struct Listed {
    reading: Reading,
    found: Vec<Change>,
}

impl<S: KeyStore> Registry<S> {
    /// What is there now, within a scope, and how far that has been read.
    ///
    /// # Errors
    /// [`Error::Unusable`] for a machine id that is no key.
    pub async fn list(&self, scope: &Scope) -> Result<(Vec<Change>, Position), Error> {
        // Chunk by chunk: all of a large registry at once would hold up whoever shares the thread.
        let mut found = Vec::new();
        let take = |entry| found.push(Change::of_entry(&self.prefix, &entry));
        let position = self.read_each(self.range(scope)?, None, take).await?;
        Ok((found, position))
    }

    /// Watches what happens after a list, a snapshot, or any revision. With the position of a list it is noticed if the store
    /// was restored before anything was told.
    ///
    /// # Errors
    /// [`Error::Unusable`] for a machine id that is no key.
    pub fn watch(&self, scope: &Scope, after: impl Into<Position>) -> Result<Watch<S>, Error> {
        let range = self.range(scope)?;
        Ok(Watch {
            keys: self.store.watch(range.clone(), after.into()),
            registry: self.clone(),
            range,
            listed: None,
        })
    }

    fn range(&self, scope: &Scope) -> Result<Range, Error> {
        Ok(match scope {
            Scope::Everything => self.prefix.everything(),
            Scope::Globals => self.prefix.family(Family::Global),
            Scope::Leader => self.prefix.family(Family::Engine),
            Scope::Order => self.prefix.family(Family::Order),
            Scope::Runs { machine } => {
                check_part("machine id", machine)?;
                self.prefix.part(Family::Run, machine)
            }
            Scope::Labels { machine } => {
                check_part("machine id", machine)?;
                self.prefix.part(Family::Label, machine)
            }
        })
    }
}

impl<S: KeyStore> Watch<S> {
    /// Waits for what happens next. May be given up half-way, nothing is lost.
    ///
    /// # Errors
    /// Those of the store. The watch goes on where it was when it is asked again; how soon that is, is for the
    /// caller to say.
    pub async fn next(&mut self) -> Result<Told, Error> {
        loop {
            if self.listed.is_some() {
                match self.list_on().await {
                    Ok(Some(told)) => return Ok(told),
                    Ok(None) => {}
                    // Compacted once more while it was read, or restored from before its beginning. What is watched is
                    // out of date as well.
                    Err(keys::Error::Compacted | keys::Error::Future) => self.list_anew(),
                    Err(error) => return Err(error.into()),
                }
                continue;
            }
            match self.keys.next().await {
                Ok(batch) => {
                    let prefix = &self.registry.prefix;
                    let events = batch.events.iter();
                    return Ok(Told::Changes {
                        revision: batch.revision,
                        changes: events
                            .map(|event| Change::of_event(prefix, event))
                            .collect(),
                    });
                }
                // A watch that has fallen far behind is caught up with by few messages of any size. The store may have
                // been restored, and be behind the watch.
                Err(
                    keys::Error::Compacted | keys::Error::TooLarge { .. } | keys::Error::Future,
                ) => {
                    self.list_anew();
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn list_anew(&mut self) {
        self.listed = Some(Listed {
            reading: Reading::new(self.range.clone(), None),
            found: Vec::new(),
        });
    }

    /// The next part of the list; all of it once that was the last.
    async fn list_on(&mut self) -> Result<Option<Told>, keys::Error> {
        let Some(listed) = &mut self.listed else {
            return Ok(None);
        };
        let (entries, ended) = listed.reading.next(&self.registry).await?;
        let prefix = &self.registry.prefix;
        let found = entries.iter();
        let found = found.map(|entry| Change::of_entry(prefix, entry));
        listed.found.extend(found);
        let Some(position) = ended else {
            return Ok(None);
        };
        let (found, revision) = (std::mem::take(&mut listed.found), position.revision);
        self.keys = self.registry.store.watch(self.range.clone(), position);
        self.listed = None;
        Ok(Some(Told::Relisted { revision, found }))
    }
}
