//! Waits until units reach a command's goal: rules as plain functions (`goal`), and a polling loop.

mod goal;
mod progress;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use hyperfleet_fleet_model::unit::DesiredState;
use tokio::time::{Instant, sleep};

use crate::client::{Client, Error};
use crate::machines::{Detail, id_legend};
use goal::{Decision, Order, Settling, judge};

pub(crate) use goal::{Goal, Observation, is_busy};
pub(crate) use progress::Progress;

/// One of `--block-attempts`.
const ATTEMPT: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(250);
/// How often the server is asked why units have not reached the goal.
const REASON_POLL: Duration = Duration::from_secs(1);
/// A unit that is blocked for this long stays so: agents have tried it three times by then.
const BLOCKED: Duration = Duration::from_secs(5);
/// Parallel requests.
const CALLS_MAX: usize = 16;
/// Most units whose reason is requested.
const REASONS_MAX: usize = 10;
/// How long the server may fail before a command gives up.
const OUTAGE_MAX: Duration = Duration::from_secs(30);

/// How long to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Patience {
    attempts: u32,
}

impl Patience {
    /// This many attempts; 0 waits until the goal is reached, or the server knows why it cannot be.
    pub(crate) fn attempts(attempts: u32) -> Self {
        Self { attempts }
    }

    fn limit(self) -> Option<Duration> {
        (self.attempts > 0).then(|| ATTEMPT * self.attempts)
    }
}

/// Why a wait ended before its goal.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WaitError {
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\nError waiting for units: "))]
    Unreached(Vec<Unreached>),
    #[error("unit {unit} has failed: systemd reports {active}/{sub}; see fleetctl status {unit}")]
    Failed {
        unit: String,
        active: String,
        sub: String,
    },
    #[error(
        "systemd runs unit {unit} again: another unit, a timer or a socket starts it; stop that first, or run fleetctl unload {unit}"
    )]
    Running { unit: String },
    #[error("unit {unit} was destroyed meanwhile")]
    Destroyed { unit: String },
    #[error(
        "another client has set the desired state of unit {unit} to {desired}; see fleetctl explain {unit}"
    )]
    Reordered { unit: String, desired: DesiredState },
    #[error("another client has created unit {unit} again; see fleetctl cat {unit}")]
    Created { unit: String },
}

/// A unit that has not reached the goal.
#[derive(Debug)]
pub(crate) struct Unreached {
    unit: String,
    goal: Goal,
    /// Whether it cannot reach the goal until something else changes. Otherwise it was not in time.
    is_blocked: bool,
    /// The server's explanation; may be empty.
    reason: String,
}

impl fmt::Display for Unreached {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            unit, goal, reason, ..
        } = self;
        let goal = goal.words();
        if self.is_blocked {
            return write!(
                formatter,
                "unit {unit} does not {goal}: {reason}; its desired state stays, and is reached when that changes"
            );
        }
        write!(formatter, "timed out waiting for unit {unit} to {goal}")?;
        if reason.is_empty() {
            return Ok(());
        }
        write!(formatter, ": {reason}")
    }
}

/// Waits for units, and passes each that reaches the goal to `tell`. Ends at once when a unit has failed, and
/// without a limit also when one is blocked.
///
/// # Errors
/// A unit that failed, or those that were not in time; others may be on their way.
pub(crate) async fn wait_for(
    client: &Client,
    units: &[String],
    goal: Goal,
    patience: Patience,
    mut reached: impl AsyncFnMut(&str, &Observation) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let deadline = patience.limit().map(|limit| Instant::now() + limit);
    let units = units.iter().map(|unit| (unit.clone(), Settling::default()));
    let mut wait = Wait {
        client,
        goal,
        units: units.collect(),
        blocked: BTreeMap::new(),
        reasons_at: Instant::now() + REASON_POLL,
        progress: Progress::new(),
        outage: Outage::default(),
    };
    loop {
        wait.poll(&mut reached).await?;
        if wait.units.is_empty() {
            return Ok(());
        }
        match deadline {
            Some(deadline) if Instant::now() >= deadline => {
                return Err(wait.timed_out().await.into());
            }
            Some(_) => {}
            None => wait.end_if_blocked().await?,
        }
        wait.show_progress().await;
        sleep(POLL).await;
    }
}

/// A wait in progress.
struct Wait<'c> {
    client: &'c Client,
    goal: Goal,
    /// Units that have not reached the goal.
    units: BTreeMap<String, Settling>,
    /// Since when units are blocked.
    blocked: BTreeMap<String, Instant>,
    /// When the server is asked for reasons next.
    reasons_at: Instant,
    progress: Progress,
    outage: Outage,
}

