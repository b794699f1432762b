//! Output of commands: tables, JSON, YAML and lines.

mod columns;
mod printable;
mod table;

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};

use serde::Serialize;
use tokio::task::spawn_blocking;

pub(crate) use columns::{Column, InvalidFields, chosen};
pub(crate) use printable::{PrintablePieces, printable, printable_lines};
pub(crate) use table::Table;

use crate::cli::Format;

/// Prints text to standard output.
///
/// # Errors
/// The pipe is closed.
pub(crate) fn print(text: &str) -> io::Result<()> {
    print_bytes(text.as_bytes())
}

/// Prints bytes to standard output.
///
/// # Errors
/// The pipe is closed.
pub(crate) fn print_bytes(bytes: &[u8]) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(bytes)?;
    output.flush()
}

/// Prints a line to standard output, without control characters.
///
/// # Errors
/// The pipe is closed.
pub(crate) fn line(text: &str) -> io::Result<()> {
    print(&format!("{}\n", printable_lines(text)))
}

/// Prints a message to standard error, without control characters. Without a reader it is lost.
pub(crate) fn notice(text: &str) {
    let _ = writeln!(io::stderr(), "{}", printable_lines(text));
}

/// A value as JSON or YAML; `None` for a table.
///
/// # Errors
/// None for plain data.
pub(crate) fn structured(format: Format, value: &impl Serialize) -> anyhow::Result<Option<String>> {
    Ok(match format {
        Format::Table => None,
        Format::Json => {
            let text = serde_json::to_string_pretty(value)?;
            Some(format!("{}\n", escaped_json(&text)))
        }
        Format::Yaml => Some(yaml_serde::to_string(value)?),
    })
}

/// JSON with its remaining control characters escaped.
fn escaped_json(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if ('\x7f'..='\u{9f}').contains(&c) {
            let _ = write!(text, "\\u{:04x}", u32::from(c));
        } else {
            text.push(c);
        }
    }
    text
}

/// A text, or `-` if there is none.
pub(crate) fn or_dash(text: &str) -> String {
    if text.is_empty() { "-" } else { text }.to_owned()
}

/// A number of things: `1 unit`, `2 units`.
pub(crate) fn counted(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// Colours of statuses, only on a terminal and without `NO_COLOR`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Colour {
    Green,
    Yellow,
    Red,
}

/// A text in colour, if standard output shows colours.
pub(crate) fn coloured(text: &str, colour: Colour) -> String {
    let is_refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if is_refused || !io::stdout().is_terminal() {
        return text.to_owned();
    }
    let code = match colour {
        Colour::Green => 32,
        Colour::Yellow => 33,
        Colour::Red => 31,
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}

/// Asks a question on the terminal; no without one. A signal ends the program while it waits for the answer.
///
/// # Errors
/// The terminal is gone.
pub(crate) async fn confirmed(question: &str) -> io::Result<bool> {
    if !io::stdin().is_terminal() {
        return Ok(false);
    }
    let mut errors = io::stderr();
    let _ = write!(errors, "{question} [y/N] ").and_then(|()| errors.flush());
    // The runtime's only thread has to watch for signals meanwhile.
    let answer = spawn_blocking(|| {
        let mut answer = String::new();
        io::stdin().read_line(&mut answer).map(|_| answer)
    });
    let answer = answer.await.map_err(io::Error::other)??;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structured_texts_have_no_control_characters() {
        let text = "a\x1b[2J\u{9b}\x7f";
        let json = structured(Format::Json, &text).unwrap().unwrap();
        assert_eq!(json, "\"a\\u001b[2J\\u009b\\u007f\"\n");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        let yaml = structured(Format::Yaml, &text).unwrap().unwrap();
        assert!(!yaml.trim_end().contains(char::is_control), "{yaml:?}");
    }
}
