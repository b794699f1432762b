//! The command line of fleet.

use std::process::ExitCode;

fn main() -> ExitCode {
    hyperfleet_fleetctl::run()
}
