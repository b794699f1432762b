//! A file of `key = value` lines as a source of settings: INI without sections.
//!
//! ```text
//! # comment            ; comment
//! key = value          up to `#` or `;`, blanks around it dropped
//! key = "value"        as it is, also in single quotes
//! key =                empty
//! key = begin\         continues on the next line, without its leading blanks
//! ```

use std::collections::BTreeSet;
use std::path::Path;

use figment::value::Value;

use super::sources::Sources;
use crate::files;

/// Largest file, in bytes.
const BYTES_MAX: u64 = 1024 * 1024;

impl Sources {
    /// Adds an INI file. An unreadable file is an error, and so is a line that is not a setting.
    #[must_use]
    pub fn ini(mut self, path: &Path) -> Self {
        let name = path.display();
        let file = match files::read_text(path, BYTES_MAX) {
            Ok(text) => parse(&text),
            Err(error) => {
                let text = format!("cannot read {name}: {error}");
                self.errors.push((String::new(), text));
                return self;
            }
        };
        for number in file.odd {
            let text = format!("{name}:{number}: it is no `key = value`");
            self.errors.push((String::new(), text));
        }
        for (section, number) in file.sections {
            self.notes.push(format!(
                "{name}:{number}: settings in a section are ignored, here [{section}]"
            ));
        }
        let mut seen = BTreeSet::new();
        for Line { key, value, number } in file.lines {
            let origin = format!("{name}:{number}");
            if let Some(setting) = self.table.find(&key) {
                self.put(setting, Value::from(value), origin);
            } else {
                let advice = self.table.advice(&key);
                self.refuse(&key, &origin, &format!("there is no such setting{advice}"));
            }
            if !seen.insert(key.clone()) {
                let note = format!("{name}:{number}: {key} is repeated; the last one counts");
                self.notes.push(note);
            }
        }
        self
    }
}

/// A line `key = value`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    /// In lower case.
    key: String,
    value: String,
    /// First line, from 1.
    number: usize,
}

/// The content of a file.
#[derive(Debug, Default, PartialEq, Eq)]
struct File {
    lines: Vec<Line>,
    /// Sections with their lines. Their settings are ignored, as in the older fleetd.
    sections: Vec<(String, usize)>,
    /// Other lines. Messages do not repeat their text, which may be a password.
    odd: Vec<usize>,
}

/// Parses a file. Unreadable lines are returned by number.
fn parse(text: &str) -> File {
    let mut file = File::default();
    let mut lines = text.lines().enumerate();
    while let Some((index, first)) = lines.next() {
        let mut line = first.trim().to_owned();
        while line.ends_with('\\') {
            line.pop();
            let Some((_, next)) = lines.next() else { break };
            line.push_str(next.trim());
        }
        let number = index + 1;
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let section = line.strip_prefix('[').and_then(|l| l.strip_suffix(']'));
        if let Some(name) = section {
            file.sections.push((name.trim().to_owned(), number));
            continue;
        }
        match pair(&line) {
            None => file.odd.push(number),
            Some(_) if !file.sections.is_empty() => {}
            Some((key, value)) => file.lines.push(Line {
                key: key.to_lowercase(),
                value: value.to_owned(),
                number,
            }),
        }
    }
    file
}

fn pair(line: &str) -> Option<(&str, &str)> {
    let (key, rest) = line.split_once('=')?;
    let key = key.trim_end_matches([' ', '\t']);
    if key.is_empty() || key.contains([' ', '\t']) {
        return None;
    }
    let rest = rest.trim_start_matches([' ', '\t']);
    let value = quoted(rest, '"').or_else(|| quoted(rest, '\''));
    Some((key, value.unwrap_or_else(|| unquoted(rest))))
}

/// The text in quotes, if only a comment follows. The earlier reader also accepted a comment after the quotes,
/// but then includes the quotes, which is never intended.
fn quoted(text: &str, quote: char) -> Option<&str> {
    let (value, behind) = text.strip_prefix(quote)?.split_once(quote)?;
    let behind = behind.trim_start();
    (behind.is_empty() || behind.starts_with(['#', ';'])).then_some(value)
}

fn unquoted(text: &str) -> &str {
    text.split(['#', ';']).next().unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value(text: &str) -> Option<String> {
        let mut file = parse(text);
        (file.lines.len() == 1).then(|| file.lines.remove(0).value)
    }

    #[test]
    fn values_are_what_the_older_reader_took_them_for() {
        for (text, expected) in [
            ("a=b", "b"),
            ("  a \t= b c  ", "b c"),
            ("a=", ""),
            ("a= # nothing", ""),
            ("a=b # c", "b"),
            ("a=b;c", "b"),
            ("a=\"b # c\"", "b # c"),
            ("a='b \"c\" ; d'", "b \"c\" ; d"),
            ("a=\"\"", ""),
            ("a=\"b\" # c", "b"),
            ("a=\"b\" \"c\"", "\"b\" \"c\""),
            ("a=\"b", "\"b"),
            ("a=b=c", "b=c"),
            (
                "a=[\"http://x:1\", \"http://y:2\"]",
                "[\"http://x:1\", \"http://y:2\"]",
            ),
            (
                "a=[\"http://x:1\",\\\n   \"http://y:2\"]",
                "[\"http://x:1\",\"http://y:2\"]",
            ),
            ("a=b\\", "b"),
            ("a=b\r\n", "b"),
        ] {
            assert_eq!(value(text).as_deref(), Some(expected), "{text:?}");
        }
    }

    #[test]
    fn lines_that_are_no_settings_are_reported_by_number() {
        let file = parse("\n# c\nA=1\n \t\n; c\nno pair\nkey with blank = 1\n=1\n[ Agent ]\nb=2\n");
        let line = Line {
            key: "a".to_owned(),
            value: "1".to_owned(),
            number: 3,
        };
        let expected = File {
            lines: vec![line],
            sections: vec![("Agent".to_owned(), 9)],
            odd: vec![6, 7, 8],
        };
        assert_eq!(file, expected);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "([a-z =\\[\\]\"'#;\\\\\n\u{e9}]|\r\n){0,60}") {
            let file = parse(&text);
            prop_assert!(file.lines.len() + file.odd.len() <= text.lines().count());
        }
    }
}
