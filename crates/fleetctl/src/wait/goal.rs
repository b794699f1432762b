//! Goals of a wait, and the rules that judge reports by them.

use std::time::Duration;

use hyperfleet_fleet_model::unit::DesiredState;
use hyperfleet_fleet_model::wire::{StateView, UnitView};
use tokio::time::Instant;

use crate::source::stored_options;

/// Another order that is visible for this long is newer than this one.
const SETTLED: Duration = Duration::from_secs(1);
/// A stopped unit that has run for this long was started again. Its stop may be queued until other units have stopped, which
/// takes them 90 s at most unless they ask for more (`TimeoutStopSec=`).
const RUNNING: Duration = Duration::from_secs(100);

/// The goal of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goal {
    /// The unit has this current state.
    State(DesiredState),
    /// It is loaded, and systemd does not run it any more.
    Stopped,
    /// It is launched, and systemd runs it, or has run it successfully.
    Active,
    /// It is inactive, and no machine reports it.
    Unloaded,
    /// It does not exist, and no machine reports it.
    Gone,
}

/// A unit and its reports at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Observation {
    /// `None` if it does not exist.
    pub unit: Option<UnitView>,
    /// Reports of machines; only those that the goal needs.
    pub states: Vec<StateView>,
}

/// The meaning of an observation for a goal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    Reached,
    /// Failed, if it stays so: the report may be older than the order.
    Failing {
        active: String,
        sub: String,
    },
    NotYet,
    /// systemd runs it although the agent has stopped it, if it stays so: the stop may still be queued.
    Running,
    /// Another client has given another order, if it stays so: the response may be older than this order.
    Overruled(Order),
    Destroyed,
}

/// An order of another client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Another desired state.
    State(DesiredState),
    /// The unit was created again after it was destroyed.
    Create,
}

/// Judges an observation. A reached goal counts, whatever was ordered since.
pub(crate) fn judge(goal: Goal, seen: &Observation) -> Verdict {
    let verdict = judge_reports(goal, seen);
    if matches!(verdict, Verdict::Reached | Verdict::Destroyed) {
        return verdict;
    }
    match (&seen.unit, goal.desired()) {
        (Some(_), None) => Verdict::Overruled(Order::Create),
        (Some(unit), Some(desired)) if unit.desired != desired => {
            Verdict::Overruled(Order::State(unit.desired))
        }
        _ => verdict,
    }
}

fn judge_reports(goal: Goal, seen: &Observation) -> Verdict {
    let Some(unit) = &seen.unit else {
        return match goal {
            Goal::Gone | Goal::Unloaded if seen.states.is_empty() => Verdict::Reached,
            Goal::Gone | Goal::Unloaded => Verdict::NotYet,
            _ => Verdict::Destroyed,
        };
    };
    // Units that run on all machines have no current state.
    let current = unit.current.unwrap_or(unit.desired);
    let state = seen.states.first();
    match goal {
        // The agent has unloaded it, and the engine has not withdrawn it yet.
        Goal::State(DesiredState::Inactive) if unit.machine.is_some() => Verdict::NotYet,
        // A unit whose file was replaced has the state of its former file until the agent has replaced it there.
        Goal::State(_) if state.is_some_and(|state| !is_of_file(state, unit)) => Verdict::NotYet,
        Goal::State(goal) if current == goal => Verdict::Reached,
        Goal::Stopped if current == DesiredState::Loaded => match state {
            Some(state) if state.active == "active" => Verdict::Running,
            Some(state) if is_busy(state) => Verdict::NotYet,
            _ => Verdict::Reached,
        },
        Goal::Unloaded if unit.machine.is_none() && seen.states.is_empty() => Verdict::Reached,
        Goal::Active if current == DesiredState::Launched => {
            let state = state.filter(|state| is_of_file(state, unit));
            state.map_or(Verdict::NotYet, judge_active)
        }
        Goal::State(_) | Goal::Stopped | Goal::Active | Goal::Unloaded | Goal::Gone => {
            Verdict::NotYet
        }
    }
}

