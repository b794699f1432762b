//! Moves the units of a machine to others before its agent stops, by a drain that ends with it.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::keys::KeyStore;
use crate::registry::{BriefDrain, Error, Registry, UnitState};
use hyperfleet_fleet_model::unit::DesiredState;
use hyperfleet_server_kit::causes::chain;

/// Units that are still here after this time are stopped.
const TIME_MAX: Duration = Duration::from_mins(1);
/// Lifetime of the drain if the process dies before it has ended it.
const DRAIN_SECONDS: u32 = 120;
const PAUSE: Duration = Duration::from_millis(500);

/// Waits until these units run elsewhere or cannot run anywhere else. Returns the drain that it started; `None`
/// if the machine is already drained.
pub(super) async fn hand_over<S: KeyStore>(
    registry: Registry<S>,
    machine: String,
    units: Vec<String>,
) -> Option<BriefDrain> {
    let drain = match registry.drain_briefly(&machine, DRAIN_SECONDS).await {
        Ok(drain) => drain,
        Err(error) => {
            let error = chain(&error);
            tracing::warn!(error, "units cannot be handed over: stopping them");
            return None;
        }
    };
    tracing::info!(units = units.len(), "handing units over");
    if timeout(TIME_MAX, wait_until_moved(&registry, &machine, units))
        .await
        .is_err()
    {
        tracing::warn!("units not handed over in time: stopping the rest");
    }
    drain
}

async fn wait_until_moved<S: KeyStore>(
    registry: &Registry<S>,
    machine: &str,
    mut units: Vec<String>,
) {
    while !units.is_empty() {
        let mut left = Vec::new();
        for unit in units {
            // While etcd is away the answer is unknown.
            if !has_moved(registry, machine, &unit).await.unwrap_or(false) {
                left.push(unit);
            }
        }
        units = left;
        sleep(PAUSE).await;
    }
}

/// Whether a unit has reached its desired state on another machine, must not run, or fits no other machine.
async fn has_moved<S: KeyStore>(
    registry: &Registry<S>,
    machine: &str,
    unit: &str,
) -> Result<bool, Error> {
    let Some(found) = registry.find_unit(unit).await? else {
        return Ok(true);
    };
    let desired = &found.desired.value;
    if !desired.state.is_active() {
        return Ok(true);
    }
    if let Some(placement) = &found.placement
        && placement.value.machine != machine
    {
        let state = registry.find_state(unit, &placement.value.machine).await?;
        let is_launched =
            |state: &UnitState| state.launched || desired.state == DesiredState::Loaded;
        return Ok(state.is_some_and(|state| is_launched(&state.value)));
    }
    // A unit that is placed nowhere may only be waiting for this machine to stop it.
    let why = registry.find_why(unit).await?.map(|why| why.value);
    let why = why.filter(|why| why.generation == desired.generation);
    Ok(why.is_some_and(|why| found.placement.is_some() || !why.refusals.is_empty()))
}
