//! `restart`: stops units, waits until they have stopped, and starts them again.

use std::process::ExitCode;

use anyhow::{Context as _, anyhow};
use hyperfleet_fleet_model::unit::DesiredState;
use hyperfleet_fleet_model::wire::UnitView;

use super::states::{self, WaitFailed, Waiting};
use super::{named_units, start};
use crate::cli::RestartArgs;
use crate::output;
use crate::session::Session;
use crate::wait::{Goal, Patience, wait_for};

pub(super) async fn run(session: &Session, args: &RestartArgs) -> anyhow::Result<ExitCode> {
    if args.names.units.is_empty() {
        named_units::none_given();
        return Ok(ExitCode::SUCCESS);
    }
    let client = session.client().await?;
    let units = named_units::find(client, &args.names.units).await?;
    if units.is_empty() {
        eprintln!("Units not found in registry");
        return Ok(ExitCode::SUCCESS);
    }
    let (global, ordinary): (Vec<_>, Vec<_>) = units.into_iter().partition(named_units::is_global);
    for unit in &global {
        let ordered = client.restart_unit(&unit.name).await;
        ordered.context(FAILED)?;
        output::line(&format!("Triggered global unit {} restart", unit.name))?;
    }
    let is_inactive = |unit: &UnitView| unit.current == Some(DesiredState::Inactive);
    let (inactive, active): (Vec<_>, Vec<_>) = ordinary.into_iter().partition(is_inactive);
    for unit in inactive {
        eprintln!("Unable to restart unit {} in state inactive", unit.name);
    }
    let patience = Patience::attempts(args.block_attempts);
    restart(session, &active, patience).await?;
    Ok(ExitCode::SUCCESS)
}

/// Restarts units. Whatever happens after the first order to stop, units are ordered to start again: none is left
/// stopped.
async fn restart(session: &Session, units: &[UnitView], patience: Patience) -> anyhow::Result<()> {
    let names: Vec<String> = units.iter().map(|unit| unit.name.clone()).collect();
    let stopped = tokio::select! {
        stopped = stop(session, units, &names, patience) => stopped,
        () = session.interrupted() => Err(anyhow!("interrupted: units start again without having stopped first")),
    };
    let client = session.client().await?;
    let mut started = Ok(());
    for name in &names {
        let result = client.set_desired(name, DesiredState::Launched).await;
        started = started.and(result);
    }
    stopped?;
    started.context(FAILED)?;
    start::settle(session, &names, "restart", Waiting::For(patience)).await
}

async fn stop(
    session: &Session,
    units: &[UnitView],
    names: &[String],
    patience: Patience,
) -> anyhow::Result<()> {
    let client = session.client().await?;
    let ordered = states::set(session, units, DesiredState::Loaded, "restart").await;
    ordered.context(FAILED)?;
    let stopped = wait_for(client, names, Goal::Stopped, patience, async |_, _| Ok(())).await;
    stopped.context(WaitFailed)
}

const FAILED: &str = "Error restarting units";
