//! A watch that goes on where it was after the connection was lost.

use etcd_client::{EventType, WatchOptions, WatchResponse, WatchStream};

use super::error::Sorted as _;
use super::{EtcdKeys, entry, revision, within};
use crate::storage::keys::{Batch, Error, Event, KeyWatch, Range, Revision};

const DOING: &str = "watch a range";

/// A watch of an [`EtcdKeys`].
#[derive(Debug)]
pub struct EtcdWatch {
    keys: EtcdKeys,
    range: Range,
    /// Everything up to here has been told.
    told: Revision,
    stream: Option<WatchStream>,
}

impl EtcdWatch {
    pub(super) fn new(keys: EtcdKeys, range: Range, after: Revision) -> Self {
        Self {
            keys,
            range,
            told: after,
            stream: None,
        }
    }

    async fn message(&mut self) -> Result<WatchResponse, Error> {
        if self.stream.is_none() {
            let options = WatchOptions::new()
                .with_range(self.range.to.clone())
                .with_start_revision(self.told + 1)
                .with_progress_notify();
            let mut watches = self.keys.clients().await?.watches;
            let opened = watches.watch(self.range.from.clone(), Some(options));
            self.stream = Some(within(&self.keys.settings, DOING, opened).await?);
        }
        let stream = self.stream.as_mut().ok_or_else(ended)?;
        stream.message().await.sorted(DOING)?.ok_or_else(ended)
    }

    /// What a message tells; none if it tells nothing.
    fn take(&mut self, message: &WatchResponse) -> Result<Option<Batch>, Error> {
        if message.compact_revision() > 0 {
            return Err(Error::Compacted {
                revision: self.told,
            });
        }
        if message.canceled() {
            return Err(canceled(message.cancel_reason()));
        }
        if message.created() {
            return Ok(None);
        }
        let pairs = message.events().iter().filter_map(|event| {
            let pair = event.kv()?.clone();
            Some((event.event_type() == EventType::Put, entry(pair)))
        });
        let (mut events, mut newest) = (Vec::new(), 0);
        for (is_put, entry) in pairs {
            newest = newest.max(entry.modified);
            events.push(Event {
                key: entry.key.clone(),
                entry: is_put.then_some(entry),
            });
        }
        // The header's revision is that of the server. Of events that are caught up with it is ahead of what
        // has been told; without events the server says by it how far it has got.
        if events.is_empty() {
            newest = revision(message.header(), DOING)?;
        }
        if newest <= self.told {
            return Ok(None);
        }
        self.told = newest;
        Ok(Some(Batch {
            revision: newest,
            events,
        }))
    }
}

impl KeyWatch for EtcdWatch {
    async fn next(&mut self) -> Result<Batch, Error> {
        loop {
            let taken = match self.message().await {
                Ok(message) => self.take(&message),
                Err(error) => Err(error),
            };
            match taken {
                Ok(Some(batch)) => return Ok(batch),
                Ok(None) => {}
                Err(error) => {
                    self.stream = None;
                    return Err(error);
                }
            }
        }
    }
}

fn ended() -> Error {
    Error::Unavailable {
        doing: DOING,
        source: "the stream has ended".into(),
    }
}

/// Why etcd ended a watch, other than compaction: a right that was lost, or the server's own troubles.
fn canceled(reason: &str) -> Error {
    if reason.contains("permission denied") {
        return Error::Refused {
            doing: DOING,
            message: reason.to_owned(),
        };
    }
    Error::Unavailable {
        doing: DOING,
        source: reason.into(),
    }
}
