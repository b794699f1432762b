//! Positions in a journal, as clients and `journalctl` write them.

use std::fmt;
use std::str::FromStr;

/// Longest cursor, in bytes. Those of systemd 252 have about 120.
const CURSOR_BYTES_MAX: usize = 256;
/// The position before all entries, for clients.
const START: &str = "start";

/// Where a client resumes a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JournalPosition {
    Start,
    /// After the entry with this cursor.
    After(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a position is the id of an event: `start`, or a cursor of journalctl")]
pub struct InvalidPosition;

impl FromStr for JournalPosition {
    type Err = InvalidPosition;

    fn from_str(text: &str) -> Result<Self, InvalidPosition> {
        let is_cursor = |b: u8| b.is_ascii_alphanumeric() || b == b'=' || b == b';';
        match text {
            START => Ok(Self::Start),
            _ if (1..=CURSOR_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_cursor) => {
                Ok(Self::After(text.to_owned()))
            }
            _ => Err(InvalidPosition),
        }
    }
}

impl fmt::Display for JournalPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Start => START,
            Self::After(cursor) => cursor,
        })
    }
}

impl JournalPosition {
    /// The options of `journalctl` that select all later entries.
    pub(super) fn options(&self) -> Vec<String> {
        match self {
            Self::Start => vec!["--lines=all".to_owned()],
            Self::After(cursor) => {
                vec!["--lines=all".to_owned(), format!("--after-cursor={cursor}")]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_cursors_or_the_start() {
        let cursor = "s=01e6;i=6b;b=54d6;m=5c1a99243;t=660e2913e302c;x=2c96cfe7387e64fc";
        let parsed: JournalPosition = cursor.parse().unwrap();
        assert_eq!(parsed, JournalPosition::After(cursor.to_owned()));
        assert_eq!("start".parse(), Ok(JournalPosition::Start));
        for text in ["start", cursor] {
            let position: JournalPosition = text.parse().unwrap();
            assert_eq!(position.to_string(), text);
        }
        let longest = "a".repeat(CURSOR_BYTES_MAX);
        assert!(longest.parse::<JournalPosition>().is_ok());
        for text in ["", "s=1 --all", "s=1\n", "s=ä", &format!("{longest}a")] {
            assert_eq!(
                text.parse::<JournalPosition>(),
                Err(InvalidPosition),
                "{text}"
            );
        }
    }
}
