//! Positions of entries in the trail.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A position in the order of stable entries. An entry is stable when no further entry can appear before it
/// (`docs/internals/database.md`, "The order of the audit trail").
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct TrailPosition {
    /// Incremented when the database is restored: transactions then count from an earlier number.
    pub era: i64,
    /// The number of the entry's transaction, or of the latest one that had ended before it was written, whichever is
    /// higher.
    pub commit_order: i64,
    pub sequence: i64,
}

impl TrailPosition {
    /// Before all entries.
    pub const START: Self = Self::new(0, 0, 0);
    /// The text of [`TrailPosition::START`].
    const START_TEXT: &str = "start";

    pub const fn new(era: i64, commit_order: i64, sequence: i64) -> Self {
        Self {
            era,
            commit_order,
            sequence,
        }
    }

    /// Reads the text of a [`TrailPosition`].
    pub fn parse(text: &str) -> Option<Self> {
        if text == Self::START_TEXT {
            return Some(Self::START);
        }
        // No signs: a position has only one text.
        let number = |text: &str| {
            let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
            is_plain.then(|| text.parse().ok()).flatten()
        };
        let mut numbers = text.split('-').map(number);
        let mut next = || numbers.next().flatten();
        let (era, commit_order, sequence) = (next()?, next()?, next()?);
        let position = Self::new(era, commit_order, sequence);
        numbers.next().is_none().then_some(position)
    }
}

impl fmt::Display for TrailPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::START {
            return f.write_str(Self::START_TEXT);
        }
        write!(f, "{}-{}-{}", self.era, self.commit_order, self.sequence)
    }
}

impl From<TrailPosition> for String {
    fn from(position: TrailPosition) -> Self {
        position.to_string()
    }
}

impl TryFrom<String> for TrailPosition {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).ok_or("not a position of the audit trail")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_as_it_was_printed() {
        for (expected, text) in [
            (TrailPosition::START, "start"),
            (TrailPosition::new(0, 0, 7), "0-0-7"),
            (
                TrailPosition::new(1_767_261_600, 7_432, 12),
                "1767261600-7432-12",
            ),
            (
                TrailPosition::new(0, i64::MAX, 1),
                "0-9223372036854775807-1",
            ),
        ] {
            assert_eq!(expected.to_string(), text);
            assert_eq!(TrailPosition::parse(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_positions() {
        for text in [
            "",
            "0",
            "1-2",
            "1-2-3-4",
            "1-2-",
            "--",
            "-1-2-3",
            "1-+2-3",
            "1-2-x",
            "1 -2-3",
            "1-2-9223372036854775808",
            "Start",
            "0x1-2-3",
        ] {
            assert_eq!(TrailPosition::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn positions_of_a_later_era_are_later() {
        assert!(TrailPosition::new(0, 900, 900) < TrailPosition::new(1, 5, 1));
        assert!(TrailPosition::new(1, 5, 9) < TrailPosition::new(1, 6, 1));
        assert!(TrailPosition::new(1, 6, 1) < TrailPosition::new(1, 6, 2));
    }
}