impl Wait<'_> {
    /// Asks about each unit once.
    async fn poll(
        &mut self,
        reached: &mut impl AsyncFnMut(&str, &Observation) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let (client, goal) = (self.client, self.goal);
        let names: Vec<String> = self.units.keys().cloned().collect();
        let calls = stream::iter(names).map(async |name| {
            let seen = observe(client, goal, &name).await;
            (name, seen)
        });
        let mut calls = calls.buffered(CALLS_MAX);
        while let Some((unit, seen)) = calls.next().await {
            let Some(seen) = self.outage.passed_over(seen)? else {
                continue;
            };
            let settling = self.units.entry(unit.clone()).or_default();
            match settling.decide(judge(goal, &seen), Instant::now()) {
                Decision::Wait => {}
                Decision::Reached => {
                    self.units.remove(&unit);
                    self.progress.clear();
                    reached(&unit, &seen).await?;
                }
                Decision::Failed { active, sub } => {
                    return Err(WaitError::Failed { unit, active, sub }.into());
                }
                Decision::Running => return Err(WaitError::Running { unit }.into()),
                Decision::Destroyed => return Err(WaitError::Destroyed { unit }.into()),
                Decision::Overruled(Order::State(desired)) => {
                    return Err(WaitError::Reordered { unit, desired }.into());
                }
                Decision::Overruled(Order::Create) => {
                    return Err(WaitError::Created { unit }.into());
                }
            }
        }
        Ok(())
    }

    async fn timed_out(&mut self) -> WaitError {
        self.progress.clear();
        let mut late = Vec::new();
        for (index, unit) in self.units.keys().enumerate() {
            let reason = if index < REASONS_MAX {
                reason(self.client, self.goal, unit).await
            } else {
                String::new()
            };
            late.push(Unreached {
                unit: unit.clone(),
                goal: self.goal,
                is_blocked: false,
                reason,
            });
        }
        WaitError::Unreached(late)
    }

    /// Ends the wait when units are blocked, and have been for a while.
    async fn end_if_blocked(&mut self) -> Result<(), WaitError> {
        let now = Instant::now();
        if now < self.reasons_at {
            return Ok(());
        }
        self.reasons_at = now + REASON_POLL;
        let (client, goal, names) = (self.client, self.goal, self.units.keys().cloned());
        let calls = stream::iter(names.collect::<Vec<_>>()).map(async |name| {
            let found = blocked_by(client, goal, &name).await;
            (name, found)
        });
        let explanations: Vec<_> = calls.buffered(CALLS_MAX).collect().await;
        let mut stuck = Vec::new();
        for (unit, found) in explanations {
            match found {
                Ok(Some(reason)) => {
                    let since = *self.blocked.entry(unit.clone()).or_insert(now);
                    if now - since >= BLOCKED {
                        stuck.push(Unreached {
                            unit,
                            goal: self.goal,
                            is_blocked: true,
                            reason,
                        });
                    }
                }
                // The poll sees an outage of the server.
                Err(error) if error.is_passing() => {}
                _ => _ = self.blocked.remove(&unit),
            }
        }
        if stuck.is_empty() {
            return Ok(());
        }
        self.progress.clear();
        Err(WaitError::Unreached(stuck))
    }

    async fn show_progress(&mut self) {
        let Some(first) = self.units.keys().next().filter(|_| self.progress.is_due()) else {
            return;
        };
        let more = match self.units.len() {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        let reason = reason(self.client, self.goal, first).await;
        self.progress
            .say(&format!("waiting for {first}{more}: {reason}"));
    }
}

/// Why a unit cannot reach a goal until something else changes, if that is so.
async fn blocked_by(client: &Client, goal: Goal, unit: &str) -> Result<Option<String>, Error> {
    if let Goal::Unloaded | Goal::Gone = goal {
        return not_left(client, unit).await;
    }
    let explanation = client.explanation(unit).await?;
    let blocked = explanation.filter(|explanation| explanation.blocked);
    Ok(blocked.map(|explanation| explanation.reason))
}

/// Why a machine has not unloaded a unit. There is no explanation of a unit that was destroyed.
async fn not_left(client: &Client, unit: &str) -> Result<Option<String>, Error> {
    let states = client.states(unit).await?;
    let failed = states.into_iter().find(|state| !state.error.is_empty());
    Ok(failed.map(|state| {
        let machine = id_legend(&state.machine, Detail::Short);
        format!("still on {machine}: {}", state.error)
    }))
}

/// Why a unit has not reached a goal; may be empty.
async fn reason(client: &Client, goal: Goal, unit: &str) -> String {
    if let Goal::Unloaded | Goal::Gone = goal
        && let Ok(Some(reason)) = not_left(client, unit).await
    {
        return reason;
    }
    let explanation = client.explanation(unit).await.ok().flatten();
    explanation
        .map(|explanation| explanation.reason)
        .unwrap_or_default()
}

/// Reads a unit, and the reports that the goal needs.
async fn observe(client: &Client, goal: Goal, name: &str) -> Result<Observation, Error> {
    let unit = client.unit(name).await?;
    let states = match goal {
        Goal::State(DesiredState::Inactive) => Vec::new(),
        Goal::Unloaded | Goal::Gone => client.states(name).await?,
        // A missing report is a 404.
        Goal::State(_) | Goal::Stopped | Goal::Active => Vec::from_iter(client.state(name).await?),
    };
    Ok(Observation { unit, states })
}

/// How long the server has failed.
#[derive(Debug, Default)]
pub(crate) struct Outage {
    since: Option<Instant>,
}

impl Outage {
    /// The result of a call; `None` if it failed and may succeed later.
    pub(crate) fn passed_over<T>(&mut self, result: Result<T, Error>) -> Result<Option<T>, Error> {
        match result {
            Ok(found) => {
                self.since = None;
                Ok(Some(found))
            }
            Err(error) if error.is_passing() => {
                let since = *self.since.get_or_insert_with(Instant::now);
                if since.elapsed() >= OUTAGE_MAX {
                    Err(error)
                } else {
                    Ok(None)
                }
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_two_seconds_and_none_have_no_limit() {
        assert_eq!(Patience::attempts(3).limit(), Some(Duration::from_secs(6)));
        assert_eq!(Patience::attempts(0).limit(), None);
    }
}
