//! The report on a resource, in messages that name the unit, the machine and the cause.

mod available;
mod data;

use std::collections::{BTreeMap, BTreeSet};

use hyperfleet_adapter::{Finding, Report};

use self::available::{available, stopping};
use self::data::data;
use super::plan::{Plan, PlanStep};
use super::unit::{DesiredWorkload, OwnedUnit};

/// Most units that a message names. The others are counted.
const NAMED_MAX: usize = 5;
/// Whether fleet can start and move units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FleetHealth {
    pub has_leader: bool,
    /// Machines with a live agent.
    pub machines: usize,
}

/// Why the adapter cannot store the units of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blocker {
    /// The brake holds removals until an operator runs this command.
    Held {
        pending: usize,
        removed: usize,
        owned: usize,
        command: String,
    },
    /// A unit of that name belongs to another owner.
    NameTaken {
        unit: String,
        owner: String,
    },
    Refused {
        unit: String,
        message: String,
    },
}

/// The input of a report.
#[derive(Debug, Clone, Copy)]
pub struct Observation<'a> {
    pub desired: &'a [DesiredWorkload],
    pub owned: &'a [OwnedUnit],
    /// Its steps were carried out, except those that a blocker names.
    pub plan: &'a Plan<'a>,
    /// Why units are on no machine, by unit.
    pub explanations: &'a BTreeMap<String, String>,
    pub health: FleetHealth,
    pub blocker: Option<&'a Blocker>,
    pub is_deleted: bool,
}

pub fn report(seen: &Observation<'_>) -> Report {
    let left = left_after_steps(seen);
    let mut report = if seen.is_deleted && left.is_empty() {
        Report::finalized("Removed", "no unit is left on any machine")
    } else if seen.is_deleted {
        finalizing(seen, &left)
    } else if seen.desired.is_empty() && left.is_empty() {
        Report::not_applicable("no workload applies to the resource")
    } else {
        active(seen)
    };
    if !(seen.desired.is_empty() && left.is_empty()) {
        report.health = health(seen.health);
    }
    report.data = data(seen);
    report
}

/// The report while etcd is away: services continue to run, and their state is unknown. `before` is the
/// previous report of the same generation.
pub fn report_without_etcd(before: Option<Report>, is_deleted: bool) -> Report {
    let away = || {
        Finding::no(
            "EtcdUnavailable",
            "etcd does not answer: nothing can be changed, services keep running",
        )
    };
    let mut report = match before {
        Some(before) if !is_deleted => before,
        _ => Report::new(away()),
    };
    if report.data.is_empty() && report.available.reason == "EtcdUnavailable" {
        report.applied = away();
    }
    report.finalized = is_deleted.then(away);
    report.health = away();
    report
}

/// The report on a resource whose workloads cannot be rendered. Its existing units stay unchanged.
pub fn unrendered(reason: &str, message: &str, health: FleetHealth) -> Report {
    let mut report = Report::new(Finding::no(reason, message));
    report.applied = Finding::no(reason, message);
    report.health = self::health(health);
    report
}

fn health(health: FleetHealth) -> Finding {
    let FleetHealth {
        has_leader,
        machines,
    } = health;
    if !has_leader {
        Finding::no(
            "NoEngine",
            "no engine of fleet leads: units are neither placed nor moved",
        )
    } else if machines == 0 {
        Finding::no("NoMachines", "fleet has no machines")
    } else {
        let machines = counted(machines, "machine");
        Finding::yes(
            "Healthy",
            format!("etcd answers, an engine leads, {machines} in fleet"),
        )
    }
}

/// Units that remain once the steps are carried out.
fn left_after_steps<'a>(seen: &Observation<'a>) -> Vec<&'a OwnedUnit> {
    let destroyed = seen.plan.steps.iter().filter_map(|step| match step {
        PlanStep::Destroy(name) => Some(*name),
        _ => None,
    });
    let destroyed: BTreeSet<&str> = destroyed.collect();
    let units = seen.owned.iter();
    units
        .filter(|unit| !destroyed.contains(unit.name.as_str()))
        .collect()
}

fn finalizing(seen: &Observation<'_>, left: &[&OwnedUnit]) -> Report {
    let (reason, message) = seen.blocker.map_or_else(
        || {
            let stopping: Vec<String> = left.iter().map(|unit| stopping(unit)).collect();
            let units = counted(left.len(), "unit");
            (
                "StoppingUnits",
                format!("{units} left: {}", named(&stopping)),
            )
        },
        blocked,
    );
    Report::finalizing(reason, message)
}

fn active(seen: &Observation<'_>) -> Report {
    let available = available(seen);
    let mut report = Report::new(available);
    report.applied = applied(seen);
    report
}

fn applied(seen: &Observation<'_>) -> Finding {
    if let Some(blocker) = seen.blocker {
        let (reason, message) = blocked(blocker);
        return Finding::no(reason, message);
    }
    let waiting = &seen.plan.waiting;
    if !waiting.is_empty() {
        let names: Vec<String> = waiting.iter().map(|name| (*name).to_owned()).collect();
        let units = counted(names.len(), "unit");
        return Finding::no(
            "Rolling",
            format!(
                "{units} to be updated once others are available: {}",
                named(&names)
            ),
        );
    }
    let units = seen
        .desired
        .iter()
        .map(|workload| workload.units.len())
        .sum();
    Finding::yes("UnitsStored", format!("{} stored", counted(units, "unit")))
}

fn blocked(blocker: &Blocker) -> (&'static str, String) {
    match blocker {
        Blocker::Held {
            pending,
            removed,
            owned,
            command,
        } => {
            let units = counted(*pending, "unit");
            let before = match removed {
                0 => String::new(),
                removed => format!(", after {removed} in the last ten minutes"),
            };
            let message = format!(
                "{units} of {owned} would be removed{before}: if that is meant, run `{command}`"
            );
            ("RemovalHeld", message)
        }
        Blocker::NameTaken { unit, owner } => (
            "NameTaken",
            format!("{unit} belongs to {owner}: destroy it, or give the workload another name"),
        ),
        Blocker::Refused { unit, message } => {
            ("UnitRefused", format!("fleet refuses {unit}: {message}"))
        }
    }
}

impl Blocker {
    /// Whether it keeps a unit from being stored.
    fn is_of(&self, name: &str) -> bool {
        match self {
            Self::Held { .. } => false,
            Self::NameTaken { unit, .. } | Self::Refused { unit, .. } => unit == name,
        }
    }
}

fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}

fn named(texts: &[String]) -> String {
    let text = texts[..texts.len().min(NAMED_MAX)].join("; ");
    match texts.len().saturating_sub(NAMED_MAX) {
        0 => text,
        more => format!("{text}; and {more} more"),
    }
}

#[cfg(test)]
#[path = "../tests/findings.rs"]
mod tests;
