//! The control-plane service.

use std::process::ExitCode;

use clap::Parser as _;
use hyperfleet::config::Args;
use hyperfleet::startup;

fn main() -> ExitCode {
    match startup::leave_out_postgres().and_then(|()| run()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("hyperfleet-api: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn run() -> anyhow::Result<ExitCode> {
    hyperfleet::crypto::install();
    startup::run(Args::parse()).await
}
