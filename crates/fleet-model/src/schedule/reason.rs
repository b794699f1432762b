//! Why a task is in a plan, in the words of the older fleet, because people search logs for them.

use std::fmt;

use super::machine_id::MachineId;
use crate::unit::{DesiredState, UnitName};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// Its desired state needs no machine.
    Inactive,
    /// The machine disappeared.
    MachineGone(MachineId),
    /// It needs a machine and is on none.
    NotPlaced(DesiredState),
    /// It requires another machine than this one.
    OtherMachine {
        machine: MachineId,
        /// The required machine.
        wanted: String,
    },
    /// The machine's metadata does not match its requirements any more.
    Metadata(MachineId),
    /// It follows a unit that is not on the machine.
    NoPeer {
        machine: MachineId,
        peer: String,
    },
    /// It excludes a unit there.
    Conflict {
        machine: MachineId,
        /// The first such unit there, by name.
        with: UnitName,
    },
    Drained(MachineId),
    /// An operator ordered moves from loaded machines to others.
    Rebalanced,
    /// A unit there replaces it.
    Replaced {
        machine: MachineId,
        /// The replacing unit, the first by name if there are several.
        by: UnitName,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unable = |f: &mut fmt::Formatter<'_>, machine: &MachineId| {
            write!(f, "target Machine({machine}) unable to run unit: ")
        };
        match self {
            Self::Inactive => f.write_str("target state inactive"),
            Self::MachineGone(machine) => write!(f, "target Machine({machine}) went away"),
            Self::NotPlaced(desired) => {
                let desired = desired.as_str();
                write!(f, "target state {desired} and unit not scheduled")
            }
            Self::OtherMachine { machine, wanted } => {
                unable(f, machine)?;
                write!(
                    f,
                    r#"agent ID "{machine}" does not match required "{wanted}""#
                )
            }
            Self::Metadata(machine) => {
                unable(f, machine)?;
                f.write_str("local Machine metadata insufficient")
            }
            Self::NoPeer { machine, peer } => {
                unable(f, machine)?;
                write!(f, "required peer Unit({peer}) is not scheduled locally")
            }
            Self::Conflict { machine, with } => {
                unable(f, machine)?;
                write!(f, "found conflict with locally-scheduled Unit([{with}])")
            }
            Self::Rebalanced => f.write_str("moved by request, for balance"),
            Self::Drained(machine) => write!(f, "target Machine({machine}) is being drained"),
            Self::Replaced { machine, by } => {
                unable(f, machine)?;
                write!(f, "found replace with locally-scheduled Unit({by})")
            }
        }
    }
}
