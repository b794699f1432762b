//! The next steps for one resource: a pure comparison of the units that it needs with those that it has.
//!
//! A replica is a slot, numbered from 1. Its units are the one that it needs and those of an earlier name.
//! `max_unavailable` limits the steps that make a slot unavailable: replacing the file of a ready unit, and
//! stopping a ready unit of an earlier name, which waits until its successor is stored. All other steps are
//! done at once.
//!
//! A unit is removed in two steps, each of which survives a crash of the adapter: it becomes inactive, and its
//! record is destroyed once no machine reports it.

use std::collections::{BTreeMap, BTreeSet};

use hyperfleet_fleet_model::unit::DesiredState;

use super::unit::{DesiredUnit, DesiredWorkload, OwnedUnit};

/// One write to fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanStep<'a> {
    /// Creates a missing unit.
    Create(&'a DesiredUnit),
    /// Replaces the file of a unit.
    Replace(&'a DesiredUnit),
    /// Launches a unit whose desired state was changed by hand.
    Launch(&'a str),
    /// Makes the machine stop a unit.
    Stop(&'a str),
    /// Removes the record of a unit that no machine reports.
    Destroy(&'a str),
}

impl PlanStep<'_> {
    pub fn unit(&self) -> &str {
        match self {
            Self::Create(unit) | Self::Replace(unit) => &unit.name,
            Self::Launch(name) | Self::Stop(name) | Self::Destroy(name) => name,
        }
    }

    /// Whether it removes a unit.
    pub fn removes(&self) -> bool {
        matches!(self, Self::Stop(_) | Self::Destroy(_))
    }
}

/// The next steps for one resource, and what remains for later.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Plan<'a> {
    pub steps: Vec<PlanStep<'a>>,
    /// Units with an earlier file that wait until others are available.
    pub waiting: Vec<&'a str>,
    /// Units to remove that may still run, from the highest index down.
    pub leaving: Vec<&'a OwnedUnit>,
    /// Units of an earlier name of a replica.
    superseded: BTreeSet<&'a str>,
    /// How many steps stop a unit that has no successor, or whose successor exists: the number that the brake
    /// counts.
    pub removals: usize,
}

impl Plan<'_> {
    /// Removes the steps that stop units.
    pub fn postpone_removals(&mut self) {
        self.steps.retain(|step| !matches!(step, PlanStep::Stop(_)));
        self.removals = 0;
    }

    /// Keeps only the removal of units without a successor: successors of the others cannot be stored.
    pub fn postpone_changes(&mut self) {
        let is_superseded = |name: &str| self.superseded.contains(name);
        self.steps
            .retain(|step| step.removes() && !is_superseded(step.unit()));
    }
}

/// Compares the units that a resource needs with those that it has.
///
/// # Guarantees
/// Deterministic. Once every step is carried out and every unit is ready, the next plan has no steps. Steps
/// disturb at most `max_unavailable` ready replicas of a workload, less those that are already not ready.
pub fn plan<'a>(desired: &'a [DesiredWorkload], owned: &'a [OwnedUnit]) -> Plan<'a> {
    let mut plan = Plan::default();
    let by_name: BTreeMap<&str, &OwnedUnit> = owned
        .iter()
        .map(|unit| (unit.name.as_str(), unit))
        .collect();
    let needed = desired.iter().flat_map(|workload| &workload.units);
    let needed: BTreeSet<&str> = needed.map(|unit| unit.name.as_str()).collect();
    let leftovers: Vec<&OwnedUnit> = owned
        .iter()
        .filter(|unit| !needed.contains(unit.name.as_str()))
        .collect();
    for workload in desired {
        let slots: Vec<Slot<'_>> = workload
            .units
            .iter()
            .map(|unit| Slot::of(workload, unit, &by_name, &leftovers))
            .collect();
        plan.superseded
            .extend(slots.iter().flat_map(Slot::earlier_names));
        plan_workload(workload, &slots, &mut plan);
    }
    plan_surplus(&leftovers, &mut plan);
    plan
}

/// One replica: the unit that it needs, and the units that it has.
struct Slot<'a> {
    needs: &'a DesiredUnit,
    has: Option<&'a OwnedUnit>,
    earlier: Vec<&'a OwnedUnit>,
}

