//! A watch that resumes after the connection was lost.

use std::fmt;

use etcd_client::{EventType, WatchOptions, WatchResponse, WatchStream};

use futures_util::future::BoxFuture;

use super::error::classify;
use super::{EtcdKeys, entry, headless, revision, within};
use crate::keys::{
    Batch, Error, Event, KeyStore as _, KeyWatch, LastChange, Range, ReadPosition, Revision,
};

const DOING: &str = "watch a range";

pub struct EtcdWatch {
    keys: EtcdKeys,
    range: Range,
    /// Position of the last delivered event. An etcd that does not know it was restored.
    delivered: ReadPosition,
    /// The cluster of that history; `None` before the first message.
    cluster: Option<u64>,
    stream: Option<WatchStream>,
    /// The request that opens the watch. Kept, so that a caller who often cancels `next` does not restart it
    /// each time.
    opening: Option<BoxFuture<'static, Result<WatchStream, Error>>>,
}

impl fmt::Debug for EtcdWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            range, delivered, ..
        } = self;
        f.debug_tuple("EtcdWatch")
            .field(range)
            .field(delivered)
            .finish()
    }
}

impl EtcdWatch {
    pub(super) fn new(keys: EtcdKeys, range: Range, delivered: ReadPosition) -> Self {
        Self {
            keys,
            range,
            delivered,
            cluster: None,
            stream: None,
            opening: None,
        }
    }

    async fn message(&mut self) -> Result<WatchResponse, Error> {
        if self.stream.is_none() {
            let (keys, range, delivered) = (&self.keys, &self.range, &self.delivered);
            let opening = self.opening.get_or_insert_with(|| {
                let (keys, range, delivered) = (keys.clone(), range.clone(), delivered.clone());
                Box::pin(async move {
                    if let Some(last) = delivered.last {
                        check_history(&keys, &last).await?;
                    }
                    open(keys, range, delivered.revision).await
                })
            });
            let opened = opening.await;
            self.opening = None;
            self.stream = Some(opened?);
        }
        let stream = self.stream.as_mut().ok_or_else(ended)?;
        let message = stream.message().await;
        let message = message.map_err(|source| classify(source, DOING))?;
        message.ok_or_else(ended)
    }

    /// The batch of a message; `None` if it has none.
    fn batch_of(&mut self, message: &WatchResponse) -> Result<Option<Batch>, Error> {
        if message.compact_revision() > 0 {
            return Err(Error::Compacted);
        }
        if message.canceled() {
            return Err(canceled(message.cancel_reason()));
        }
        if message.created() {
            // etcd waits for a revision that may never come, or that comes with another history.
            let header = message.header().ok_or_else(|| headless(DOING))?;
            let cluster = *self.cluster.get_or_insert(header.cluster_id());
            if header.revision() < self.delivered.revision || header.cluster_id() != cluster {
                return Err(Error::Future);
            }
            return Ok(None);
        }
        let pairs = message.events().iter().filter_map(|event| {
            let pair = event.kv()?.clone();
            Some((event.event_type() == EventType::Put, entry(pair)))
        });
        let (mut events, mut last) = (Vec::new(), None);
        for (is_put, entry) in pairs {
            last = Some(LastChange {
                key: entry.key.clone(),
                revision: entry.modified,
                is_put,
            });
            events.push(Event {
                key: entry.key.clone(),
                entry: is_put.then_some(entry),
            });
        }
        // The header has the server's revision. While old events are sent, it is ahead of them; without events
        // it shows the server's progress.
        let newest = match &last {
            Some(last) => last.revision,
            None => revision(message.header(), DOING)?,
        };
        if newest <= self.delivered.revision {
            return Ok(None);
        }
        self.delivered = ReadPosition {
            revision: newest,
            last: last.or(self.delivered.last.take()),
        };
        Ok(Some(Batch {
            revision: newest,
            events,
        }))
    }
}

/// Fails if etcd no longer knows what it has delivered before. An etcd restored from a snapshot may have passed
/// all delivered revisions.
async fn check_history(keys: &EtcdKeys, last: &LastChange) -> Result<(), Error> {
    let put_at = async |at: Option<Revision>| {
        let found = keys.list(Range::one(&last.key), 1, at).await?;
        Ok(found.entries.first().map(|entry| entry.modified))
    };
    let revision = last.revision;
    let is_known = if last.is_put {
        // The current entry suffices if it is still that put: older revisions may be compacted.
        put_at(None).await? == Some(revision) || put_at(Some(revision)).await? == Some(revision)
    } else {
        put_at(Some(revision)).await?.is_none() && put_at(Some(revision - 1)).await?.is_some()
    };
    if is_known { Ok(()) } else { Err(Error::Future) }
}

async fn open(keys: EtcdKeys, range: Range, delivered: Revision) -> Result<WatchStream, Error> {
    let options = WatchOptions::new()
        .with_range(range.to)
        .with_start_revision(delivered + 1)
        .with_progress_notify();
    let watches = keys.clients().await?.watches;
    let opened = || {
        let (mut watches, from, options) = (watches.clone(), range.from.clone(), options.clone());
        async move { watches.watch(from, Some(options)).await }
    };
    within(&keys.settings, DOING, opened).await
}

impl KeyWatch for EtcdWatch {
    async fn next(&mut self) -> Result<Batch, Error> {
        loop {
            let taken = match self.message().await {
                Ok(message) => self.batch_of(&message),
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

/// Why etcd ended a watch, other than compaction: a lost right, or trouble of the server.
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
