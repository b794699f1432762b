//! What commands print: tables, JSON, YAML and lines.

mod columns;
mod table;

use std::io::{self, IsTerminal as _, Write as _};

use serde::Serialize;
use tokio::task::spawn_blocking;

pub(crate) use columns::{Column, InvalidFields, chosen};
pub(crate) use table::Table;

use crate::cli::Format;

/// Prints text to standard output.
///
/// # Errors
/// The reader has closed the pipe.
pub(crate) fn print(text: &str) -> io::Result<()> {
    print_bytes(text.as_bytes())
}

/// Prints bytes to standard output.
///
/// # Errors
/// The reader has closed the pipe.
pub(crate) fn print_bytes(bytes: &[u8]) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(bytes)?;
    output.flush()
}

/// Prints a line to standard output.
///
/// # Errors
/// The reader has closed the pipe.
pub(crate) fn line(text: &str) -> io::Result<()> {
    print(&format!("{text}\n"))
}

/// A value as JSON or YAML; none for a table.
///
/// # Errors
/// None for plain data.
pub(crate) fn structured(format: Format, value: &impl Serialize) -> anyhow::Result<Option<String>> {
    Ok(match format {
        Format::Table => None,
        Format::Json => Some(format!("{}\n", serde_json::to_string_pretty(value)?)),
        Format::Yaml => Some(yaml_serde::to_string(value)?),
    })
}

/// A text, or `-` where there is none, as in every table.
pub(crate) fn or_dash(text: &str) -> String {
    if text.is_empty() { "-" } else { text }.to_owned()
}

/// A number of things: `1 unit`, `2 units`.
pub(crate) fn counted(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// Colours of statuses, on a terminal only and not with `NO_COLOR`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Colour {
    Green,
    Yellow,
    Red,
}

/// A text in colour, where standard output shows colours.
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
    // The runtime has one thread, which has to watch for signals meanwhile.
    let answer = spawn_blocking(|| {
        let mut answer = String::new();
        io::stdin().read_line(&mut answer).map(|_| answer)
    });
    let answer = answer.await.map_err(io::Error::other)??;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
