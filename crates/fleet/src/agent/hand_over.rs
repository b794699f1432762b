//! The units of a machine go to others before its agent ends, as by a drain that ends with it.

use std::time::Duration;

use tokio::time::sleep;

use crate::keys::KeyStore;
use crate::registry::{Error, Registry};
use hyperfleet_server_kit::causes::chain;

/// How long that may take; what has not gone by then is stopped.
pub(super) const TIME_MAX: Duration = Duration::from_mins(1);
/// The drain runs out by itself if the process ends before it has taken it back.
const DRAIN_SECONDS: u32 = 120;
const PAUSE: Duration = Duration::from_millis(500);

/// Waits until these units run elsewhere, or are known to have nowhere to go. Gives whether the drain is ours to end.
pub(super) async fn hand_over<S: KeyStore>(
    registry: Registry<S>,
    machine: String,
    mut units: Vec<String>,
) -> bool {
    let is_ours = match registry.drain_briefly(&machine, DRAIN_SECONDS).await {
        Ok(is_ours) => is_ours,
        Err(error) => {
            let error = chain(&error);
            tracing::warn!(error, "units cannot be handed over; they are stopped");
            return false;
        }
    };
    tracing::info!(units = units.len(), "units are handed over");
    while !units.is_empty() {
        let mut left = Vec::new();
        for unit in units {
            // While etcd is away nothing is known of it.
            if !has_gone(&registry, &machine, &unit).await.unwrap_or(false) {
                left.push(unit);
            }
        }
        units = left;
        sleep(PAUSE).await;
    }
    is_ours
}

/// Whether a unit is launched on another machine, or is not to be, or no machine can run it.
async fn has_gone<S: KeyStore>(
    registry: &Registry<S>,
    machine: &str,
    unit: &str,
) -> Result<bool, Error> {
    let Some(found) = registry.find_unit(unit).await? else {
        return Ok(true);
    };
    let want = &found.want.value;
    match &found.place {
        Some(place) if place.value.machine != machine => {
            let state = registry.find_state(unit, &place.value.machine).await?;
            Ok(state.is_some_and(|state| state.value.launched) || !want.state.is_active())
        }
        _ if !want.state.is_active() => Ok(true),
        _ => {
            let why = registry.find_why(unit).await?;
            Ok(why.is_some_and(|why| why.value.generation == want.generation))
        }
    }
}
