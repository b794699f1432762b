//! The command line of fleet: a client of the fleet API.
//!
//! ```text
//! main ─▶ cli ─▶ commands ─▶ source, wait, import ─▶ session ─▶ client, ssh
//!                    └─────▶ output
//! ```
#![deny(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "they panic when nobody reads them"
)]

mod cli;
mod client;
mod commands;
mod import;
mod machines;
mod output;
mod session;
mod signals;
mod source;
mod ssh;
mod wait;

use std::io::ErrorKind;
use std::process::ExitCode;

use tokio::runtime;

use session::Session;
use signals::{Ending, Signals};

/// Runs the command line of this process; returns the exit status.
pub fn run() -> ExitCode {
    let cli = cli::of_process();
    let command = match cli.command {
        _ if cli.global.version => return concluded(commands::print_version()),
        None => return concluded(commands::print_help()),
        Some(command) => command,
    };
    let runtime = match runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return concluded(Err(error.into())),
    };
    let session = Session::new(cli.global);
    let result = runtime.block_on(until_signalled(&session, commands::run(&session, command)));
    // Ends the tunnel.
    drop(session);
    // Standard input may be read still: the runtime must not wait for its end.
    runtime.shutdown_background();
    concluded(result)
}

/// Ends early at a signal, so that tunnels are closed. A command may handle one signal itself.
async fn until_signalled(
    session: &Session,
    command: impl Future<Output = anyhow::Result<ExitCode>>,
) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::new()?;
    tokio::pin!(command);
    loop {
        tokio::select! {
            result = &mut command => return result,
            ending = signals.next() => {
                if !session.leaves_signal_to_command() {
                    return Ok(ending.into());
                }
            }
        }
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
        return Ending::Pipe.into();
    }
    output::notice(&format!("{error:#}"));
    if let Some(client::Error::Unreachable { .. }) = error.downcast_ref() {
        output::notice(HINTS);
    }
    ExitCode::FAILURE
}

const HINTS: &str = "Possible issues:
- fleetd is not running on the host of the endpoint: see systemctl status fleetd
- the endpoint is wrong: see --endpoint and FLEETCTL_ENDPOINT
- the API is reached through ssh only: see --tunnel; fleetctl doctor tells more";
