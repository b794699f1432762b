//! Reads the sealed trail as a whole, for `audit verify` and `audit export`.
//!
//! All statements are in one transaction with one snapshot, so that retention and sealing, which go on, change nothing in
//! between. Entries and seals are read page by page, and merged: memory depends on the number of tenants alone.

mod export;
mod pages;
mod verify;

use chrono::{DateTime, Utc};

pub use export::{ExportSink, ExportedTrail};
pub use verify::TrailVerification;

use super::Error;
use crate::domain::audit::{RemovedPart, TrailPosition};
use crate::storage::postgres::{Store, TrailBounds, Tx};

/// A part of the trail, made of whole passes: from the first one that has an entry of `since` or later, up to the first one
/// that has an entry of `until` or later.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TrailRange {
    pub since: Option<DateTime<Utc>>,
    pub until: Option<DateTime<Utc>>,
}

/// How much was read, for progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrailProgress {
    pub entries: u64,
    /// Time of the last entry.
    pub at: DateTime<Utc>,
}

/// An observer of the progress.
pub type Observe<'a> = &'a (dyn Fn(TrailProgress) + Sync);

/// The trail at one moment.
pub struct TrailReader {
    tx: Tx,
    pub bounds: TrailBounds,
    removed: RemovedPart,
}

/// A range as positions.
#[derive(Debug, Clone, Copy)]
struct Passes {
    begin: TrailPosition,
    end: TrailPosition,
    /// Whether the range begins with the first pass that retention has not removed.
    is_from_first: bool,
}

impl TrailReader {
    pub async fn open(store: &Store) -> Result<Self, Error> {
        let mut tx = store.begin_reading().await?;
        let bounds = tx.db().trail_bounds().await?;
        let removed = tx.db().removed_part().await?;
        Ok(Self {
            tx,
            bounds,
            removed,
        })
    }

    /// Ends the transaction.
    pub async fn close(self) -> Result<(), Error> {
        self.tx.finish(Ok(())).await
    }

    async fn passes(&mut self, range: TrailRange) -> Result<Passes, Error> {
        let start = self.bounds.removed.unwrap_or(TrailPosition::START);
        let sealed = self.bounds.sealed;
        let mut db = self.tx.db();
        let begin = match range.since {
            None => start,
            Some(since) => {
                let first = db.first_seal_since(since).await?;
                first.map_or(sealed, |seal| seal.begin.max(start))
            }
        };
        let last = match range.until {
            None => None,
            Some(until) => db.first_seal_since(until).await?,
        };
        Ok(Passes {
            begin,
            end: last.map_or(sealed, |seal| seal.end),
            is_from_first: begin == start,
        })
    }
}
