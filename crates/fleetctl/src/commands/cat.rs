//! `cat`: prints the file of a unit.

use std::process::ExitCode;

use anyhow::{Context as _, bail};

use crate::cli::CatArgs;
use crate::output;
use crate::session::Session;
use crate::source::{UnitArgument, stored_options};

pub(super) async fn run(session: &Session, args: &CatArgs) -> anyhow::Result<ExitCode> {
    let [argument] = &args.names.units[..] else {
        bail!("One unit file must be provided");
    };
    let name = UnitArgument::new(argument).name;
    let found = session.client().await?.unit(&name).await;
    let found = found.with_context(|| format!("Error retrieving Unit {name}"))?;
    let Some(unit) = found else {
        bail!("Unit {name} not found");
    };
    match output::structured(args.output.format, &unit)? {
        Some(text) => output::print(&text)?,
        None => output::print(&stored_options(&unit)?.text())?,
    }
    Ok(ExitCode::SUCCESS)
}
