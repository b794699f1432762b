//! The journal of one unit: its entries, each as one line of JSON.

use serde::Deserialize;
use tokio::io::AsyncBufReadExt as _;

use super::journalctl::{Failure, JOURNALCTL, Run, journal_of};
use crate::agent::Bus;

/// Longest entry as JSON, in bytes. The longest line that journald accepts from a service fits, which has 48 KiB, unless
/// most of it is binary.
pub(super) const ENTRY_BYTES_MAX: usize = 128 << 10;

#[derive(Debug)]
pub(super) struct Journal {
    program: String,
    /// The option that selects the unit.
    unit: String,
}

/// A running `journalctl` that prints entries. Dropping this ends it.
#[derive(Debug)]
pub(super) struct Entries {
    run: Run,
    /// The partial line of the next entry.
    line: Vec<u8>,
}

/// One line of `journalctl`.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Entry(String),
    /// Longer than [`ENTRY_BYTES_MAX`].
    TooLong,
}

/// The parsed part of an entry.
#[derive(Deserialize)]
struct Cursor {
    #[serde(rename = "__CURSOR")]
    cursor: String,
}

impl Journal {
    pub(super) fn new(bus: Bus, unit: &str) -> Self {
        Self {
            program: JOURNALCTL.to_owned(),
            unit: journal_of(bus, unit),
        }
    }

    /// The entries that `options` select.
    ///
    /// # Errors
    /// `journalctl` could not be started.
    pub(super) fn entries(&self, options: &[String]) -> Result<Entries, Failure> {
        // Otherwise `journalctl` prints null in place of fields of more than 4 KiB.
        self.run(&["--all"], options)
    }

    fn run(&self, more: &[&str], options: &[String]) -> Result<Entries, Failure> {
        let fixed = [self.unit.as_str(), "--output=json"];
        let options = options.iter().map(String::as_str);
        let options: Vec<&str> = fixed
            .into_iter()
            .chain(more.iter().copied())
            .chain(options)
            .collect();
        Ok(Entries {
            run: Run::start(&self.program, &options)?,
            line: Vec::new(),
        })
    }

    /// The first entry that `options` select, if any, with null in place of long fields.
    ///
    /// # Errors
    /// [`Failure::RefusedCursor`] for one of `options`.
    pub(super) async fn first(&self, options: &[String]) -> Result<Option<String>, Failure> {
        let mut entries = self.run(&[], options)?;
        match entries.next().await? {
            None => entries.end().await.map(|()| None),
            Some(Line::Entry(entry)) => Ok(Some(entry)),
            Some(Line::TooLong) => Err(Failure::Failed("an entry is too long".to_owned())),
        }
    }
}

impl Entries {
    /// The next line; `None` if `journalctl` has ended. Cancel-safe.
    ///
    /// # Errors
    /// The output is not text.
    pub(super) async fn next(&mut self) -> Result<Option<Line>, Failure> {
        loop {
            let output = self.run.output.fill_buf().await?;
            let end = output.iter().position(|byte| *byte == b'\n');
            let part = &output[..end.unwrap_or(output.len())];
            // One byte more shows that the line is too long.
            let room = (ENTRY_BYTES_MAX + 1).saturating_sub(self.line.len());
            self.line.extend_from_slice(&part[..part.len().min(room)]);
            let (read, is_ended) = (part.len(), output.is_empty());
            self.run.output.consume(read + usize::from(end.is_some()));
            if is_ended && self.line.is_empty() {
                return Ok(None);
            }
            if is_ended || end.is_some() {
                return self.take_line().map(Some);
            }
        }
    }

    fn take_line(&mut self) -> Result<Line, Failure> {
        let line = std::mem::take(&mut self.line);
        if line.len() > ENTRY_BYTES_MAX {
            return Ok(Line::TooLong);
        }
        let text = String::from_utf8(line);
        text.map(Line::Entry).map_err(|_| no_entry("not UTF-8"))
    }

    /// Whether the next line is there without waiting.
    pub(super) fn has_next(&self) -> bool {
        self.run.output.buffer().contains(&b'\n')
    }

    /// Waits for the end, after all entries were read.
    ///
    /// # Errors
    /// `journalctl` failed.
    pub(super) async fn end(&mut self) -> Result<(), Failure> {
        self.run.end().await
    }
}

/// The cursor of an entry.
///
/// # Errors
/// It is no entry.
pub(super) fn cursor_of(entry: &str) -> Result<String, Failure> {
    let parsed: Result<Cursor, _> = serde_json::from_str(entry);
    parsed
        .map(|parsed| parsed.cursor)
        .map_err(|error| no_entry(&error.to_string()))
}

fn no_entry(why: &str) -> Failure {
    Failure::Failed(format!("it prints no entry: {why}"))
}

#[cfg(test)]
impl Journal {
    /// A journal that another program prints.
    pub(super) fn printed_by(program: &std::path::Path) -> Self {
        Self {
            program: program.display().to_string(),
            ..Self::new(Bus::System, "a.service")
        }
    }
}
