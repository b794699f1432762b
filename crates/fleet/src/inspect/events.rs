//! A journal as server-sent events. A client can resume a followed one without losing or repeating an entry.
//!
//! ```text
//! position ──▶ journalctl --output=json --follow --after-cursor ──▶ an event per entry: the entry, and its cursor as id
//!     ▲                                                                                   │
//!     └──────────────────────────── (the client connects again) ──────────────────────────┘
//! ```
//!
//! One `journalctl` runs as long as the client reads. Another one runs before, which finds the position.

use tokio::time::timeout;

use super::JournalPosition;
use super::journal::{ENTRY_BYTES_MAX, Entries, Journal, Line, cursor_of};
use super::journalctl::{Failure, follow_options};
use hyperfleet_fleet_model::wire::{self, HEARTBEAT};

/// Events are gathered up to about this, in bytes.
const PIECE_BYTES: usize = 32 << 10;

/// Memory per client, in bytes: a line, its event after others, and the previous events that are still being written.
pub(super) const BYTES_MAX: usize = ENTRY_BYTES_MAX + 2 * (PIECE_BYTES + ENTRY_BYTES_MAX);

/// The event stream of one client.
#[derive(Debug)]
pub(super) struct JournalEvents {
    journal: Journal,
    entries: Entries,
    /// The options of `journalctl` that select the entries that were not sent.
    rest: Vec<String>,
    /// Sent before all entries.
    opening: Option<String>,
}

impl JournalEvents {
    /// The newest entries.
    ///
    /// # Errors
    /// `journalctl` could not be started.
    pub(super) fn newest(journal: Journal, lines: u32) -> Result<Self, Failure> {
        let rest = vec![format!("--lines={lines}")];
        Ok(Self {
            entries: journal.entries(&rest)?,
            journal,
            rest,
            opening: Some(wire::beginning().to_owned()),
        })
    }

    /// The newest entries, and then further ones.
    ///
    /// # Errors
    /// `journalctl` could not be run, or failed.
    pub(super) async fn follow(journal: Journal, lines: u32) -> Result<Self, Failure> {
        let newest = journal
            .first(&[format!("--lines={}", lines.max(1))])
            .await?;
        let newest = newest.as_deref().map(cursor_of).transpose()?;
        let position = match newest {
            Some(cursor) if lines > 0 => {
                let from = ["--lines=all".to_owned(), format!("--cursor={cursor}")];
                return Self::follow_from(journal, from.into(), "");
            }
            Some(cursor) => JournalPosition::After(cursor),
            None => JournalPosition::Start,
        };
        // A client that is cut off before the first entry resumes here.
        let opening = wire::position(&position);
        Self::follow_from(journal, position.options(), &opening)
    }

    /// Resumes an earlier stream.
    ///
    /// # Errors
    /// As [`follow`](Self::follow); [`Failure::RefusedCursor`] for the position.
    pub(super) async fn resume(
        journal: Journal,
        position: &JournalPosition,
    ) -> Result<Self, Failure> {
        // A followed journal does not show whether `journalctl` accepts the position.
        journal.first(&position.options()).await?;
        Self::follow_from(journal, position.options(), "")
    }

    fn follow_from(journal: Journal, rest: Vec<String>, opening: &str) -> Result<Self, Failure> {
        let mut options = rest.clone();
        options.extend(follow_options()?);
        Ok(Self {
            entries: journal.entries(&options)?,
            journal,
            rest,
            opening: Some(wire::beginning().to_owned() + opening),
        })
    }

    /// The next events or heartbeat; `None` at the end.
    ///
    /// # Errors
    /// `journalctl` failed.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        if let Some(opening) = self.opening.take() {
            return Ok(Some(opening.into()));
        }
        let Ok(line) = timeout(HEARTBEAT, self.entries.next()).await else {
            return Ok(Some(wire::heartbeat().into()));
        };
        let Some(line) = line? else {
            return self.entries.end().await.map(|()| None);
        };
        let mut events = String::new();
        self.push(&mut events, line).await?;
        while events.len() < PIECE_BYTES
            && self.entries.has_next()
            && let Some(line) = self.entries.next().await?
        {
            self.push(&mut events, line).await?;
        }
        Ok(Some(events.into()))
    }

    async fn push(&mut self, events: &mut String, line: Line) -> Result<(), Failure> {
        let entry = match line {
            Line::Entry(entry) => entry,
            Line::TooLong => {
                let entry = self.journal.first(&self.rest).await?;
                entry.ok_or_else(|| Failure::Failed("an entry is gone".to_owned()))?
            }
        };
        let cursor = cursor_of(&entry)?;
        *events += &wire::entry(&entry, &cursor);
        self.rest = JournalPosition::After(cursor).options();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
