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
    /// Whether it takes units.
    pub availability: Availability,
}

impl Machine {
    /// A machine that takes units.
    pub fn new(id: MachineId, metadata: BTreeMap<String, String>) -> Self {
        Self {
            id,
            metadata,
            availability: Availability::Open,
        }
    }
}

/// Whether a machine takes units. Global units run on every machine that fits, whatever this says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Availability {
    /// It takes units.
    #[default]
    Open,
    /// Its units stay, and no further unit is placed on it.
    Cordoned,
    /// Its units leave as soon as another machine can run them, and no further unit is placed on it.
    Draining,
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
    /// The machine that has yet to stop a unit that must never run twice. The unit is placed nowhere until then.
    pub stopping_on: Option<MachineId>,
}

impl Job {
    /// A unit that is the engine's to place and move.
    pub fn new(
        name: UnitName,
        requirements: Requirements,
        desired: DesiredState,
        placed_on: Option<MachineId>,
    ) -> Self {
        Self {
            name,
            requirements,
            desired,
            placed_on,
            is_pinned: false,
            stopping_on: None,
        }
    }

    /// Whether the engine looks for one machine for it.
    pub(super) fn is_placeable(&self) -> bool {
        self.desired.is_active() && !self.requirements.is_global
    }

    /// Whether it runs wherever it fits.
    pub(super) fn is_active_global(&self) -> bool {
        self.desired.is_active() && self.requirements.is_global
    }

    /// Whether it is on no machine and may be placed on one.
    pub(super) fn is_unplaced(&self) -> bool {
        self.is_placeable()
            && !self.is_pinned
            && self.stopping_on.is_none()
            && self.placed_on.is_none()
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
