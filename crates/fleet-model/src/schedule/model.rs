//! Input and output of decisions.

use std::collections::BTreeMap;

use super::machine_id::MachineId;
use super::reason::Reason;
use crate::unit::{DesiredState, Requirements, UnitName};

/// An existing machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    pub id: MachineId,
    /// Configured metadata and labels combined.
    pub metadata: BTreeMap<String, String>,
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

/// Whether a machine takes units. Global units run on every matching machine, whatever its availability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Availability {
    #[default]
    Open,
    /// Its units stay, and no further unit is placed on it.
    Cordoned,
    /// Its units leave as soon as another machine can run them, and no further unit is placed on it.
    Draining,
}

/// The part of a unit that decisions need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    pub name: UnitName,
    pub requirements: Requirements,
    pub desired: DesiredState,
    /// The machine that it is placed on, existing or not. Unused for a global unit.
    pub placed_on: Option<MachineId>,
    /// Whether it must stay where it is, or unplaced, whatever its requirements: the engine must not change it.
    pub is_pinned: bool,
    /// The machine that has not stopped this singleton yet. The unit stays unplaced until then.
    pub stopping_on: Option<MachineId>,
}

impl Job {
    /// A unit that the engine may place and move.
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

    /// Whether the engine chooses one machine for it.
    pub(super) fn is_placeable(&self) -> bool {
        self.desired.is_active() && !self.requirements.is_global
    }

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

/// An observed change. Applying it twice has no further effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClusterChange {
    /// A machine appeared, or its metadata changed.
    Machine(Machine),
    /// A machine disappeared.
    MachineGone(MachineId),
    /// It is unknown whether a machine exists: nothing is placed on it, and active units that are placed on it
    /// stay.
    MachineUnclear(MachineId),
    /// A unit appeared, or its content or placement changed. An empty machine id is an id like any other.
    Unit(Job),
    /// A unit and its placement disappeared.
    UnitGone(UnitName),
}

/// One change for the engine to make. A plan either takes a unit from a machine or places it. The engine
/// combines both into one step where it can.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    pub unit: UnitName,
    /// The machine that it leaves.
    pub from: Option<MachineId>,
    /// The machine that it is placed on.
    pub to: Option<MachineId>,
    pub reason: Reason,
}

impl Task {
    /// The machine whose absence is the reason of the task. If that machine has come back meanwhile, the task must
    /// not be carried out: the machine may run the unit.
    pub fn lost_machine(&self) -> Option<&MachineId> {
        match &self.reason {
            Reason::MachineGone(machine) => Some(machine),
            _ => None,
        }
    }
}
