//! The lexer of unit files. All lines end in LF here.

use super::malformed::{Malformed, OPTIONS_MAX};
use super::option::UnitOption;

/// A fault, and its position in bytes.
pub(super) struct Fault {
    pub(super) what: Malformed,
    pub(super) at: usize,
}

/// The options of a text. Does not check the length of lines.
pub(super) fn read(text: &str) -> Result<Vec<UnitOption>, Fault> {
    let mut lexer = Lexer { text, at: 0 };
    let mut options: Vec<UnitOption> = Vec::new();
    let mut section: Option<&str> = None;
    loop {
        // Text before the first section is ignored, including a byte order mark.
        match section {
            Some(_) => lexer.skip(char::is_whitespace),
            None => lexer.skip(|c| !matches!(c, '[' | '#' | ';')),
        }
        let start = lexer.at;
        match (lexer.rest().chars().next(), section) {
            (None, _) => return Ok(options),
            (Some('['), _) => section = Some(lexer.section()?),
            (Some('#' | ';'), _) | (Some(_), None) => lexer.comment(),
            (Some(_), Some(_)) if options.len() == OPTIONS_MAX => {
                let what = Malformed::TooManyOptions;
                return Err(Fault { what, at: start });
            }
            (Some(_), Some(section)) => {
                let name = lexer.name()?.to_owned();
                options.push(UnitOption {
                    section: section.to_owned(),
                    name,
                    value: lexer.value(),
                });
            }
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip(&mut self, is_skipped: impl Fn(char) -> bool) {
        self.at = self.text.len() - self.rest().trim_start_matches(is_skipped).len();
    }

    /// The rest of the line, and whether the text ends with it.
    fn line(&mut self) -> (&'a str, bool) {
        let rest = self.rest();
        if let Some((line, _)) = rest.split_once('\n') {
            self.at += line.len() + 1;
            return (line, false);
        }
        self.at = self.text.len();
        (rest, true)
    }

    /// The name of the section that begins here. The rest of its line must be blank.
    fn section(&mut self) -> Result<&'a str, Fault> {
        let start = self.at + 1;
        let Some(length) = self.text[start..].find(']') else {
            let what = Malformed::OpenSection;
            return Err(Fault { what, at: self.at });
        };
        self.at = start + length + 1;
        let name = &self.text[start..start + length];
        let behind = self.at;
        let (line, _) = self.line();
        let garbage = line.trim();
        if garbage.is_empty() {
            return Ok(name);
        }
        let at = behind + line.len() - line.trim_start().len();
        let what = Malformed::Garbage(garbage.as_bytes().to_vec());
        Err(Fault { what, at })
    }

    /// A comment that ends in a backslash includes the next line.
    fn comment(&mut self) {
        loop {
            let (line, _) = self.line();
            let line = line.strip_suffix(' ').unwrap_or(line);
            if !line.ends_with('\\') {
                return;
            }
        }
    }

    fn name(&mut self) -> Result<&'a str, Fault> {
        let rest = self.rest();
        let Some(length) = rest.find(['=', '\n', '\r']) else {
            let (what, at) = (Malformed::EndInName, self.text.len());
            return Err(Fault { what, at });
        };
        let at = self.at + length;
        if !rest[length..].starts_with('=') {
            let what = Malformed::NewlineInName;
            return Err(Fault { what, at });
        }
        self.at = at + 1;
        Ok(rest[..length].trim())
    }

    /// Continued lines are not joined. A line that continues into a blank one keeps its backslash.
    fn value(&mut self) -> String {
        let mut value = String::new();
        loop {
            let (line, is_last) = self.line();
            if line.trim().is_empty() {
                break;
            }
            value.push_str(line);
            if !line.ends_with('\\') {
                break;
            }
            if !is_last {
                value.push('\n');
            }
        }
        let end = if value.ends_with('\n') { "\n" } else { "" };
        format!("{}{end}", value.trim())
    }
}
