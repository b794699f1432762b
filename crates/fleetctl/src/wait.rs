//! Waiting until units are where a command wants them: rules as plain functions, and one loop that asks.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use hyperfleet_fleet_model::unit::DesiredState;
use hyperfleet_fleet_model::wire::{StateView, UnitView};
use tokio::time::{Instant, sleep};

use crate::client::{Client, Error};

/// One of `--block-attempts`.
const ATTEMPT: Duration = Duration::from_secs(2);
/// How often units are asked about.
const POLL: Duration = Duration::from_millis(250);
/// How many units are asked about at the same time.
const CALLS_MAX: usize = 16;
/// How often the reason on the progress line is renewed.
const REASON_PERIOD: Duration = Duration::from_secs(1);
/// How long the server may fail before the wait is given up.
const OUTAGE_MAX: Duration = Duration::from_secs(30);
/// A launched unit that is inactive for this long has finished: systemd starts units within moments.
const SETTLED: Duration = Duration::from_secs(1);

/// How a unit is to be in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goal {
    /// Its current state is this one.
    State(DesiredState),
    /// It is loaded, and systemd does not run it any more.
    Stopped,
    /// It is launched, and systemd runs it, or has run it successfully.
    Active,
    /// It does not exist, and no machine reports it.
    Gone,
}

/// How long to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Patience {
    attempts: u32,
}

impl Patience {
    /// So many attempts; 0 waits for ever.
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
    #[error("timed out waiting for unit {unit} to {goal}{}", reason_behind(.reason))]
    TimedOut {
        unit: String,
        goal: &'static str,
        /// What the server says of it.
        reason: String,
    },
    #[error("unit {unit} has failed: systemd reports {active}/{sub}; see fleetctl status {unit}")]
    Failed {
        unit: String,
        active: String,
        sub: String,
    },
    #[error("unit {unit} was destroyed meanwhile")]
    Destroyed { unit: String },
    #[error(transparent)]
    Api(#[from] Error),
}

fn reason_behind(reason: &str) -> String {
    if reason.is_empty() {
        String::new()
    } else {
        format!(": {reason}")
    }
}

/// What is known of a unit at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Observation {
    /// None if it does not exist.
    pub unit: Option<UnitView>,
    /// What machines report, as far as the goal needs it.
    pub states: Vec<StateView>,
}

/// What an observation means for a goal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    Reached,
    /// Reached, if it stays so for a moment.
    Settling,
    /// Failed, if it stays so: the report may be older than the order.
    Failing {
        active: String,
        sub: String,
    },
    NotYet,
    Destroyed,
}

/// Judges an observation.
pub(crate) fn judge(goal: Goal, seen: &Observation) -> Verdict {
    let Some(unit) = &seen.unit else {
        return match goal {
            Goal::Gone if seen.states.is_empty() => Verdict::Reached,
            Goal::Gone => Verdict::NotYet,
            _ => Verdict::Destroyed,
        };
    };
    // Units that run on all machines have no current state.
    let current = unit.current.unwrap_or(unit.desired);
    let state = seen.states.first();
    match goal {
        Goal::State(goal) if current == goal => Verdict::Reached,
        Goal::Stopped if current == DesiredState::Loaded && !state.is_some_and(is_busy) => {
            Verdict::Reached
        }
        Goal::Active if current == DesiredState::Launched => {
            state.map_or(Verdict::NotYet, judge_active)
        }
        Goal::State(_) | Goal::Stopped | Goal::Active | Goal::Gone => Verdict::NotYet,
    }
}

/// Whether systemd runs, starts or stops a unit.
fn is_busy(state: &StateView) -> bool {
    !matches!(state.active.as_str(), "inactive" | "failed" | "")
}

fn judge_active(state: &StateView) -> Verdict {
    match state.active.as_str() {
        "active" | "reloading" if state.load == "loaded" => Verdict::Reached,
        "inactive" if state.load == "loaded" => Verdict::Settling,
        "failed" => Verdict::Failing {
            active: state.active.clone(),
            sub: state.sub.clone(),
        },
        _ => Verdict::NotYet,
    }
}

impl Goal {
    fn words(self) -> &'static str {
        match self {
            Self::State(DesiredState::Inactive) => "report state inactive",
            Self::State(DesiredState::Loaded) => "report state loaded",
            Self::State(DesiredState::Launched) => "report state launched",
            Self::Stopped => "stop",
            Self::Active => "become active",
            Self::Gone => "leave its machines",
        }
    }

    async fn observe(self, client: &Client, name: &str) -> Result<Observation, Error> {
        let unit = client.unit(name).await?;
        let states = match self {
            Self::State(_) => Vec::new(),
            Self::Gone => client.states(name).await?,
            // A report that is not there yet is a 404.
            Self::Stopped | Self::Active => Vec::from_iter(client.state(name).await?),
        };
        Ok(Observation { unit, states })
    }
}

