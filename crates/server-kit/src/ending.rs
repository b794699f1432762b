//! The end of the program: the reason is logged, and the log is written completely.

use std::process::ExitCode;

use super::causes::chain;
use super::{program, telemetry};

/// Exit code for a wrong command line or wrong settings: a restart does not help.
const MISUSE: u8 = 2;

/// Marks an error of the command line or the settings.
#[derive(Debug, thiserror::Error)]
#[error("the settings cannot be used")]
pub struct Misuse;

/// On drop it waits until the log is written, for a second at most without a reader.
#[derive(Debug)]
pub struct LogWritten;

impl Drop for LogWritten {
    fn drop(&mut self) {
        telemetry::flush();
    }
}

/// The exit code of the process. An error is logged, or printed to standard error without a log.
pub fn conclude(ended: anyhow::Result<ExitCode>) -> ExitCode {
    let error = match ended {
        Ok(code) => return code,
        Err(error) => error,
    };
    let text = chain(&*error);
    let is_logged = telemetry::log_last(|| tracing::error!(error = text, "ended by an error"));
    if !is_logged {
        program::print_to_stderr(&format!("{}: {text}", program::name()));
    }
    match error.downcast_ref() {
        Some(Misuse) => ExitCode::from(MISUSE),
        None => ExitCode::FAILURE,
    }
}

/// Ends the process immediately, after writing the log while it has a reader.
pub fn at_once() -> ! {
    telemetry::log_last(|| tracing::warn!("stopped immediately: second signal"));
    std::process::exit(1)
}
