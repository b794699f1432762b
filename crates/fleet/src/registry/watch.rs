//! Watches of the registry.

use super::key::check_part;
use super::reading::Reading;
use super::table::{Family, KeyChange};
use super::{Error, Registry};
use crate::keys::{self, KeyStore, KeyWatch as _, Range, ReadPosition, Revision};

/// The keys to watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchScope {
    /// All keys: for engines and caches.
    Everything,
    /// Orders to one machine's agent.
    Runs { machine: String },
    /// Orders to all agents.
    Globals,
    /// Metadata that users set for one machine.
    Labels { machine: String },
    /// The keys below `order/`, including the order to resume.
    Order,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchUpdate {
    /// Changes since the previous update, oldest first; empty if there were none up to the revision.
    Changes {
        revision: Revision,
        changes: Vec<KeyChange>,
    },
    /// The current records, because the history in between was compacted, is too large, or belongs to a store
    /// that was restored. Records that are not among them are gone.
    Relisted {
        revision: Revision,
        /// By key.
        found: Vec<KeyChange>,
    },
}

#[derive(Debug)]
pub struct Watch<S: KeyStore> {
    registry: Registry<S>,
    range: Range,
    keys: S::Watch,
    /// The list read so far, if the history is lost.
    listed: Option<Listed>,
}

/// A list in progress. It continues after a cancelled call: a caller with a short timeout would never complete
/// a long list otherwise.
#[derive(Debug)]
struct Listed {
    reading: Reading,
    found: Vec<KeyChange>,
}

impl<S: KeyStore> Registry<S> {
    /// The current records of a scope, and the position after them.
    ///
    /// # Errors
    /// [`Error::Unusable`] for a machine id that is no key.
    pub async fn list(&self, scope: &WatchScope) -> Result<(Vec<KeyChange>, ReadPosition), Error> {
        // In chunks: all of a large registry at once would block other tasks of the thread.
        let mut found = Vec::new();
        let take = |entry| found.push(KeyChange::of_entry(&self.prefix, &entry));
        let position = self.read_each(self.range(scope)?, None, take).await?;
        Ok((found, position))
    }

    /// Watches a scope after a list, a snapshot or a revision. With the position of a list it also detects a
    /// restore before the first event.
    ///
    /// # Errors
    /// [`Error::Unusable`] for a machine id that is no key.
    pub fn watch(
        &self,
        scope: &WatchScope,
        after: impl Into<ReadPosition>,
    ) -> Result<Watch<S>, Error> {
        let range = self.range(scope)?;
        Ok(Watch {
            keys: self.store.watch(range.clone(), after.into()),
            registry: self.clone(),
            range,
            listed: None,
        })
    }

    fn range(&self, scope: &WatchScope) -> Result<Range, Error> {
        Ok(match scope {
            WatchScope::Everything => self.prefix.everything(),
            WatchScope::Globals => self.prefix.family(Family::Global),
            WatchScope::Order => self.prefix.orders(),
            WatchScope::Runs { machine } => {
                check_part("machine id", machine)?;
                self.prefix.part(Family::Run, machine)
            }
            WatchScope::Labels { machine } => {
                check_part("machine id", machine)?;
                self.prefix.part(Family::Label, machine)
            }
        })
    }
}

impl<S: KeyStore> Watch<S> {
    /// Waits for the next update. Cancel-safe.
    ///
    /// # Errors
    /// Those of the store. The watch resumes when it is called again; the caller chooses the pause.
    pub async fn next(&mut self) -> Result<WatchUpdate, Error> {
        loop {
            if self.listed.is_some() {
                match self.list_on().await {
                    Ok(Some(told)) => return Ok(told),
                    Ok(None) => {}
                    // The store was compacted again or restored while it was read. The watched position is
                    // outdated, too.
                    Err(keys::Error::Compacted | keys::Error::Future) => self.list_anew(),
                    Err(error) => return Err(error.into()),
                }
                continue;
            }
            match self.keys.next().await {
                Ok(batch) => {
                    let prefix = &self.registry.prefix;
                    let events = batch.events.iter();
                    return Ok(WatchUpdate::Changes {
                        revision: batch.revision,
                        changes: events
                            .map(|event| KeyChange::of_event(prefix, event))
                            .collect(),
                    });
                }
                // A watch that has fallen far behind receives few messages of any size. The store may have been
                // restored to a revision before the watch.
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

    /// Reads the next part of the list; returns the whole list after the last part.
    async fn list_on(&mut self) -> Result<Option<WatchUpdate>, keys::Error> {
        let Some(listed) = &mut self.listed else {
            return Ok(None);
        };
        let (entries, ended) = listed.reading.next(&self.registry).await?;
        let prefix = &self.registry.prefix;
        let found = entries.iter();
        let found = found.map(|entry| KeyChange::of_entry(prefix, entry));
        listed.found.extend(found);
        let Some(position) = ended else {
            return Ok(None);
        };
        let (found, revision) = (std::mem::take(&mut listed.found), position.revision);
        self.keys = self.registry.store.watch(self.range.clone(), position);
        self.listed = None;
        Ok(Some(WatchUpdate::Relisted { revision, found }))
    }
}
