//! The program that plays the rules of the HyperFleet API against a server.

use std::process::ExitCode;

fn main() -> ExitCode {
    hyperfleet_conformance::main()
}
