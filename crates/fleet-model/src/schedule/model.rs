//! What decisions are made from, and what they are.

use std::collections::BTreeMap;

use super::machine_id::MachineId;
use super::reason::Reason;
use crate::unit::{DesiredState, Requirements, UnitName};

/// A machine that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Its id.
    pub id: MachineId,
    /// What it says of itself, and what was said of it later, as one.
    pub metadata: BTreeMap<String, String>,
}

/// A unit, as far as decisions go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Its name.
    pub name: UnitName,
    /// What it asks of machines.
    pub requirements: Requirements,
    /// What is wanted of it.
    pub desired: DesiredState,
    /// The machine that it is placed on, there or not. Means nothing for a global unit.
    pub placed_on: Option<MachineId>,
    /// Whether it stays where it is, or nowhere, whatever is asked: it is not the engine's to change.
    pub is_pinned: bool,
}

impl Job {
    /// Whether the engine looks for one machine for it.
    pub(super) fn is_placeable(&self) -> bool {
        self.desired.is_active() && !self.requirements.is_global
    }

    /// Whether it runs wherever it fits.
    pub(super) fn is_active_global(&self) -> bool {
        self.desired.is_active() && self.requirements.is_global
    }
}

/// Something that was seen to have changed. Seen twice, it changes nothing the second time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A machine is there, with this metadata: it has appeared, or its metadata has changed.
    Machine(Machine),
    /// A machine is no longer there.
    MachineGone(MachineId),
    /// Whether a machine is there cannot be told: nothing is placed on it, and what is to be active and is placed on it
    /// stays.
    MachineUnclear(MachineId),
    /// A unit is there: it has appeared, or its content or its placement has changed. An empty machine id would be one
    /// like any other.
    Unit(Job),
    /// A unit is no longer there, and neither is its placement.
    UnitGone(UnitName),
}

/// One thing for the engine to do with a unit. A plan either takes it from a machine or places it; to do both at once,
/// where that is possible, is the engine's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// The unit.
    pub unit: UnitName,
    /// The machine that it is taken from.
    pub from: Option<MachineId>,
    /// The machine that it is placed on.
    pub to: Option<MachineId>,
    /// Why.
    pub reason: Reason,
}