/// Whether systemd runs, starts or stops a unit.
pub(crate) fn is_busy(state: &StateView) -> bool {
    !matches!(state.active.as_str(), "inactive" | "failed" | "")
}

/// Whether a report is about the stored file. A report without a hash may be.
fn is_of_file(state: &StateView, unit: &UnitView) -> bool {
    state.hash.is_empty()
        || !stored_options(unit).is_ok_and(|options| options.hash().to_string() != state.hash)
}

/// Judges the report of a launched unit. Agents report a unit as launched when systemd has carried out its
/// start: an inactive one has finished, or its conditions were not met.
fn judge_active(state: &StateView) -> Verdict {
    match state.active.as_str() {
        "active" | "reloading" | "inactive" if state.load == "loaded" => Verdict::Reached,
        "failed" => Verdict::Failing {
            active: state.active.clone(),
            sub: state.sub.clone(),
        },
        _ => Verdict::NotYet,
    }
}

impl Goal {
    /// The desired state that leads to it; `None` for destroyed units.
    fn desired(self) -> Option<DesiredState> {
        match self {
            Self::State(state) => Some(state),
            Self::Stopped => Some(DesiredState::Loaded),
            Self::Active => Some(DesiredState::Launched),
            Self::Unloaded => Some(DesiredState::Inactive),
            Self::Gone => None,
        }
    }

    pub(super) fn words(self) -> &'static str {
        match self {
            Self::State(DesiredState::Inactive) => "report state inactive",
            Self::State(DesiredState::Loaded) => "report state loaded",
            Self::State(DesiredState::Launched) => "report state launched",
            Self::Stopped => "stop",
            Self::Active => "become active",
            Self::Unloaded | Self::Gone => "leave its machines",
        }
    }
}

