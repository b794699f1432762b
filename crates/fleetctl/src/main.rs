//! The program `fleetctl`.

use std::process::ExitCode;

fn main() -> ExitCode {
    hyperfleet_fleetctl::run()
}
