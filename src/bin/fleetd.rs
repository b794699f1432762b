//! The daemon of fleet.

use std::process::ExitCode;

use hyperfleet::config::fleetd::Args;
use hyperfleet::startup;

fn main() -> ExitCode {
    // Dropped when everything else has ended, be it by a panic.
    let _log = startup::LogWritten;
    hyperfleet::kit::crypto::install();
    startup::conclude(startup::fleetd::run(Args::of_process()))
}
