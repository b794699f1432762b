//! Unit files: text to options, as the older fleet reads them (facts: reference fleet §2.1).
//!
//! ```text
//! file    := { any but "[" "#" ";" | comment } { section }
//! section := "[" any but "]" "]" blanks newline { blank | comment | option }
//! comment := ("#" | ";") line                 goes on in the next line after "\" or "\ "
//! option  := name "=" value                   name: no newline; both trimmed
//! value   := line { "\" newline line }        ends with a line that is blank, or has no "\" last
//! ```

use super::lexer;
use super::option::UnitOption;

/// Largest unit file, in bytes: 32 of the longest lines. JSON may write each byte as six (`\u0000`),
/// and even so a unit stays well below what etcd takes in one request by default, 1.5 MiB.
pub const FILE_BYTES_MAX: usize = 64 * 1024;
/// Most options of one unit: each repeats its section where options are listed.
pub const OPTIONS_MAX: usize = 1000;
/// Longest line without its end, in bytes.
pub const LINE_BYTES_MAX: usize = 2047;

/// Why a text is no unit file, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} at line {line}, column {column}")]
pub struct Unreadable {
    /// What is wrong.
    pub what: Malformed,
    /// In which line, counted from one.
    pub line: usize,
    /// At which character of the line, counted from one.
    pub column: usize,
}

/// What may be wrong with a unit file. The words are those of the older server, where it has any.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// It is too large.
    #[error("unit file is larger than {FILE_BYTES_MAX} bytes")]
    TooLarge,
    /// It has too many options.
    #[error("unit file has more than {OPTIONS_MAX} options")]
    TooManyOptions,
    /// It is no text.
    #[error("unit file is not UTF-8")]
    NotUtf8,
    /// A line is too long.
    #[error("line too long (max {} bytes)", LINE_BYTES_MAX + 1)]
    LineTooLong,
    /// A section begins and does not end.
    #[error("unable to find end of section")]
    OpenSection,
    /// These bytes stand behind the name of a section.
    #[error("found garbage after section name : [{}]", bytes(.0))]
    Garbage(Vec<u8>),
    /// A line has no `=`.
    #[error("unexpected newline encountered while parsing option name")]
    NewlineInName,
    /// The last line has no `=`.
    #[error("EOF")]
    EndInName,
}

fn bytes(garbage: &[u8]) -> String {
    let numbers: Vec<_> = garbage.iter().map(ToString::to_string).collect();
    numbers.join(" ")
}

/// Reads the options of a unit file in their order: sections may recur, names repeat, values be
/// empty. Lines end in LF or CR LF. A file without any section has none.
///
/// # Errors
///
/// What is wrong first, by where it stands; size and encoding before anything else.
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

/// Where the first line begins that is too long.
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

/// The fault that comes right behind `before`.
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
