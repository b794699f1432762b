//! `restart`: requests a restart from the machines of units, and waits until they run again.

use std::process::ExitCode;

use anyhow::Context as _;
use hyperfleet_fleet_model::unit::DesiredState;

use super::named_units::{self, Named};
use super::states::{self, Waiting};
use crate::cli::RestartArgs;
use crate::output;
use crate::session::Session;
use crate::wait::Patience;

pub(super) async fn run(session: &Session, args: &RestartArgs) -> anyhow::Result<ExitCode> {
    let (units, mut exit) = match named_units::find_named(session, &args.names.units).await? {
        Named::None => return Ok(ExitCode::SUCCESS),
        Named::Units {
            found,
            some_missing: false,
        } => (found, ExitCode::SUCCESS),
        Named::Units { found, .. } => (found, ExitCode::FAILURE),
    };
    let client = session.client().await?;
    let mut names = Vec::new();
    for unit in units {
        let (name, is_global) = (&unit.name, named_units::is_global(&unit));
        if !is_global && unit.current == Some(DesiredState::Inactive) {
            output::notice(&format!("Unable to restart unit {name} in state inactive"));
            exit = ExitCode::FAILURE;
            continue;
        }
        let ordered = if is_global || unit.desired == DesiredState::Launched {
            client.restart_unit(name).await
        } else {
            // A loaded unit has nothing to restart.
            client.set_desired(name, DesiredState::Launched).await
        };
        let doing = || format!("unable to restart unit {name}");
        ordered
            .with_context(doing)
            .context("Error restarting units")?;
        if is_global {
            output::line(&format!("Triggered global unit {name} restart"))?;
        } else {
            names.push(unit.name);
        }
    }
    let waiting = Waiting::For(Patience::attempts(args.block_attempts));
    states::settle_running(session, &names, "restart", waiting).await?;
    Ok(exit)
}
