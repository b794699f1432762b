//! The condition `Available`: why replicas are not available, with the unit, the machine and the cause.

use hyperfleet_adapter::Finding;

use super::{Observation, counted, left_after_steps, named};
use crate::domain::unit::{DesiredUnit, DesiredWorkload, OwnedUnit, UnitReport};

/// Why a replica is not available. The first variant that occurs gives the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Lack {
    Failed,
    NotPlaced,
    Blocked,
    Rolling,
    Starting,
    NotReadyYet,
    SurplusRunning,
}

impl Lack {
    fn reason(self) -> &'static str {
        match self {
            Self::Failed => "UnitFailed",
            Self::NotPlaced => "NotPlaced",
            Self::Blocked => "NotStored",
            Self::Rolling => "Rolling",
            Self::Starting => "Starting",
            Self::NotReadyYet => "NotReadyYet",
            Self::SurplusRunning => "SurplusRunning",
        }
    }
}

pub(super) fn available(seen: &Observation<'_>) -> Finding {
    let mut lacks: Vec<(Lack, String)> = Vec::new();
    let mut replicas = 0;
    for workload in seen.desired {
        replicas += workload.units.len();
        lacks.extend(
            workload
                .units
                .iter()
                .filter_map(|unit| lack(seen, workload, unit)),
        );
    }
    // A unit with an earlier file counts: its service runs.
    let is_available = |workload: &DesiredWorkload, needs: &DesiredUnit| {
        let mut units = seen.owned.iter();
        units.any(|unit| {
            let is_its = unit.owner.workload == workload.number && unit.owner.index == needs.index;
            is_its && unit.is_ready(workload.min_ready)
        })
    };
    let available = seen.desired.iter().flat_map(|workload| {
        let units = workload.units.iter();
        units.filter(move |needs| is_available(workload, needs))
    });
    let available = available.count();
    let destroyed = left_after_steps(seen);
    let is_left = |unit: &&&OwnedUnit| destroyed.iter().any(|left| left.name == unit.name);
    let leaving = seen.plan.leaving.iter().filter(is_left);
    lacks.extend(leaving.map(|unit| (Lack::SurplusRunning, format!("surplus {}", stopping(unit)))));
    lacks.sort_by_key(|(lack, _)| *lack);
    let counts = format!("{available} of {} available", counted(replicas, "replica"));
    match lacks.first() {
        None => Finding::yes("ReplicasAvailable", counts),
        Some((first, _)) => {
            let texts: Vec<String> = lacks.iter().map(|(_, text)| text.clone()).collect();
            Finding::no(first.reason(), format!("{counts}: {}", named(&texts)))
        }
    }
}

/// Why a replica is not available; `None` if it is.
fn lack(
    seen: &Observation<'_>,
    workload: &DesiredWorkload,
    needs: &DesiredUnit,
) -> Option<(Lack, String)> {
    let name = &needs.name;
    let found = seen.owned.iter().find(|unit| unit.name == *name);
    let (lack, what) = match found {
        None if seen.blocker.is_some_and(|blocker| blocker.is_of(name)) => {
            (Lack::Blocked, "it cannot be stored".to_owned())
        }
        None => (Lack::Starting, "it was just stored".to_owned()),
        Some(unit) if unit.hash != needs.hash.to_string() => {
            if seen.plan.waiting.contains(&name.as_str()) {
                (Lack::Rolling, "it has an older file".to_owned())
            } else {
                (Lack::Starting, "it was just given its new file".to_owned())
            }
        }
        Some(unit) if unit.is_ready(workload.min_ready) => return None,
        Some(unit) if unit.is_active() => {
            let seconds = workload.min_ready.as_secs();
            (
                Lack::NotReadyYet,
                format!("active for less than {seconds} s{}", on(unit)),
            )
        }
        Some(unit) => not_active(unit, seen.explanations.get(name)),
    };
    Some((lack, format!("{name}: {what}")))
}

fn not_active(unit: &OwnedUnit, explanation: Option<&String>) -> (Lack, String) {
    let Some(machine) = &unit.machine else {
        let why = explanation.map_or("no machine was chosen yet", String::as_str);
        return (Lack::NotPlaced, why.to_owned());
    };
    match unit.report() {
        Some(report) if report.hash == unit.hash && has_failed(report) => {
            let why = explanation
                .map(|why| format!("; {why}"))
                .unwrap_or_default();
            (
                Lack::Failed,
                format!("{} on {machine}{why}", states(report)),
            )
        }
        Some(report) => (Lack::Starting, format!("{} on {machine}", states(report))),
        None => (Lack::Starting, format!("{machine} has not reported it yet")),
    }
}

/// Whether systemd gave up a service, or cannot load it. A service that ended by itself counts, too: replicas
/// must run.
fn has_failed(report: &UnitReport) -> bool {
    let is_loaded = matches!(report.load.as_str(), "" | "loaded" | "stub");
    report.active == "failed" || !is_loaded
}

fn states(report: &UnitReport) -> String {
    match (
        report.load.as_str(),
        report.active.as_str(),
        report.sub.as_str(),
    ) {
        ("" | "loaded", active, sub) => format!("{active} ({sub})"),
        (load, ..) => format!("not loaded ({load})"),
    }
}

pub(super) fn stopping(unit: &OwnedUnit) -> String {
    let reports = unit.reports.iter();
    let reports: Vec<String> = reports
        .map(|report| format!("{} on {}", states(report), report.machine))
        .collect();
    if reports.is_empty() {
        format!("{}: about to be removed", unit.name)
    } else {
        format!("{}: {}", unit.name, reports.join(", "))
    }
}

fn on(unit: &OwnedUnit) -> String {
    let machine = unit.machine.as_ref();
    machine
        .map(|machine| format!(" on {machine}"))
        .unwrap_or_default()
}