/// Since when a unit seems to have failed, or to have another order.
#[derive(Debug, Default)]
pub(super) struct Settling {
    since: Option<(Verdict, Instant)>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decision {
    Wait,
    Reached,
    Failed {
        active: String,
        sub: String,
    },
    /// systemd runs the stopped unit.
    Running,
    Overruled(Order),
    Destroyed,
}

impl Settling {
    pub(super) fn decide(&mut self, verdict: Verdict, now: Instant) -> Decision {
        match verdict {
            Verdict::Reached => return Decision::Reached,
            Verdict::Destroyed => return Decision::Destroyed,
            Verdict::NotYet => {
                self.since = None;
                return Decision::Wait;
            }
            Verdict::Failing { .. } | Verdict::Running | Verdict::Overruled(_) => {}
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
            Verdict::Running if now - since >= RUNNING => Decision::Running,
            Verdict::Overruled(order) if now - since >= SETTLED => Decision::Overruled(order),
            _ => Decision::Wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The polling interval.
    const LATER: Duration = Duration::from_millis(250);

    fn observation(current: Option<DesiredState>, state: Option<(&str, &str)>) -> Observation {
        let unit = UnitView {
            current,
            desired: DesiredState::Launched,
            machine: None,
            name: "a.service".to_owned(),
            options: Vec::new(),
        };
        let state = state.map(|(load, active)| StateView {
            hash: String::new(),
            machine: "m".to_owned(),
            unit: "a.service".to_owned(),
            active: active.to_owned(),
            load: load.to_owned(),
            sub: "x".to_owned(),
            error: String::new(),
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
                Some(Loaded),
                Some(("loaded", "active")),
                Verdict::Running,
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
                Verdict::Reached,
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
        ] {
            let mut observation = observation(current, state);
            let unit = observation.unit.as_mut().unwrap();
            unit.desired = goal.desired().unwrap();
            let judged = judge(goal, &observation);
            assert_eq!(judged, verdict, "{goal:?} {current:?} {state:?}");
        }
        let gone = Observation::default();
        assert_eq!(judge(Goal::Gone, &gone), Verdict::Reached);
        assert_eq!(judge(Goal::Active, &gone), Verdict::Destroyed);
        let reported = Observation {
            unit: None,
            ..observation(None, Some(("loaded", "active")))
        };
        assert_eq!(judge(Goal::Gone, &reported), Verdict::NotYet);
    }

    #[test]
    fn a_unit_is_unloaded_when_no_machine_reports_it() {
        let mut seen = observation(Some(DesiredState::Inactive), Some(("loaded", "active")));
        seen.unit.as_mut().unwrap().desired = DesiredState::Inactive;
        assert_eq!(judge(Goal::Unloaded, &seen), Verdict::NotYet);
        seen.states.clear();
        assert_eq!(judge(Goal::Unloaded, &seen), Verdict::Reached);
        assert_eq!(
            judge(Goal::Unloaded, &Observation::default()),
            Verdict::Reached
        );
    }

    /// The unit as a client receives it.
    fn received(options: &Value) -> UnitView {
        let unit = json!({"name": "a.service", "desiredState": "launched", "currentState": "launched", "options": options});
        serde_json::from_value(unit).unwrap()
    }

    #[test]
    fn reports_of_another_file_do_not_count() {
        let option =
            |value: &str| json!([{"section": "Service", "name": "ExecStart", "value": value}]);
        let before = stored_options(&received(&option("/bin/1"))).unwrap();
        for active in ["active", "inactive", "failed"] {
            let mut seen = observation(None, Some(("loaded", active)));
            seen.states[0].hash = before.hash().to_string();
            for goal in [Goal::Active, Goal::State(DesiredState::Launched)] {
                seen.unit = Some(received(&option("/bin/2")));
                assert_eq!(judge(goal, &seen), Verdict::NotYet, "{goal:?} {active}");
                seen.unit = Some(received(&option("/bin/1")));
                assert_ne!(judge(goal, &seen), Verdict::NotYet, "{goal:?} {active}");
            }
        }
    }

    #[test]
    fn orders_of_other_clients_are_seen() {
        use DesiredState::{Launched, Loaded};
        let overruled = Verdict::Overruled(Order::State(Launched));
        for (goal, current, verdict) in [
            (Goal::Stopped, Launched, overruled.clone()),
            (Goal::State(Loaded), Launched, overruled.clone()),
            // It was reached before.
            (Goal::State(Loaded), Loaded, Verdict::Reached),
            (Goal::Gone, Launched, Verdict::Overruled(Order::Create)),
        ] {
            let judged = judge(goal, &observation(Some(current), None));
            assert_eq!(judged, verdict, "{goal:?}");
        }
        let (start, mut settling) = (Instant::now(), Settling::default());
        assert_eq!(settling.decide(overruled.clone(), start), Decision::Wait);
        let order = Order::State(Launched);
        let decided = settling.decide(overruled, start + SETTLED);
        assert_eq!(decided, Decision::Overruled(order));
    }

    #[test]
    fn what_may_be_out_of_date_counts_when_it_stays() {
        let failing = || Verdict::Failing {
            active: "failed".to_owned(),
            sub: "failed".to_owned(),
        };
        let overruled = || Verdict::Overruled(Order::Create);
        let start = Instant::now();
        let mut settling = Settling::default();
        for (after, verdict) in [
            (Duration::ZERO, failing()),
            (LATER, overruled()),
            (2 * LATER, overruled()),
            (SETTLED, Verdict::NotYet),
            (SETTLED + LATER, overruled()),
            (2 * SETTLED, failing()),
        ] {
            let decided = settling.decide(verdict, start + after);
            assert_eq!(decided, Decision::Wait, "{after:?}");
        }
        let failed = settling.decide(failing(), start + 2 * SETTLED + LATER);
        assert!(matches!(failed, Decision::Failed { .. }), "{failed:?}");
        for (after, decision) in [
            (Duration::ZERO, Decision::Wait),
            (RUNNING / 2, Decision::Wait),
            (RUNNING, Decision::Running),
        ] {
            let decided = settling.decide(Verdict::Running, start + after);
            assert_eq!(decided, decision, "{after:?}");
        }
    }
}
