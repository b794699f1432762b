//! Reads the trail with its passes, for `audit verify` and `audit export`.
//!
//! All statements are in one transaction with one snapshot, so that retention and sealing, which go on, change nothing in
//! between.

use std::collections::VecDeque;

use chrono::{DateTime, Utc};
use hyperfleet_audit::{AuditEntry, Line, Link, TrailPosition};

use super::Error;
use super::sealing::end_of;
use hyperfleet_storage::{Store, TrailEnd, Tx};

/// Entries and passes that one statement reads.
const PAGE: i64 = 2_000;

/// A part of the trail, made of complete passes: from the first one that has an entry of `since` or later, up to the first
/// one that has an entry of `until` or later.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TrailRange {
    pub since: Option<DateTime<Utc>>,
    pub until: Option<DateTime<Utc>>,
}

/// The lines of a part of the trail at one moment: the link before it, then the entries of each pass and its link.
pub struct TrailReader {
    tx: Tx,
    /// The first stored link.
    pub first: Option<Link>,
    links: VecDeque<Link>,
    entries: VecDeque<AuditEntry>,
    /// Number of the next pass to read, if there may be one,
    next_pass: Option<i64>,
    last_pass: i64,
    /// Where the next entries to read begin, if there may be any,
    after: Option<TrailPosition>,
    end: TrailEnd,
}

impl TrailReader {
    /// Begins to read. If the range has no end, the entries after the last pass follow, up to `end`.
    pub async fn open(store: &Store, range: TrailRange, end: TrailEnd) -> Result<Self, Error> {
        let mut tx = store.begin_reading().await?;
        let mut db = tx.db();
        let first = db.first_pass().await?;
        let mut start = first.clone();
        if let Some(since) = range.since {
            start = db.last_pass_before(since).await?.or(start);
        }
        let mut last = None;
        if let Some(until) = range.until {
            last = db.first_pass_since(until).await?;
        }
        Ok(Self {
            tx,
            first,
            next_pass: start
                .as_ref()
                .and_then(|start| start.pass.number.checked_add(1)),
            last_pass: last.as_ref().map_or(i64::MAX, |last| last.pass.number),
            after: Some(end_of(start.as_ref())),
            end: last.map_or(end, |last| TrailEnd::At(last.pass.end)),
            links: start.into_iter().collect(),
            entries: VecDeque::new(),
        })
    }

    pub async fn next(&mut self) -> Result<Option<Line>, Error> {
        let mut db = self.tx.db();
        if let Some(next) = self.next_pass.filter(|_| self.links.is_empty()) {
            let page = db.passes_between(next, self.last_pass, PAGE).await?;
            self.next_pass = page.last().and_then(|read| read.pass.number.checked_add(1));
            self.links = page.into();
        }
        if let Some(after) = self.after.filter(|_| self.entries.is_empty()) {
            let page = db.entries_after(after, self.end, PAGE).await?;
            self.after = page.last().map(|read| read.position);
            self.entries = page.into();
        }
        let end = self.links.front().map(|link| link.pass.end);
        let is_next = |entry: &mut AuditEntry| end.is_none_or(|end| entry.position <= end);
        let entry = self.entries.pop_front_if(is_next).map(Line::Entry);
        Ok(entry.or_else(|| self.links.pop_front().map(Line::Link)))
    }

    /// Entries up to the end of the first link, which retention has still to remove.
    pub async fn removed_entries(&mut self) -> Result<i64, Error> {
        let end = end_of(self.first.as_ref());
        Ok(self.tx.db().count_entries_up_to(end).await?)
    }

    /// The stored passes among these numbers.
    pub async fn passes(&mut self, numbers: Vec<i64>) -> Result<Vec<Link>, Error> {
        Ok(self.tx.db().passes_numbered(numbers).await?)
    }

    /// Ends the transaction.
    pub async fn close(self) -> Result<(), Error> {
        self.tx.finish(Ok(())).await
    }
}
