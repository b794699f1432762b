//! Runs the control-plane service.

use std::process::ExitCode;

use hyperfleet::config::Args;
use hyperfleet::startup;
use hyperfleet_fleet_adapter::command::with_command_of_name;

fn main() -> ExitCode {
    // Dropped when everything else has ended, even by a panic.
    let _log = startup::LogWritten;
    hyperfleet_server_kit::crypto::install();
    let arguments = with_command_of_name(std::env::args_os());
    startup::conclude(startup::run(Args::read(arguments)))
}
