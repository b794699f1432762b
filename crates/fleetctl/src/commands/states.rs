//! Sets desired states, and waits for units.

use anyhow::{Context as _, bail};
use hyperfleet_fleet_model::unit::DesiredState;
use hyperfleet_fleet_model::wire::UnitView;

use super::named_units;
use crate::cli::BlockArgs;
use crate::machines::{Detail, Machines};
use crate::output;
use crate::session::Session;
use crate::wait::{Goal, Observation, Patience, WaitError, wait_for};

/// Whether a command waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waiting {
    No,
    For(Patience),
}

impl Waiting {
    pub(super) fn of(block: BlockArgs) -> Self {
        if block.no_block {
            Self::No
        } else {
            Self::For(Patience::attempts(block.block_attempts))
        }
    }
}

/// Sets the desired state of units that have another one. Returns those to wait for, including `stored` ones, which
/// were stored with it: global units are on many machines, and are not waited for.
pub(super) async fn set(
    session: &Session,
    units: &[UnitView],
    stored: &[String],
    state: DesiredState,
    verb: &str,
) -> anyhow::Result<Vec<String>> {
    let client = session.client().await?;
    let mut changed = Vec::new();
    for unit in units {
        if unit.desired != state {
            let ordered = client.set_desired(&unit.name, state).await;
            ordered.with_context(|| format!("unable to {verb} unit {}", unit.name))?;
        } else if !stored.contains(&unit.name) {
            continue;
        }
        if named_units::is_global(unit) {
            output::line(&format!("Triggered global unit {} {verb}", unit.name))?;
        } else {
            changed.push(unit.name.clone());
        }
    }
    Ok(changed)
}

/// Waits for units that were set, and prints the result of each; without waiting, prints that they were
/// triggered.
pub(super) async fn settle(
    session: &Session,
    units: &[String],
    goal: Goal,
    verb: &str,
    waiting: Waiting,
) -> anyhow::Result<()> {
    match waiting {
        Waiting::For(patience) => match wait(session, units, goal, patience).await {
            Err(error) if error.is::<WaitError>() => {
                output::notice(&format!("{error:#}"));
                bail!("Error waiting for unit states, exit status: 1");
            }
            waited => waited,
        },
        Waiting::No => {
            for unit in units {
                output::line(&format!("Triggered unit {unit} {verb}"))?;
            }
            Ok(())
        }
    }
}

/// Waits for units, and prints the state and machine of each that has reached the goal.
pub(super) async fn wait(
    session: &Session,
    units: &[String],
    goal: Goal,
    patience: Patience,
) -> anyhow::Result<()> {
    let client = session.client().await?;
    let mut machines = Machines::default();
    let reached = async |name: &str, seen: &Observation| {
        let Some(unit) = &seen.unit else {
            return Ok(());
        };
        let state = unit.current.unwrap_or(unit.desired);
        let Some(machine) = &unit.machine else {
            return Ok(output::line(&format!("Unit {name} {state}"))?);
        };
        if machines.get(machine).is_none() {
            machines = session.machines().await?;
        }
        let legend = machines.legend(machine, Detail::Short);
        Ok(output::line(&format!("Unit {name} {state} on {legend}"))?)
    };
    let waited = wait_for(client, units, goal, patience, reached).await;
    waited.context(WaitFailed)
}

/// Reports units that have reached their goal. Without waiting it is unknown whether they have.
pub(super) fn report_success(done: &str, units: &[String], waiting: Waiting) {
    if waiting != Waiting::No && !units.is_empty() {
        let units = units.join(" ");
        output::notice(&format!("Successfully {done} units [{units}]."));
    }
}

/// A failed wait. Scripts rely on these words.
#[derive(Debug, thiserror::Error)]
#[error("Error waiting for units")]
pub(super) struct WaitFailed;

/// Waits until agents have started the units, and then until systemd runs them.
pub(super) async fn settle_running(
    session: &Session,
    units: &[String],
    verb: &str,
    waiting: Waiting,
) -> anyhow::Result<()> {
    let launched = Goal::State(DesiredState::Launched);
    settle(session, units, launched, verb, waiting).await?;
    if let Waiting::For(patience) = waiting {
        let client = session.client().await?;
        let running = wait_for(client, units, Goal::Active, patience, async |_, _| Ok(())).await;
        running.context("Error waiting for systemd unit states, err")?;
    }
    Ok(())
}
