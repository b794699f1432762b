//! Unit files: text to options, by the rules of the older fleet.
//!
//! ```text
//! file    := { any but "[" "#" ";" | comment } { section }
//! section := "[" any but "]" "]" blanks newline { blank | comment | option }
//! comment := ("#" | ";") line                 continues on the next line after "\" or "\ "
//! option  := name "=" value                   name: no newline; both trimmed
//! value   := line { "\" newline line }        ends with a line that is blank, or has no "\" last
//! ```

use super::lexer;
use super::option::UnitOption;

pub use super::malformed::{FILE_BYTES_MAX, LINE_BYTES_MAX, Malformed, OPTIONS_MAX};

/// Why a text is no unit file, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} at line {line}, column {column}")]
pub struct Unreadable {
    pub what: Malformed,
    /// Counted from one.
    pub line: usize,
    /// Character of the line, counted from one.
    pub column: usize,
}

/// Reads the options of a unit file in their order. Sections may recur, names repeat, values be empty. Lines
/// end in LF or CR LF. A file without sections has no options.
///
/// # Errors
/// The first fault in the text; size and encoding come before it.
pub fn parse(file: &[u8]) -> Result<Vec<UnitOption>, Unreadable> {
    if file.len() > FILE_BYTES_MAX {
        return Err(unreadable(Malformed::TooLarge, &file[..FILE_BYTES_MAX]));
    }
    let text = match str::from_utf8(file) {
        Ok(text) => text.replace("\r\n", "\n"),
        Err(error) => {
            let valid = &file[..error.valid_up_to()];
            return Err(unreadable(Malformed::NotUtf8, valid));
        }
    };
    let text = text.strip_suffix('\r').unwrap_or(&text);
    let options = lexer::read(text);
    match (options, long_line(text)) {
        (Ok(options), None) => Ok(options),
        (Err(fault), long) if long.is_none_or(|start| fault.at < start) => {
            Err(unreadable(fault.what, &text.as_bytes()[..fault.at]))
        }
        (_, long) => {
            let end = long.unwrap_or_default() + LINE_BYTES_MAX;
            Err(unreadable(Malformed::LineTooLong, &text.as_bytes()[..end]))
        }
    }
}

/// Where the first overlong line begins.
fn long_line(text: &str) -> Option<usize> {
    let mut start = 0;
    for line in text.split('\n') {
        if line.len() > LINE_BYTES_MAX {
            return Some(start);
        }
        start += line.len() + 1;
    }
    None
}

/// The fault after the text `before`.
fn unreadable(what: Malformed, before: &[u8]) -> Unreadable {
    let lines = || before.split(|b| *b == b'\n');
    let last = lines().next_back().unwrap_or_default().iter();
    let starts_character = |b: &&u8| **b & 0b1100_0000 != 0b1000_0000;
    Unreadable {
        what,
        line: lines().count(),
        column: 1 + last.filter(starts_character).count(),
    }
}
