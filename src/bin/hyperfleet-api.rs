//! The control-plane service.

use std::process::ExitCode;

use clap::Parser as _;
use hyperfleet::config::Args;
use hyperfleet::startup;

fn main() -> ExitCode {
    // Dropped when everything else has ended, be it by a panic.
    let _log = startup::LogWritten;
    hyperfleet_server_kit::crypto::install();
    startup::conclude(startup::run(Args::parse()))
}
