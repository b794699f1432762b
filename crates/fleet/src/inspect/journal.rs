//! A journal that is followed as server-sent events, which a client can resume without losing or repeating a line.
//!
//! ```text
//! position ─▶ journalctl --follow: cursor of the next entry ─▶ journalctl --cursor: up to 40 entries ─┐
//!    ▲                                    (an event: their text, and as its id the cursor of the last) │
//!    └────────────────────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! `journalctl` tells the cursors of entries in a few of its output forms only. One call thus finds the next entry, and
//! another prints the entries from there in the form that the client wants.

use std::io;
use std::process::Stdio;

use serde::Deserialize;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

use super::JournalPosition;
use super::journalctl::{JOURNALCTL, follow_options, journal_of};
use crate::agent::Bus;
use hyperfleet_fleet_model::wire::{self, HEARTBEAT};

/// Most entries of one event.
const ENTRIES_MAX: u32 = 40;
/// Longest text of one event, in bytes. 40 of the longest lines that journald takes from a service fit.
const TEXT_BYTES_MAX: u64 = 2 << 20;
/// The end of a text that is kept where its middle is left out: the line with the cursor fits.
const TAIL_BYTES: usize = 1 << 10;
/// Longest entry as JSON with its cursor alone, in bytes.
const ENTRY_BYTES_MAX: u64 = 4 << 10;
/// What precedes the cursor that `journalctl --show-cursor` prints.
const CURSOR_MARK: &[u8] = b"-- cursor: ";

/// The journal of one unit.
#[derive(Debug)]
pub(super) struct Journal {
    /// The option that selects the unit.
    unit: String,
    /// The form in which entries are printed.
    output: String,
}

/// An entry, as far as it is read.
#[derive(Deserialize)]
struct Entry {
    #[serde(rename = "__CURSOR")]
    cursor: String,
}

