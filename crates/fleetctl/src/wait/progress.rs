//! The progress line of commands that wait.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use tokio::time::Instant;

use crate::output::printable;

const PERIOD: Duration = Duration::from_secs(1);

/// A line on the terminal that each text replaces.
#[derive(Debug)]
pub(crate) struct Progress {
    is_on: bool,
    is_shown: bool,
    renewed: Option<Instant>,
}

impl Progress {
    /// Shows nothing unless standard error is a terminal.
    pub(crate) fn new() -> Self {
        Self {
            is_on: std::io::stderr().is_terminal(),
            is_shown: false,
            renewed: None,
        }
    }

    /// Whether there is a terminal.
    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Whether there is a terminal, and a new text is due.
    pub(crate) fn is_due(&self) -> bool {
        self.is_on
            && self
                .renewed
                .is_none_or(|renewed| renewed.elapsed() >= PERIOD)
    }

    pub(crate) fn say(&mut self, text: &str) {
        if !self.is_on {
            return;
        }
        let width = terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0));
        let text: String = printable(text)
            .chars()
            .take(width.saturating_sub(1))
            .collect();
        write(&format!("{CLEAR}{text}"));
        self.is_shown = true;
        self.renewed = Some(Instant::now());
    }

    /// Removes the line.
    pub(crate) fn clear(&mut self) {
        if self.is_shown {
            write(CLEAR);
            self.is_shown = false;
        }
    }
}

/// Clears the line of the cursor.
const CLEAR: &str = "\r\x1b[K";

/// Writes to the terminal; a closed one shows no progress.
fn write(text: &str) {
    let mut errors = std::io::stderr();
    let _ = errors
        .write_all(text.as_bytes())
        .and_then(|()| errors.flush());
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
