//! A followed journal as server-sent events. A client can resume it without losing or repeating a line.
//!
//! ```text
//!              ┌── none yet ──▶ journalctl --follow: the cursor of the next entry ──┐
//! position ────┤                                                                    ▼
//!    ▲         └── maybe some ─────────────────▶ journalctl --after-cursor: text of entries ──┐
//!    └──────────────────────── (an event: the text, and as its id the cursor of the last) ────┘
//! ```
//!
//! A unit that logs rarely costs two runs of `journalctl` per event, and at most five events a second. A busy
//! unit costs one run per event, with as many entries as fit. A silent unit costs one waiting run.

use std::io;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};

use super::JournalPosition;
use super::journal::{Entries, Journal, Printed, TEXT_BYTES_MAX};
use super::journalctl::Failure;
use super::shortened::shorten;
use hyperfleet_fleet_model::wire::{self, HEARTBEAT};

const EVENT_BYTES_MAX: usize = 160 << 10;
/// A single entry whose event would be too long is shortened to this. A byte becomes at most six, as in
/// `\u001b`.
const SHORTENED_BYTES: usize = EVENT_BYTES_MAX / 6 - (1 << 10);
/// Entries per event at first. The number grows while their text fits.
const ENTRIES: usize = 64;
const ENTRIES_MAX: usize = 4096;
/// Shortest time between two events.
const GATHERING: Duration = Duration::from_millis(200);

/// Memory per client, in bytes: a text, its event, and the previous event that is still being written.
pub(super) const BYTES_MAX: usize = TEXT_BYTES_MAX + 2 * EVENT_BYTES_MAX;

/// The event stream of one client.
#[derive(Debug)]
pub(super) struct JournalEvents {
    journal: Journal,
    position: JournalPosition,
    next: Next,
    /// Sent before all entries.
    opening: Option<String>,
    /// Most entries of the next event.
    count: usize,
    print_at: Instant,
}

/// What is known about entries after the position.
#[derive(Debug)]
enum Next {
    Nothing,
    /// There is no entry yet.
    Awaited(Box<Entries>),
    /// Cursor of the next entry.
    Found(String),
    /// There are probably more: the last event was full.
    Likely,
}

impl JournalEvents {
    /// Starts with the newest lines.
    ///
    /// # Errors
    /// `journalctl` could not be run, or failed.
    pub(super) async fn begin(journal: Journal, lines: u32) -> Result<Self, Failure> {
        let newest = journal.find(&[format!("--lines={}", lines.max(1))]).await?;
        let (position, next) = match newest {
            Some(cursor) if lines == 0 => (JournalPosition::After(cursor), Next::Nothing),
            Some(cursor) => (JournalPosition::Start, Next::Found(cursor)),
            None => (JournalPosition::Start, Next::Nothing),
        };
        let mut opening = wire::beginning().to_owned();
        if matches!(next, Next::Nothing) {
            // A client that is cut off before the first entry resumes here.
            opening += &lines_event(b"", &position.to_string())?;
        }
        Ok(Self::at(journal, position, next, opening))
    }

    /// Resumes an earlier stream.
    ///
    /// # Errors
    /// As [`begin`](Self::begin); [`Failure::RefusedCursor`] for the position.
    pub(super) async fn resume(
        journal: Journal,
        position: &JournalPosition,
    ) -> Result<Self, Failure> {
        let next = journal.find(&position.options()).await?;
        let next = next.map_or(Next::Nothing, Next::Found);
        let opening = wire::beginning().to_owned();
        Ok(Self::at(journal, position.clone(), next, opening))
    }

    fn at(journal: Journal, position: JournalPosition, next: Next, opening: String) -> Self {
        Self {
            journal,
            position,
            next,
            opening: Some(opening),
            count: ENTRIES,
            print_at: Instant::now(),
        }
    }

    /// The next event or heartbeat. Cancel-safe.
    ///
    /// # Errors
    /// `journalctl` failed.
    pub(super) async fn next(&mut self) -> Result<Vec<u8>, Failure> {
        if let Some(opening) = self.opening.take() {
            return Ok(opening.into());
        }
        let beat_at = Instant::now() + HEARTBEAT;
        loop {
            match &mut self.next {
                Next::Nothing => {
                    let entries = self.journal.follow(&self.position)?;
                    self.next = Next::Awaited(Box::new(entries));
                }
                // Kept over heartbeats, so a silent unit starts no further process.
                Next::Awaited(entries) => match timeout_at(beat_at, entries.next()).await {
                    Err(_) => return Ok(wire::heartbeat().into()),
                    Ok(found) => self.next = self.next_line(found?).await?,
                },
                Next::Found(_) | Next::Likely => {
                    sleep_until(self.print_at).await;
                    if let Some(event) = self.print().await? {
                        return Ok(event);
                    }
                }
            }
        }
    }

    async fn next_line(&mut self, cursor: Option<String>) -> Result<Next, Failure> {
        let before = std::mem::replace(&mut self.next, Next::Nothing);
        match (cursor, before) {
            (Some(cursor), _) => Ok(Next::Found(cursor)),
            (None, Next::Awaited(entries)) => Err(entries.end().await),
            (None, before) => Ok(before),
        }
    }

    /// Prints entries; `None` if there are none, or if fewer must be printed.
    async fn print(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        let from = match (&self.next, &self.position) {
            (Next::Found(cursor), _) => format!("--cursor={cursor}"),
            (_, JournalPosition::After(cursor)) => format!("--after-cursor={cursor}"),
            (_, JournalPosition::Start) => {
                self.next = Next::Nothing;
                return Ok(None);
            }
        };
        let begun_at = Instant::now();
        let Printed::Text { text, last } = self.journal.print(&from, self.count).await? else {
            return Ok(self.print_fewer());
        };
        self.print_at = begun_at + GATHERING;
        let Some(last) = last.filter(|last| !self.position.is_after(last)) else {
            self.next = Next::Nothing;
            return Ok(None);
        };
        let length = text.len();
        // Most entries have at least one line.
        let is_full = text.split(|byte| *byte == b'\n').count() > self.count;
        let Some(event) = event(text, &last, self.count)? else {
            return Ok(self.print_fewer());
        };
        self.position = JournalPosition::After(last);
        self.next = if is_full { Next::Likely } else { Next::Nothing };
        if is_full {
            self.print_at = begun_at;
            if length < TEXT_BYTES_MAX / 2 {
                self.count = (self.count * 2).min(ENTRIES_MAX);
            }
        }
        Ok(Some(event.into()))
    }

    /// The entries are too long: prints half as many next.
    fn print_fewer(&mut self) -> Option<Vec<u8>> {
        self.count = (self.count / 2).max(1);
        None
    }
}

/// The event of a text; `None` if it is too long and fewer entries can be printed.
fn event(mut text: Vec<u8>, last: &str, count: usize) -> io::Result<Option<String>> {
    let event = lines_event(&text, last)?;
    if event.len() <= EVENT_BYTES_MAX {
        return Ok(Some(event));
    }
    drop(event);
    if count > 1 {
        return Ok(None);
    }
    shorten(&mut text, SHORTENED_BYTES);
    lines_event(&text, last).map(Some)
}

fn lines_event(text: &[u8], last: &str) -> io::Result<String> {
    wire::lines(text, last).map_err(io::Error::from)
}

#[cfg(test)]
mod tests;
