//! The control-plane service.

use std::process::ExitCode;

use clap::Parser as _;
use hyperfleet::config::Args;

fn main() -> ExitCode {
    hyperfleet::crypto::install();
    match hyperfleet::startup::run(Args::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("hyperfleet-api: {error:#}");
            ExitCode::FAILURE
        }
    }
}
