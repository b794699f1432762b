//! `destroy`: deletes units, and waits until no machine reports them.

use std::process::ExitCode;

use super::named_units;
use super::states::{WaitFailed, Waiting};
use crate::cli::StopArgs;
use crate::output;
use crate::session::Session;
use crate::wait::{Goal, wait_for};
use anyhow::Context as _;

pub(super) async fn run(session: &Session, args: &StopArgs) -> anyhow::Result<ExitCode> {
    let Some(units) = named_units::find_any(session, &args.names.units).await? else {
        return Ok(ExitCode::SUCCESS);
    };
    let client = session.client().await?;
    let mut exit = ExitCode::SUCCESS;
    let mut destroyed = Vec::new();
    for unit in units {
        match client.destroy_unit(&unit.name).await {
            // Another client has destroyed it meanwhile.
            Ok(false) => {}
            Ok(true) => destroyed.push(unit.name),
            Err(error) => {
                output::notice(&format!("Error destroying units: {error}"));
                exit = ExitCode::FAILURE;
            }
        }
    }
    match Waiting::of(args.block) {
        Waiting::No => {
            for name in &destroyed {
                output::line(&format!("Destroyed {name}"))?;
            }
        }
        Waiting::For(patience) => {
            let tell = async |name: &str, _: &_| Ok(output::line(&format!("Destroyed {name}"))?);
            let gone = wait_for(client, &destroyed, Goal::Gone, patience, tell).await;
            gone.context(WaitFailed)?;
        }
    }
    Ok(exit)
}
