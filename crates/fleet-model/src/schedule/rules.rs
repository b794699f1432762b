//! What may run where. There is this one set of rules: the engine asks it through its indexes, an
//! agent over the units of its machine.

use std::collections::{BTreeMap, BTreeSet};

use super::machine_id::MachineId;
use super::model::{Job, Machine};
use crate::unit::{Requirements, UnitName, unmet};

/// The units that count on a machine: those placed there, and the global ones that run there;
/// all active.
pub trait Neighbours {
    /// Whether a unit of that name is among them.
    fn has(&self, unit: &str) -> bool;

    /// Whether one of them, other than the unit itself, must not be beside it: by what it says of
    /// them or they of it.
    fn conflicts(&self, unit: &UnitName, requirements: &Requirements) -> bool;
}

/// The first requirement that a machine does not meet, in the order in which they are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal<'a> {
    /// It asks for this machine, which is another.
    MachineId(&'a str),
    /// It asks for metadata that the machine does not have; the first such key, and the values that it asks for.
    Metadata(&'a str, &'a BTreeSet<String>),
    /// It follows this unit, which is not there.
    MachineOf(&'a str),
    /// A conflicting unit runs there.
    Conflict,
    /// The machine takes no further units.
    Cordoned,
}

/// Whether a unit may run on a machine beside these units. That one of them is to be replaced by
/// it, or replaces it, does not speak against it.
///
/// A global unit follows nobody: `MachineOf` and `Global` do not go together.
///
/// # Errors
/// What speaks against it.
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

/// Units on one machine, as a plain list: for few of them.
#[derive(Debug, Clone, Default)]
pub struct Beside<'a>(Vec<(&'a UnitName, &'a Requirements)>);

impl<'a> Beside<'a> {
    /// These active units, placed on the machine.
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

/// The global units that belong on a machine, by name, given the units that are placed there and
/// all global units, by name. What is inactive among either is passed over.
///
/// Who is placed there stays, whichever of the two speaks against the other; among global units
/// the first by name does.
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
