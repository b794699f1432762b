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
    /// A unit is there, with this content: it has appeared, or its content was replaced. Its
    /// placement stays as it is.
    Unit {
        /// Its name.
        unit: UnitName,
        /// What it asks for now.
        requirements: Requirements,
        /// What is wanted of it now.
        desired: DesiredState,
    },
    /// A unit is no longer there, and neither is its placement.
    UnitGone(UnitName),
    /// A unit is placed on this machine, or on none (an empty id is none). Of a unit that is not
    /// known, this says nothing.
    Placed {
        /// Its name.
        unit: UnitName,
        /// Where it is placed.
        machine: Option<MachineId>,
    },
}

/// One thing for the engine to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Task {
    /// Place a unit that is placed nowhere.
    Place {
        /// The unit.
        unit: UnitName,
        /// Where to.
        machine: MachineId,
        /// Why.
        reason: Reason,
    },
    /// Take a unit from the machine that it is placed on.
    Withdraw {
        /// The unit.
        unit: UnitName,
        /// Where from.
        machine: MachineId,
        /// Why.
        reason: Reason,
    },
}

impl Task {
    /// The unit that it is about.
    pub fn unit(&self) -> &UnitName {
        match self {
            Self::Place { unit, .. } | Self::Withdraw { unit, .. } => unit,
        }
    }

    /// The machine that it is about.
    pub fn machine(&self) -> &MachineId {
        match self {
            Self::Place { machine, .. } | Self::Withdraw { machine, .. } => machine,
        }
    }
}

/// What to do, in this order. A unit is withdrawn at most once, placed at most once, and never
/// placed where it was withdrawn from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// The tasks.
    pub tasks: Vec<Task>,
}