impl<'a> Slot<'a> {
    fn of(
        workload: &DesiredWorkload,
        needs: &'a DesiredUnit,
        by_name: &BTreeMap<&str, &'a OwnedUnit>,
        leftovers: &[&'a OwnedUnit],
    ) -> Self {
        let is_of_slot = |unit: &&&OwnedUnit| {
            unit.owner.workload == workload.number && unit.owner.index == needs.index
        };
        Self {
            needs,
            has: by_name.get(needs.name.as_str()).copied(),
            earlier: leftovers.iter().filter(is_of_slot).copied().collect(),
        }
    }

    fn earlier_names(&self) -> impl Iterator<Item = &'a str> {
        self.earlier.iter().map(|unit| unit.name.as_str())
    }

    fn is_current(&self) -> bool {
        let hash = self.needs.hash.to_string();
        self.has.is_some_and(|unit| unit.hash == hash)
    }

    fn is_available(&self, workload: &DesiredWorkload) -> bool {
        let mut units = self.has.iter().chain(&self.earlier);
        units.any(|unit| unit.is_ready(workload.min_ready))
    }

    fn has_ready_successor(&self, workload: &DesiredWorkload) -> bool {
        let is_ready = |unit: &OwnedUnit| unit.is_ready(workload.min_ready);
        self.is_current() && self.has.is_some_and(is_ready)
    }
}

fn plan_workload<'a>(workload: &DesiredWorkload, slots: &[Slot<'a>], plan: &mut Plan<'a>) {
    for slot in slots {
        match slot.has {
            None => plan.steps.push(PlanStep::Create(slot.needs)),
            // Destroyed by hand, and not stopped yet.
            Some(unit) if unit.hash.is_empty() => plan.steps.push(PlanStep::Create(slot.needs)),
            Some(unit) if slot.is_current() && unit.desired != DesiredState::Launched => {
                plan.steps.push(PlanStep::Launch(&unit.name));
            }
            Some(_) => {}
        }
    }
    let unavailable = slots.iter().filter(|slot| !slot.is_available(workload));
    let max = usize::try_from(workload.max_unavailable).unwrap_or(usize::MAX);
    let mut budget = max.saturating_sub(unavailable.count());
    for slot in slots {
        let mut may_disturb = |is_harmless: bool| {
            let may = is_harmless || budget > 0;
            if may && !is_harmless {
                budget -= 1;
            }
            may
        };
        if let Some(unit) = slot
            .has
            .filter(|unit| !slot.is_current() && !unit.hash.is_empty())
        {
            if may_disturb(!unit.is_ready(workload.min_ready)) {
                plan.steps.push(PlanStep::Replace(slot.needs));
            } else {
                plan.waiting.push(&unit.name);
            }
        }
        let is_ready = slot.has_ready_successor(workload);
        for unit in &slot.earlier {
            // The successor must exist first: fleet may refuse it.
            let has_successor = slot.has.is_some();
            let is_harmless = is_ready || !unit.is_ready(workload.min_ready);
            if has_successor && may_disturb(is_harmless) {
                let step = removal(unit);
                plan.removals += usize::from(matches!(step, Some(PlanStep::Stop(_))));
                plan.steps.extend(step);
                plan.leaving.push(unit);
            } else {
                plan.waiting.push(&unit.name);
            }
        }
    }
}

fn plan_surplus<'a>(leftovers: &[&'a OwnedUnit], plan: &mut Plan<'a>) {
    let surplus = leftovers.iter();
    let mut surplus: Vec<&OwnedUnit> = surplus
        .filter(|unit| !plan.superseded.contains(unit.name.as_str()))
        .copied()
        .collect();
    surplus.sort_by_key(|unit| (std::cmp::Reverse(unit.owner.index), &unit.name));
    for unit in &surplus {
        let step = removal(unit);
        plan.removals += usize::from(matches!(step, Some(PlanStep::Stop(_))));
        plan.steps.extend(step);
    }
    plan.leaving.extend(surplus);
}

/// The next step of a unit's removal; `None` while its machine stops it.
fn removal(unit: &OwnedUnit) -> Option<PlanStep<'_>> {
    if unit.desired != DesiredState::Inactive {
        Some(PlanStep::Stop(&unit.name))
    } else if unit.is_gone_from_machines() {
        Some(PlanStep::Destroy(&unit.name))
    } else {
        None
    }
}

#[cfg(test)]
#[path = "tests/plan.rs"]
mod tests;
