//! `restart`: stops units, waits until they have stopped, and starts them again.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use hyperfleet_fleet_model::unit::DesiredState;
use hyperfleet_fleet_model::wire::UnitView;
use tokio::time::{Instant, sleep};

use super::named_units::{self, Named};
use super::states::{self, WaitFailed, Waiting};
use crate::cli::RestartArgs;
use crate::client::{Client, Error};
use crate::output;
use crate::session::Session;
use crate::wait::{Goal, Patience, WaitError, wait_for};

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
    let (global, ordinary): (Vec<_>, Vec<_>) = units.into_iter().partition(named_units::is_global);
    for unit in &global {
        let ordered = client.restart_unit(&unit.name).await;
        let doing = || format!("unable to restart unit {}", unit.name);
        ordered.with_context(doing).context(FAILED)?;
        output::line(&format!("Triggered global unit {} restart", unit.name))?;
    }
    let is_inactive = |unit: &UnitView| unit.current == Some(DesiredState::Inactive);
    let (inactive, active): (Vec<_>, Vec<_>) = ordinary.into_iter().partition(is_inactive);
    for unit in inactive {
        output::notice(&format!(
            "Unable to restart unit {} in state inactive",
            unit.name
        ));
        exit = ExitCode::FAILURE;
    }
    let patience = Patience::attempts(args.block_attempts);
    let names = stop_and_start(session, &active, patience).await?;
    states::settle_running(session, &names, "restart", Waiting::For(patience)).await?;
    Ok(exit)
}

/// Stops units, waits until they have stopped, and orders them to start again. Whatever happens after the first
/// order to stop, stopped units are ordered to start again, and those that cannot be are named. Returns the
/// units to wait for.
pub(super) async fn stop_and_start(
    session: &Session,
    units: &[UnitView],
    patience: Patience,
) -> anyhow::Result<Vec<String>> {
    let mut stopped = StoppedUnits::default();
    let ended = tokio::select! {
        ended = stop(session, units, &mut stopped, patience) => ended,
        _ = session.interrupted() => Err(anyhow!("interrupted: units start again without having stopped first")),
    };
    let names = stopped.names.clone();
    let started = stopped.start(session.client().await?).await;
    ended?;
    started.context(FAILED)?;
    Ok(names)
}

async fn stop(
    session: &Session,
    units: &[UnitView],
    stopped: &mut StoppedUnits,
    patience: Patience,
) -> anyhow::Result<()> {
    let client = session.client().await?;
    for unit in units {
        // Before the order, because its response may be lost.
        stopped.names.push(unit.name.clone());
        let ordered = client.set_desired(&unit.name, DesiredState::Loaded).await;
        let doing = || format!("unable to stop unit {}", unit.name);
        ordered.with_context(doing).context(FAILED)?;
    }
    let names = &stopped.names;
    let ended = wait_for(client, names, Goal::Stopped, patience, async |_, _| Ok(())).await;
    if let Err(error) = &ended
        && let Some(WaitError::Reordered { unit, .. }) = error.downcast_ref()
    {
        // It keeps the other client's state.
        stopped.names.retain(|name| name != unit);
    }
    ended.context(WaitFailed)
}

/// Stopped units that must be started again. On drop the remaining ones are named.
#[derive(Debug, Default)]
struct StoppedUnits {
    names: Vec<String>,
}

impl StoppedUnits {
    /// Orders units to start. Temporary failures are retried for a while.
    async fn start(mut self, client: &Client) -> Result<(), Error> {
        let deadline = Instant::now() + RETRIES;
        loop {
            let (mut failures, mut index) = (Vec::new(), 0);
            while let Some(name) = self.names.get(index) {
                match client.set_desired(name, DesiredState::Launched).await {
                    Ok(()) => _ = self.names.remove(index),
                    Err(error) if is_destroyed(client, name, &error).await => {
                        self.names.remove(index);
                        failures.push(error);
                    }
                    Err(error) => {
                        failures.push(error);
                        index += 1;
                    }
                }
            }
            let may_succeed = Instant::now() < deadline && failures.iter().any(Error::is_passing);
            match failures.into_iter().next() {
                None => return Ok(()),
                Some(_) if may_succeed => sleep(RETRY).await,
                Some(first) => return Err(first),
            }
        }
    }
}

/// Whether an order failed because another client has destroyed the unit.
async fn is_destroyed(client: &Client, name: &str, error: &Error) -> bool {
    error.status().is_some() && !error.is_passing() && matches!(client.unit(name).await, Ok(None))
}

impl Drop for StoppedUnits {
    fn drop(&mut self) {
        for name in &self.names {
            output::notice(&format!(
                "Unit {name} is left loaded: run fleetctl start {name}"
            ));
        }
    }
}

const FAILED: &str = "Error restarting units";
/// How long the order to start is retried.
const RETRIES: Duration = Duration::from_secs(10);
/// Pause before a retry.
const RETRY: Duration = Duration::from_millis(500);