impl Journal {
    pub(super) fn new(bus: Bus, unit: &str, output: &str) -> Self {
        Self {
            unit: journal_of(bus, unit),
            output: format!("--output={output}"),
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(JOURNALCTL);
        command
            .args([&self.unit, "--no-pager", "--quiet"])
            .env("SYSTEMD_COLORS", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// The cursor of the first entry that `options` select; none if there is none.
    ///
    /// # Errors
    /// `InvalidInput` with the words of `journalctl` if it does not accept the options.
    async fn find(&self, options: &[String]) -> io::Result<Option<String>> {
        let mut child = self
            .command()
            // Few fields of each entry: the cursor always comes.
            .args(["--output=json", "--output-fields=_BOOT_ID"])
            .args(options)
            .stderr(Stdio::piped())
            .spawn()?;
        let output = child.stdout.take().expect("it is piped");
        let mut line = Vec::new();
        let mut output = BufReader::new(output).take(ENTRY_BYTES_MAX);
        if output.read_until(b'\n', &mut line).await? > 0 {
            let entry: Entry = serde_json::from_slice(&line)?;
            return Ok(Some(entry.cursor));
        }
        let ended = child.wait_with_output().await?;
        if ended.status.success() {
            return Ok(None);
        }
        let message = String::from_utf8_lossy(&ended.stderr).trim().to_owned();
        Err(io::Error::new(io::ErrorKind::InvalidInput, message))
    }

    /// Waits for the next entry after a position; gives its cursor.
    async fn wait(&self, position: &JournalPosition) -> io::Result<String> {
        let mut options = position.options();
        options.extend(follow_options()?);
        let found = self.find(&options).await?;
        found.ok_or_else(|| io::Error::other("journalctl --follow has ended"))
    }

    /// The text of entries from a cursor on, and the cursor of the last one.
    async fn print(&self, cursor: &str) -> io::Result<(Vec<u8>, String)> {
        let mut child = self
            .command()
            .args([&self.output, "--show-cursor"])
            .args([
                format!("--cursor={cursor}"),
                format!("--lines={ENTRIES_MAX}"),
            ])
            .stderr(Stdio::null())
            .spawn()?;
        let output = child.stdout.take().expect("it is piped");
        let mut text = read_limited(output, TEXT_BYTES_MAX).await?;
        let last = take_cursor(&mut text);
        let missing = || io::Error::other("journalctl has printed no cursor");
        Ok((text, last.ok_or_else(missing)?))
    }
}

/// All that a program prints. The middle of what is longer than `limit` is left out.
async fn read_limited(mut output: impl AsyncRead + Unpin, limit: u64) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    (&mut output).take(limit).read_to_end(&mut text).await?;
    let (mut tail, mut left_out) = (Vec::new(), 0);
    while output.read_buf(&mut tail).await? > 0 {
        let extra = tail.len().saturating_sub(TAIL_BYTES);
        left_out += extra;
        tail.drain(..extra);
    }
    if left_out > 0 {
        text.extend(format!("\n[{left_out} bytes left out]\n").bytes());
    }
    text.extend(tail);
    Ok(text)
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

/// The events of one client.
#[derive(Debug)]
pub(super) struct JournalEvents {
    journal: Journal,
    position: JournalPosition,
    /// The entry after the position, if it is known.
    next: Option<String>,
    /// What is sent before all entries.
    opening: Option<String>,
}

impl JournalEvents {
    /// Begins with the newest lines.
    ///
    /// # Errors
    /// `journalctl` could not be run, or failed.
    pub(super) async fn begin(journal: Journal, lines: u32) -> io::Result<Self> {
        let newest = journal.find(&[format!("--lines={}", lines.max(1))]).await?;
        let (position, next) = match newest {
            Some(cursor) if lines == 0 => (JournalPosition::After(cursor), None),
            next => (JournalPosition::Start, next),
        };
        let mut opening = wire::beginning().to_owned();
        if next.is_none() {
            // A client that is cut off before the first entry resumes here.
            opening += &wire::lines(b"", &position.to_string())?;
        }
        Ok(Self {
            journal,
            position,
            next,
            opening: Some(opening),
        })
    }

    /// Resumes an earlier stream.
    ///
    /// # Errors
    /// As [`begin`](Self::begin); `InvalidInput` if `journalctl` does not accept the position.
    pub(super) async fn resume(journal: Journal, position: &JournalPosition) -> io::Result<Self> {
        let next = journal.find(&position.options()).await?;
        Ok(Self {
            journal,
            position: position.clone(),
            next,
            opening: Some(wire::beginning().to_owned()),
        })
    }

    /// The next event or heartbeat. May be given up half-way.
    ///
    /// # Errors
    /// `journalctl` failed.
    pub(super) async fn next(&mut self) -> io::Result<Vec<u8>> {
        if let Some(opening) = self.opening.take() {
            return Ok(opening.into());
        }
        if self.next.is_none() {
            let waited = timeout(HEARTBEAT, self.journal.wait(&self.position)).await;
            let Ok(found) = waited else {
                return Ok(wire::heartbeat().into());
            };
            self.next = Some(found?);
        }
        let next = self.next.as_deref().unwrap_or_default();
        let (text, last) = self.journal.print(next).await?;
        let event = wire::lines(&text, &last)?;
        self.position = JournalPosition::After(last);
        self.next = None;
        Ok(event.into())
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

    #[tokio::test]
    async fn a_long_text_keeps_its_beginning_and_its_cursor() {
        let text = format!("{}\n-- cursor: s=1\n", "x".repeat(3 * TAIL_BYTES));
        let read = read_limited(text.as_bytes(), TEXT_BYTES_MAX).await.unwrap();
        assert_eq!(read, text.as_bytes());
        let mut read = read_limited(text.as_bytes(), 10).await.unwrap();
        assert_eq!(take_cursor(&mut read).as_deref(), Some("s=1"));
        let left_out = text.len() - 10 - TAIL_BYTES;
        let begin = format!("xxxxxxxxxx\n[{left_out} bytes left out]\nxxx");
        assert!(read.starts_with(begin.as_bytes()));
    }
}
