//! Units: what they are called, what their files say, and what they ask of machines
//! (`docs/fleet.md`; facts in seeds 000–003).

mod glob;
mod requirements;

pub use glob::Glob;
pub use requirements::{MachineIdentity, Requirements};
