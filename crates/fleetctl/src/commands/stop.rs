//! `stop`: stops units; they stay loaded.

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use hyperfleet_fleet_model::unit::DesiredState;
use hyperfleet_fleet_model::wire::UnitView;

use super::named_units;
use super::states::{self, Waiting};
use crate::cli::StopArgs;
use crate::client::Client;
use crate::output;
use crate::session::Session;
use crate::wait::{Goal, is_busy};

pub(super) async fn run(session: &Session, args: &StopArgs) -> anyhow::Result<ExitCode> {
    let Some(units) = named_units::find_any(session, &args.names.units).await? else {
        return Ok(ExitCode::SUCCESS);
    };
    let client = session.client().await?;
    let loaded = DesiredState::Loaded;
    let (mut stopped, mut ordered) = (Vec::new(), Vec::new());
    for unit in units {
        let is_global = named_units::is_global(&unit);
        let is_inactive = unit.current == Some(DesiredState::Inactive);
        if is_inactive && !is_global {
            // Scripts rely on it that later units are not stopped then.
            output::notice(&format!(
                "Unable to stop unit {} in state inactive",
                unit.name
            ));
            return Ok(ExitCode::FAILURE);
        }
        let name = unit.name.clone();
        if unit.desired != loaded {
            ordered.extend(states::set(session, &[unit], &[], loaded, "stop").await?);
        } else if stop_running(client, &unit).await? {
            if is_global {
                output::line(&format!("Triggered global unit {name} stop"))?;
            } else {
                ordered.push(name.clone());
            }
        }
        if !is_global {
            stopped.push(name);
        }
    }
    let waiting = Waiting::of(args.block);
    states::settle(session, &ordered, Goal::Stopped, "stop", waiting).await?;
    states::report_success("stopped", &stopped, waiting);
    Ok(ExitCode::SUCCESS)
}

/// Stops a loaded unit that systemd runs for another one. Returns whether it runs.
async fn stop_running(client: &Client, unit: &UnitView) -> anyhow::Result<bool> {
    let name = &unit.name;
    if !client.states(name).await?.iter().any(is_busy) {
        return Ok(false);
    }
    match client.stop_unit(name).await {
        Err(error) if error.is_missing_route() => bail!(
            "systemd runs unit {name}, started by another unit, a timer or a socket, and this version of fleetd cannot stop it; fleetctl unload {name} does"
        ),
        ordered => ordered.with_context(|| format!("unable to stop unit {name}"))?,
    }
    Ok(true)
}
