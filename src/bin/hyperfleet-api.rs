//! The control-plane service.

use std::process::ExitCode;

use clap::Parser as _;
use hyperfleet::config::Args;

#[tokio::main]
async fn main() -> ExitCode {
    hyperfleet::crypto::install();
    match hyperfleet::startup::run(Args::parse()).await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("hyperfleet-api: {error:#}");
            ExitCode::FAILURE
        }
    }
}
