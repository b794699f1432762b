//! How the program ends: why is told, and everything that was told is written.

use std::process::ExitCode;

use super::causes::chain;
use super::{program, telemetry};

/// The exit code where the command line or the settings are wrong: starting again will not help.
const MISUSE: u8 = 2;

/// What is wrong with how the program was started: with its settings, wherever they come from.
#[derive(Debug, thiserror::Error)]
#[error("the settings cannot be used")]
pub struct Misuse;

/// Waits, when it is dropped, until the log is written: for a second at most where nobody reads it.
#[derive(Debug)]
pub struct LogWritten;

impl Drop for LogWritten {
    fn drop(&mut self) {
        telemetry::flush();
    }
}

/// What the process ends with. An error is told in the log, or on standard error where there is none.
pub fn conclude(ended: anyhow::Result<ExitCode>) -> ExitCode {
    let error = match ended {
        Ok(code) => return code,
        Err(error) => error,
    };
    let text = chain(&*error);
    let is_told = telemetry::say_last(|| tracing::error!(error = text, "ended by an error"));
    if !is_told {
        program::print_to_stderr(&format!("{}: {text}", program::name()));
    }
    match error.downcast_ref() {
        Some(Misuse) => ExitCode::from(MISUSE),
        None => ExitCode::FAILURE,
    }
}

/// Ends the process without waiting for anything but the log's reader, and for that only while it
/// reads.
pub fn at_once() -> ! {
    telemetry::say_last(|| tracing::warn!("ended at once: told to a second time"));
    std::process::exit(1)
}
