//! The program `hyperfleet-conformance`.

use std::process::ExitCode;

fn main() -> ExitCode {
    hyperfleet_conformance::main()
}
