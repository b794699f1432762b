//! Reads passes and entries page by page.

use std::collections::VecDeque;

use crate::app::Error;
use crate::domain::audit::{Seal, TrailEntry, TrailPosition};
use crate::storage::postgres::Db;

/// Entries and seals that one statement reads. The seals of a pass are never divided.
const PAGE: i64 = 2_000;

/// The passes of a range, each with all of its seals.
pub(super) struct PassPages {
    seals: VecDeque<Seal>,
    after: TrailPosition,
    end: TrailPosition,
}

impl PassPages {
    pub(super) fn new(after: TrailPosition, end: TrailPosition) -> Self {
        Self {
            seals: VecDeque::new(),
            after,
            end,
        }
    }

    /// The seals of the next pass; empty after the last one.
    pub(super) async fn next(&mut self, db: &mut Db<'_>) -> Result<Vec<Seal>, Error> {
        if self.seals.is_empty() {
            let page = db.seals_between(self.after, self.end, PAGE).await?;
            self.after = page.last().map_or(self.end, |seal| seal.end);
            self.seals = page.into();
        }
        let Some(end) = self.seals.front().map(|seal| seal.end) else {
            return Ok(Vec::new());
        };
        let length = self.seals.iter().position(|seal| seal.end != end);
        let length = length.unwrap_or(self.seals.len());
        Ok(self.seals.drain(..length).collect())
    }
}

/// The entries of a range, in the order of the trail.
pub(super) struct EntryPages {
    entries: VecDeque<TrailEntry>,
    after: TrailPosition,
    /// Without one, all settled entries.
    end: Option<TrailPosition>,
    is_last: bool,
}

impl EntryPages {
    pub(super) fn new(after: TrailPosition, end: Option<TrailPosition>) -> Self {
        Self {
            entries: VecDeque::new(),
            after,
            end,
            is_last: false,
        }
    }

    /// The next entry that is not after `end`.
    pub(super) async fn next_up_to(
        &mut self,
        db: &mut Db<'_>,
        end: Option<TrailPosition>,
    ) -> Result<Option<TrailEntry>, Error> {
        if self.entries.is_empty() && !self.is_last {
            let page = db.entries_between(self.after, self.end, PAGE).await?;
            self.is_last = page.is_empty();
            self.after = page.last().map_or(self.after, |entry| entry.position);
            self.entries = page.into();
        }
        let next = self.entries.front();
        let is_within = next.is_some_and(|next| end.is_none_or(|end| next.position <= end));
        Ok(is_within.then(|| self.entries.pop_front()).flatten())
    }
}
