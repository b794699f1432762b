//! Moves the units of a machine to others before its agent stops, by a drain that ends with it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::keys::{KeyStore, Revision};
use crate::mirror::Mirror;
use crate::registry::{BriefDrain, Registry, Snapshot, UnitState};
use hyperfleet_fleet_model::schedule::{Cluster, Explanation};
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
    mirror: Arc<Mirror>,
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
    let after = drain.as_ref().map_or(0, |drain| drain.revision);
    let moved = wait_until_moved(&mirror, after, &machine, units);
    if timeout(TIME_MAX, moved).await.is_err() {
        tracing::warn!("units not handed over in time: stopping the rest");
    }
    drain
}

/// Waits until the mirror, which has reached a revision, says so of all units.
async fn wait_until_moved(
    mirror: &Arc<Mirror>,
    after: Revision,
    machine: &str,
    mut units: Vec<String>,
) {
    while !units.is_empty() {
        // While etcd is away the answer is unknown.
        mirror.wait_for_revision(after).await;
        if let Ok(cluster) = mirror.cluster().await {
            mirror.read(|picture| {
                units.retain(|unit| !has_moved(&picture.snapshot, &cluster, machine, unit));
            });
        }
        sleep(PAUSE).await;
    }
}

/// Whether a unit has reached its desired state on another machine, must not run, or fits no other machine.
fn has_moved(snapshot: &Snapshot, cluster: &Cluster, machine: &str, unit: &str) -> bool {
    let Some((found, state)) = snapshot.unit(unit) else {
        return !snapshot.is_unreadable(unit);
    };
    let desired = found.desired.value.state;
    if !desired.is_active() {
        return true;
    }
    if let Some(placement) = &found.placement
        && placement.value.machine != machine
    {
        let is_launched = |state: &UnitState| state.launched || desired == DesiredState::Loaded;
        return state.is_some_and(|state| is_launched(&state.value));
    }
    // Otherwise it is about to move, or waits for a machine, or for this machine to stop it.
    matches!(
        cluster.explain(unit),
        Some(Explanation::Refused(_) | Explanation::Tied(_))
    )
}
