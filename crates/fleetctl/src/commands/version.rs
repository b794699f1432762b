//! `version`

use std::process::ExitCode;

use serde_json::json;

use crate::cli::OutputArgs;
use crate::output;

pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(super) fn run(args: OutputArgs) -> anyhow::Result<ExitCode> {
    match output::structured(args.format, &json!({"version": VERSION}))? {
        Some(text) => output::print(&text)?,
        None => output::line(&format!("fleetctl version {VERSION}"))?,
    }
    Ok(ExitCode::SUCCESS)
}
