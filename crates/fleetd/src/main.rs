//! The program `fleetd`.

use std::process::ExitCode;

use hyperfleet_fleetd::settings::Args;
use hyperfleet_server_kit::{crypto, ending};

fn main() -> ExitCode {
    // Dropped last, also after a panic.
    let _log = ending::LogWritten;
    crypto::install();
    ending::conclude(hyperfleet_fleetd::run(Args::of_process()))
}
