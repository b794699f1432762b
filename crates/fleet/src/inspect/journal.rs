//! The journal of one unit: its entries by cursor, and their text.
//!
//! `journalctl` prints cursors in a few of its output forms only. So [`Journal::follow`] finds the next entry,
//! and [`Journal::print`] returns the text of entries in the requested form with the cursor of the last.

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _};

use serde::Deserialize;

use super::JournalPosition;
use super::journalctl::{Failure, JOURNALCTL, Run, follow_options, journal_of};
use super::shortened::read_limited;
use crate::agent::Bus;

/// Longest text of one run, in bytes. The longest line that journald accepts from a service fits.
pub(super) const TEXT_BYTES_MAX: usize = 128 << 10;
/// Longest entry as JSON with only its cursor, in bytes.
const ENTRY_BYTES_MAX: usize = 4 << 10;
/// Longest line with the cursor that `journalctl --show-cursor` prints.
const CURSOR_BYTES_MAX: usize = 1 << 10;
/// Prefix of that line.
const CURSOR_MARK: &[u8] = b"-- cursor: ";

#[derive(Debug)]
pub(super) struct Journal {
    program: String,
    /// The option that selects the unit.
    unit: String,
    /// Output form of entries.
    output: String,
}

/// A running `journalctl` that finds entries one by one. Dropping this ends it.
#[derive(Debug)]
pub(super) struct Entries {
    run: Run,
    /// The partial line of the next entry.
    line: Vec<u8>,
}

/// The parsed part of an entry.
#[derive(Deserialize)]
struct Entry {
    #[serde(rename = "__CURSOR")]
    cursor: String,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Printed {
    /// The text of several entries is too long: print fewer.
    TooLong,
    Text {
        text: Vec<u8>,
        /// Cursor of the last entry; `None` without entries.
        last: Option<String>,
    },
}

impl Journal {
    pub(super) fn new(bus: Bus, unit: &str, output: &str) -> Self {
        Self {
            program: JOURNALCTL.to_owned(),
            unit: journal_of(bus, unit),
            output: format!("--output={output}"),
        }
    }

    fn entries(&self, options: &[String]) -> Result<Entries, Failure> {
        // Only a few fields of each entry; the cursor is always included.
        let fixed = [&self.unit, "--output=json", "--output-fields=_BOOT_ID"];
        let options = options.iter().map(String::as_str);
        let options: Vec<&str> = fixed.into_iter().chain(options).collect();
        Ok(Entries {
            run: Run::start(&self.program, &options)?,
            line: Vec::new(),
        })
    }

    /// The cursor of the first entry that `options` select, if any.
    ///
    /// # Errors
    /// [`Failure::RefusedCursor`] for one of `options`.
    pub(super) async fn find(&self, options: &[String]) -> Result<Option<String>, Failure> {
        let mut entries = self.entries(options)?;
        match entries.next().await? {
            None => entries.run.end().await.map(|()| None),
            found => Ok(found),
        }
    }

    /// The entries after a position, including future ones.
    ///
    /// # Errors
    /// `journalctl` could not be started.
    pub(super) fn follow(&self, position: &JournalPosition) -> Result<Entries, Failure> {
        let mut options = position.options();
        options.extend(follow_options()?);
        self.entries(&options)
    }

    /// The text of up to `count` entries. `from` is the option of `journalctl` that selects the first one.
    ///
    /// # Errors
    /// `journalctl` failed.
    pub(super) async fn print(&self, from: &str, count: usize) -> Result<Printed, Failure> {
        let lines = format!("--lines={count}");
        let options = [&self.unit, &self.output, "--show-cursor", from, &lines];
        let mut run = Run::start(&self.program, &options)?;
        let mut text = if count > 1 {
            let limit = TEXT_BYTES_MAX + CURSOR_BYTES_MAX;
            let (mut text, limit) = (Vec::new(), limit as u64);
            let output = &mut run.output;
            let read = output.take(limit + 1).read_to_end(&mut text).await?;
            if read as u64 > limit {
                return Ok(Printed::TooLong);
            }
            text
        } else {
            read_limited(&mut run.output, TEXT_BYTES_MAX as u64).await?
        };
        run.end().await?;
        let last = take_cursor(&mut text);
        if last.is_none() && !text.is_empty() {
            return Err(Failure::Failed("it prints no cursor".to_owned()));
        }
        Ok(Printed::Text { text, last })
    }
}

impl Entries {
    /// The next cursor; `None` if `journalctl` has ended. Cancel-safe.
    ///
    /// # Errors
    /// The output is not an entry.
    pub(super) async fn next(&mut self) -> Result<Option<String>, Failure> {
        let left = ENTRY_BYTES_MAX.saturating_sub(self.line.len());
        // The line keeps what was read before a cancelled call.
        let mut output = (&mut self.run.output).take(left as u64);
        output.read_until(b'\n', &mut self.line).await?;
        if self.line.is_empty() {
            return Ok(None);
        }
        let line = std::mem::take(&mut self.line);
        let entry: Entry = serde_json::from_slice(&line)
            .map_err(|error| Failure::Failed(format!("it prints no entry: {error}")))?;
        Ok(Some(entry.cursor))
    }

    /// Why there is no further entry.
    pub(super) async fn end(self) -> Failure {
        let ended = self.run.end().await;
        let without_cause = || Failure::Failed("journalctl --follow has ended".to_owned());
        ended.err().unwrap_or_else(without_cause)
    }
}

/// Removes the line with the cursor from the end of a text.
fn take_cursor(text: &mut Vec<u8>) -> Option<String> {
    let end = text.strip_suffix(b"\n")?;
    let start = end.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
    let cursor = end[start..].strip_prefix(CURSOR_MARK)?;
    let cursor = String::from_utf8(cursor.to_vec()).ok()?;
    text.truncate(start);
    Some(cursor)
}

#[cfg(test)]
impl Journal {
    /// A journal that another program prints.
    pub(super) fn printed_by(program: &std::path::Path) -> Self {
        Self {
            program: program.display().to_string(),
            ..Self::new(Bus::System, "a.service", "cat")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_line_is_the_cursor() {
        for (text, cursor, rest) in [
            ("a\n-- cursor: s=1\n", Some("s=1"), "a\n"),
            ("-- cursor: s=2\n", Some("s=2"), ""),
            (
                "-- cursor: s=3\n-- cursor: s=4\n",
                Some("s=4"),
                "-- cursor: s=3\n",
            ),
            ("-- cursor: s=5\na\n", None, "-- cursor: s=5\na\n"),
            ("-- cursor: s=6", None, "-- cursor: s=6"),
            ("", None, ""),
        ] {
            let mut left = text.as_bytes().to_vec();
            let found = take_cursor(&mut left);
            assert_eq!(found.as_deref(), cursor, "{text}");
            assert_eq!(left, rest.as_bytes(), "{text}");
        }
    }
}