/// Waits for units, and tells of each that has reached the goal as it does. Ends at once when a unit has failed.
///
/// # Errors
/// The first unit by name that failed or did not get there in time; others may be on their way.
pub(crate) async fn wait_for(
    client: &Client,
    units: &[String],
    goal: Goal,
    patience: Patience,
    mut reached: impl AsyncFnMut(&str, &Observation) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let deadline = patience.limit().map(|limit| Instant::now() + limit);
    let mut waiting: BTreeMap<String, Settling> = units
        .iter()
        .map(|unit| (unit.clone(), Settling::default()))
        .collect();
    let mut progress = Progress::new();
    let mut outage = Outage::default();
    while !waiting.is_empty() {
        let names: Vec<String> = waiting.keys().cloned().collect();
        let calls = stream::iter(names).map(async |name| {
            let seen = goal.observe(client, &name).await;
            (name, seen)
        });
        let mut calls = calls.buffered(CALLS_MAX);
        while let Some((name, seen)) = calls.next().await {
            let Some(seen) = outage.passed_over(seen)? else {
                continue;
            };
            let settling = waiting.get_mut(&name).expect("it is waited for");
            match settling.decide(judge(goal, &seen), Instant::now()) {
                Decision::Wait => {}
                Decision::Reached => {
                    waiting.remove(&name);
                    progress.clear();
                    reached(&name, &seen).await?;
                }
                Decision::Failed { active, sub } => {
                    progress.clear();
                    return Err(WaitError::Failed {
                        unit: name,
                        active,
                        sub,
                    }
                    .into());
                }
                Decision::Destroyed => {
                    progress.clear();
                    return Err(WaitError::Destroyed { unit: name }.into());
                }
            }
        }
        let Some(first) = waiting.keys().next() else {
            break;
        };
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            progress.clear();
            let reason = reason(client, first).await;
            let (unit, goal) = (first.clone(), goal.words());
            return Err(WaitError::TimedOut { unit, goal, reason }.into());
        }
        progress.show(client, first, waiting.len()).await;
        sleep(POLL).await;
    }
    Ok(())
}

/// What the server says of a unit; empty if it says nothing.
pub(crate) async fn reason(client: &Client, unit: &str) -> String {
    let explanation = client.explanation(unit).await.ok().flatten();
    explanation
        .map(|explanation| explanation.reason)
        .unwrap_or_default()
}

/// Since when a unit looks as if it were done, or had failed.
#[derive(Debug, Default)]
struct Settling {
    since: Option<(Verdict, Instant)>,
}

#[derive(Debug, PartialEq, Eq)]
enum Decision {
    Wait,
    Reached,
    Failed { active: String, sub: String },
    Destroyed,
}

impl Settling {
    fn decide(&mut self, verdict: Verdict, now: Instant) -> Decision {
        match verdict {
            Verdict::Reached => return Decision::Reached,
            Verdict::Destroyed => return Decision::Destroyed,
            Verdict::NotYet => {
                self.since = None;
                return Decision::Wait;
            }
            Verdict::Settling | Verdict::Failing { .. } => {}
        }
        let since = match &self.since {
            Some((before, since)) if *before == verdict => *since,
            _ => {
                self.since = Some((verdict, now));
                return Decision::Wait;
            }
        };
        match verdict {
            // Seen twice: a report from before the order would be gone.
            Verdict::Failing { active, sub } => Decision::Failed { active, sub },
            _ if now - since >= SETTLED => Decision::Reached,
            _ => Decision::Wait,
        }
    }
}

/// For how long the server has failed.
#[derive(Debug, Default)]
struct Outage {
    since: Option<Instant>,
}

impl Outage {
    /// The result of a call; none if it failed and may succeed later.
    fn passed_over<T>(&mut self, result: Result<T, Error>) -> Result<Option<T>, Error> {
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

/// A line on the terminal that says what is waited for.
#[derive(Debug)]
pub(crate) struct Progress {
    is_on: bool,
    is_shown: bool,
    renewed: Option<Instant>,
}

impl Progress {
    /// Shows nothing unless standard error is a terminal.
    pub(crate) fn new() -> Self {
        Self {
            is_on: std::io::stderr().is_terminal(),
            is_shown: false,
            renewed: None,
        }
    }

    async fn show(&mut self, client: &Client, unit: &str, count: usize) {
        let is_due = self
            .renewed
            .is_none_or(|renewed| renewed.elapsed() >= REASON_PERIOD);
        if !self.is_on || !is_due {
            return;
        }
        let reason = reason(client, unit).await;
        let more = if count > 1 {
            format!(" and {} more", count - 1)
        } else {
            String::new()
        };
        self.say(&format!("waiting for {unit}{more}: {reason}"));
    }

    /// Shows a text.
    pub(crate) fn say(&mut self, text: &str) {
        if !self.is_on {
            return;
        }
        let width = terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0));
        let text: String = text.chars().take(width.saturating_sub(1)).collect();
        eprint!("\r\x1b[K{text}");
        let _ = std::io::stderr().flush();
        self.is_shown = true;
        self.renewed = Some(Instant::now());
    }

