//! How the agent stops: what was ordered, and the hand-over of its units to other machines, by a drain that ends with it.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::Leave;
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

pub(super) struct Leaving {
    /// Whether the agent must stop, and how.
    order: watch::Receiver<Option<Leave>>,
    hand_over: HandOver,
}

enum HandOver {
    NotBegun,
    /// Ends when the units were handed over.
    InProgress(JoinSet<Option<BriefDrain>>),
    /// With the drain, if this agent started one.
    Done(Option<BriefDrain>),
}

impl Leaving {
    pub(super) fn new(order: watch::Receiver<Option<Leave>>) -> Self {
        Self {
            order,
            hand_over: HandOver::NotBegun,
        }
    }

    pub(super) fn order(&self) -> Option<Leave> {
        *self.order.borrow()
    }

    /// Whether the units must stop now.
    pub(super) fn is_due(&self) -> bool {
        match self.order() {
            None | Some(Leave::Running) => false,
            Some(Leave::Stopped) => true,
            Some(Leave::Moved) => matches!(self.hand_over, HandOver::Done(_)),
        }
    }

    /// Waits for an order, or for the end of the hand-over.
    pub(super) async fn changed(&mut self) {
        let handed_over = async {
            match &mut self.hand_over {
                HandOver::InProgress(task) => task.join_next().await.and_then(Result::ok).flatten(),
                HandOver::NotBegun | HandOver::Done(_) => pending().await,
            }
        };
        tokio::select! {
            biased;
            Ok(()) = self.order.changed() => {}
            drain = handed_over => self.hand_over = HandOver::Done(drain),
        }
    }

    /// Starts to hand these units over, if the agent must stop that way.
    pub(super) fn hand_over_if_ordered<S: KeyStore>(
        &mut self,
        (registry, mirror): (&Registry<S>, &Arc<Mirror>),
        machine: &str,
        units: impl FnOnce() -> Vec<String>,
    ) {
        if self.order() == Some(Leave::Moved) && matches!(self.hand_over, HandOver::NotBegun) {
            let handing_over = hand_over(
                registry.clone(),
                Arc::clone(mirror),
                machine.to_owned(),
                units(),
            );
            self.hand_over = HandOver::InProgress(JoinSet::from_iter([handing_over]));
        }
    }

    /// Ends the drain of the hand-over, which would expire otherwise.
    pub(super) async fn end_drain<S: KeyStore>(&self, registry: &Registry<S>, machine: &str) {
        if let HandOver::Done(Some(drain)) = &self.hand_over
            && let Err(error) = registry.end_brief_drain(machine, drain).await
        {
            let error = chain(&error);
            tracing::warn!(error, "ending the drain failed: it will expire");
        }
    }
}

/// Waits until these units run elsewhere or cannot run anywhere else. Returns the drain that it started; `None`
/// if the machine is already drained.
async fn hand_over<S: KeyStore>(
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
