//! Units: what they are called, what their files say, and what they ask of machines
//! (`docs/fleet.md`; facts in seeds 000–003).

mod glob;
mod name;
mod requirements;

pub use glob::Glob;
pub use name::{InvalidName, NameParts, UnitName, UnitType};
pub use requirements::{MachineIdentity, Requirements};