    /// Removes the line.
    pub(crate) fn clear(&mut self) {
        if self.is_shown {
            eprint!("\r\x1b[K");
            self.is_shown = false;
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(current: Option<DesiredState>, state: Option<(&str, &str)>) -> Observation {
        let unit = UnitView {
            current,
            desired: DesiredState::Launched,
            machine: None,
            name: "a.service".to_owned(),
            options: Vec::new(),
            hash: String::new(),
            generation: 1,
        };
        let state = state.map(|(load, active)| StateView {
            hash: String::new(),
            machine: "m".to_owned(),
            unit: "a.service".to_owned(),
            active: active.to_owned(),
            load: load.to_owned(),
            sub: "x".to_owned(),
        });
        Observation {
            unit: Some(unit),
            states: Vec::from_iter(state),
        }
    }

    #[test]
    fn goals_are_reached_by_what_is_reported() {
        use DesiredState::{Inactive, Launched, Loaded};
        let failing = Verdict::Failing {
            active: "failed".to_owned(),
            sub: "x".to_owned(),
        };
        for (goal, current, state, verdict) in [
            (
                Goal::State(Launched),
                Some(Launched),
                None,
                Verdict::Reached,
            ),
            (Goal::State(Launched), Some(Loaded), None, Verdict::NotYet),
            (Goal::State(Inactive), Some(Loaded), None, Verdict::NotYet),
            // A global unit.
            (Goal::State(Launched), None, None, Verdict::Reached),
            (
                Goal::Stopped,
                Some(Loaded),
                Some(("loaded", "inactive")),
                Verdict::Reached,
            ),
            (
                Goal::Stopped,
                Some(Loaded),
                Some(("loaded", "failed")),
                Verdict::Reached,
            ),
            (
                Goal::Stopped,
                Some(Loaded),
                Some(("loaded", "deactivating")),
                Verdict::NotYet,
            ),
            (
                Goal::Stopped,
                Some(Launched),
                Some(("loaded", "inactive")),
                Verdict::NotYet,
            ),
            (
                Goal::Active,
                Some(Launched),
                Some(("loaded", "active")),
                Verdict::Reached,
            ),
            (
                Goal::Active,
                Some(Launched),
                Some(("loaded", "activating")),
                Verdict::NotYet,
            ),
            (
                Goal::Active,
                Some(Launched),
                Some(("loaded", "inactive")),
                Verdict::Settling,
            ),
            (
                Goal::Active,
                Some(Launched),
                Some(("not-found", "inactive")),
                Verdict::NotYet,
            ),
            (
                Goal::Active,
                Some(Launched),
                Some(("loaded", "failed")),
                failing,
            ),
            (
                Goal::Active,
                Some(Loaded),
                Some(("loaded", "failed")),
                Verdict::NotYet,
            ),
            (Goal::Active, Some(Launched), None, Verdict::NotYet),
            (Goal::Gone, Some(Launched), None, Verdict::NotYet),
        ] {
            let judged = judge(goal, &seen(current, state));
            assert_eq!(judged, verdict, "{goal:?} {current:?} {state:?}");
        }
        let gone = Observation::default();
        assert_eq!(judge(Goal::Gone, &gone), Verdict::Reached);
        assert_eq!(judge(Goal::Active, &gone), Verdict::Destroyed);
        let reported = Observation {
            unit: None,
            ..seen(None, Some(("loaded", "active")))
        };
        assert_eq!(judge(Goal::Gone, &reported), Verdict::NotYet);
    }

    #[test]
    fn what_may_be_out_of_date_counts_when_it_stays() {
        let failing = || Verdict::Failing {
            active: "failed".to_owned(),
            sub: "failed".to_owned(),
        };
        let start = Instant::now();
        let mut settling = Settling::default();
        assert_eq!(settling.decide(failing(), start), Decision::Wait);
        assert_eq!(settling.decide(Verdict::Settling, start), Decision::Wait);
        assert_eq!(
            settling.decide(Verdict::Settling, start + POLL),
            Decision::Wait
        );
        assert_eq!(
            settling.decide(Verdict::NotYet, start + SETTLED),
            Decision::Wait
        );
        assert_eq!(
            settling.decide(Verdict::Settling, start + SETTLED),
            Decision::Wait
        );
        let later = start + 2 * SETTLED;
        assert_eq!(settling.decide(Verdict::Settling, later), Decision::Reached);
        assert_eq!(settling.decide(failing(), later), Decision::Wait);
        let failed = settling.decide(failing(), later + POLL);
        assert!(matches!(failed, Decision::Failed { .. }), "{failed:?}");
    }

    #[test]
    fn attempts_are_two_seconds_and_none_are_for_ever() {
        assert_eq!(Patience::attempts(3).limit(), Some(Duration::from_secs(6)));
        assert_eq!(Patience::attempts(0).limit(), None);
    }
}
