//! The command line of fleet: a client of the fleet API.
//!
//! ```text
//! main ─▶ cli ─▶ commands ─▶ source, wait, import ─▶ session ─▶ client, ssh
//!                    └─────▶ output
//! ```

mod cli;
mod client;
mod commands;
mod import;
mod machines;
mod output;
mod session;
mod source;
mod ssh;
mod wait;

use std::io::ErrorKind;
use std::process::ExitCode;

use tokio::runtime;
use tokio::signal::unix::{SignalKind, signal};

/// A program that a signal ends has this and the number of the signal as its status.
const SIGNALLED: u8 = 128;
const SIGINT: u8 = 2;
const SIGPIPE: u8 = 13;
const SIGTERM: u8 = 15;

/// Runs the command line of this process; gives the status to end with.
pub fn run() -> ExitCode {
    let cli = cli::of_process();
    if cli.global.version {
        return concluded(commands::print_version());
    }
    let runtime = match runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return concluded(Err(error.into())),
    };
    let result = runtime.block_on(until_signalled(commands::run(cli)));
    // Standard input may be read still: the runtime must not wait for its end.
    runtime.shutdown_background();
    concluded(result)
}

/// Ends early at SIGINT and SIGTERM, so that tunnels are closed.
async fn until_signalled(
    command: impl Future<Output = anyhow::Result<ExitCode>>,
) -> anyhow::Result<ExitCode> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        // A command may handle the signal itself.
        biased;
        result = command => result,
        _ = interrupt.recv() => Ok(ExitCode::from(SIGNALLED + SIGINT)),
        _ = terminate.recv() => Ok(ExitCode::from(SIGNALLED + SIGTERM)),
    }
}

/// Prints why a command failed.
fn concluded(result: anyhow::Result<ExitCode>) -> ExitCode {
    let error = match result {
        Ok(code) => return code,
        Err(error) => error,
    };
    let is_unread = |cause: &(dyn std::error::Error + 'static)| {
        let cause = cause.downcast_ref::<std::io::Error>();
        cause.is_some_and(|cause| cause.kind() == ErrorKind::BrokenPipe)
    };
    if error.chain().any(is_unread) {
        return ExitCode::from(SIGNALLED + SIGPIPE);
    }
    eprintln!("{error:#}");
    if let Some(client::Error::Unreachable { .. }) = error.downcast_ref() {
        eprintln!("{HINTS}");
    }
    ExitCode::FAILURE
}

const HINTS: &str = "Possible issues:
- fleetd is not running on the host of the endpoint: see systemctl status fleetd
- the endpoint is wrong: see --endpoint and FLEETCTL_ENDPOINT
- the API is reached through ssh only: see --tunnel; fleetctl doctor tells more";
