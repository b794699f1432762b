//! The error of a PostgreSQL that ended by itself.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// Most log lines that the error includes. The rest is in the file.
const LINES_MAX: usize = 10;

/// A private PostgreSQL failed: what happened, where its log is, and its last lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresFailed {
    what: String,
    log: PathBuf,
    lines: Vec<String>,
}

impl PostgresFailed {
    /// Reads the end of the log.
    pub(crate) fn read(what: String, log: PathBuf) -> Self {
        let text = fs::read(&log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<_> = text.lines().map(printable).collect();
        let lines = lines[lines.len().saturating_sub(LINES_MAX)..].to_vec();
        Self { what, log, lines }
    }

    pub fn what(&self) -> &str {
        &self.what
    }

    /// The path of its log.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The last lines of its log.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }
}

/// Everything, on several lines.
impl fmt::Display for PostgresFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, log, lines } = self;
        write!(f, "{what}. The end of its log, {}:", log.display())?;
        if lines.is_empty() {
            f.write_str(" empty")?;
        }
        lines.iter().try_for_each(|line| write!(f, "\n  {line}"))
    }
}

impl std::error::Error for PostgresFailed {}

/// A line without control characters: statements in it may be of any origin.
fn printable(line: &str) -> String {
    let printable = |c: char| {
        if c.is_control() && c != '\t' {
            '\u{fffd}'
        } else {
            c
        }
    };
    line.chars().map(printable).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_includes_the_last_ten_lines() {
        let log = std::env::temp_dir().join(format!("hyperfleet-log-{}", std::process::id()));
        let failed = |text: &str| {
            fs::write(&log, text).unwrap();
            PostgresFailed::read("It has ended".to_owned(), log.clone()).to_string()
        };
        let many: Vec<_> = (1..=12).map(|line| format!("line {line}")).collect();
        let expected: Vec<_> = (3..=12).map(|line| format!("\n  line {line}")).collect();
        let begin = format!("It has ended. The end of its log, {}:", log.display());
        assert_eq!(
            failed(&(many.join("\n") + "\n")),
            begin.clone() + &expected.concat()
        );
        assert_eq!(
            failed("a\u{1b}[2Jb\tc\n"),
            begin.clone() + "\n  a\u{fffd}[2Jb\tc"
        );
        assert_eq!(failed(""), begin + " empty");
        fs::remove_file(log).unwrap();
    }
}
