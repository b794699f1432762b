//! The rules of what may run where. The engine applies them through its indexes, an agent to the units of its
//! machine.

use std::collections::{BTreeMap, BTreeSet};

use super::machine_id::MachineId;
use super::model::{Job, Machine};
use crate::unit::{Requirements, UnitName, unmet};

/// The active units of a machine: those placed there, and the global ones that run there.
pub trait Neighbours {
    /// Whether a unit of that name is among them.
    fn has(&self, unit: &str) -> bool;

    /// Whether one of them, other than the unit itself, excludes it or is excluded by it.
    fn conflicts(&self, unit: &UnitName, requirements: &Requirements) -> bool;
}

/// The first requirement that a machine does not meet, in the order of checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal<'a> {
    /// It requires this other machine.
    MachineId(&'a str),
    /// It requires metadata that the machine does not have: the first such key, and the required values.
    Metadata(&'a str, &'a BTreeSet<String>),
    /// It follows this unit, which is not there.
    MachineOf(&'a str),
    Conflict,
    Cordoned,
}

/// Whether a unit may run on a machine beside these units. A `Replaces` between them does not prevent it.
///
/// A global unit follows none: `MachineOf` and `Global` exclude each other.
///
/// # Errors
/// The first unmet requirement.
pub fn can_run<'a>(
    unit: &UnitName,
    requirements: &'a Requirements,
    machine: (&MachineId, &BTreeMap<String, String>),
    neighbours: &impl Neighbours,
) -> Result<(), Refusal<'a>> {
    let (id, metadata) = machine;
    if let Some(wanted) = &requirements.machine_id
        && !wanted.names(id.as_str())
    {
        return Err(Refusal::MachineId(wanted.as_str()));
    }
    if let Some((key, values)) = unmet(&requirements.metadata, metadata) {
        return Err(Refusal::Metadata(key, values));
    }
    if !requirements.is_global
        && let Some(peer) = requirements.machine_of.iter().find(|p| !neighbours.has(p))
    {
        return Err(Refusal::MachineOf(peer));
    }
    if neighbours.conflicts(unit, requirements) {
        return Err(Refusal::Conflict);
    }
    Ok(())
}

/// The units of one machine as a plain list, for few units.
#[derive(Debug, Clone, Default)]
pub struct Beside<'a>(Vec<(&'a UnitName, &'a Requirements)>);

impl<'a> Beside<'a> {
    /// These active units of the machine.
    pub fn new(units: impl IntoIterator<Item = &'a Job>) -> Self {
        let units = units.into_iter();
        Self(units.map(|job| (&job.name, &job.requirements)).collect())
    }
}

impl Neighbours for Beside<'_> {
    fn has(&self, unit: &str) -> bool {
        self.0.iter().any(|(name, _)| name.as_str() == unit)
    }

    fn conflicts(&self, unit: &UnitName, requirements: &Requirements) -> bool {
        self.0.iter().any(|(other, its)| {
            *other != unit
                && (requirements.conflicts_with(other.as_str())
                    || its.conflicts_with(unit.as_str()))
        })
    }
}

/// The global units that belong on a machine, by name, given the units placed there and all global units, by
/// name. Inactive ones among either are ignored.
///
/// Placed units stay, whichever of the two excludes the other. Among global units the first by name stays.
pub fn globals_on<'a>(
    machine: &Machine,
    placed: impl IntoIterator<Item = &'a Job>,
    globals: impl IntoIterator<Item = &'a Job>,
) -> Vec<&'a UnitName> {
    let mut there = Beside::new(placed.into_iter().filter(|job| job.is_placeable()));
    let mut running = Vec::new();
    for job in globals.into_iter().filter(|job| job.is_active_global()) {
        let machine = (&machine.id, &machine.metadata);
        if can_run(&job.name, &job.requirements, machine, &there).is_ok() {
            there.0.push((&job.name, &job.requirements));
            running.push(&job.name);
        }
    }
    running
}
