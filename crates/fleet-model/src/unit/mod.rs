//! Units: names, files and requirements (`docs/reference/unit-files.md`).
//!
//! ```text
//! file ─▶ file, lexer ─▶ [UnitOption] ─▶ Options ─▶ text, hash
//!                             │             └─▶ validity, warnings
//!                             └─▶ fleet_section (+ name) ─▶ Requirements
//! ```
//!
//! `laws` states properties of any file.

mod desired;
pub mod file;
pub mod fleet_section;
mod glob;
#[cfg(any(test, feature = "laws"))]
#[path = "tests/laws.rs"]
pub mod laws;
mod lexer;
mod malformed;
mod name;
mod option;
mod options;
mod replacing;
mod requirements;
#[cfg(test)]
mod tests;
mod text;
pub mod validity;
mod warnings;

pub use desired::{ActiveTemplate, DesiredState, InvalidState};
pub use fleet_section::FleetSection;
pub use glob::Glob;
pub use name::{InvalidName, NameParts, UNIT_TYPES, UnitName};
pub use option::UnitOption;
pub use options::{InvalidOption, InvalidOptions, Options, SECTION_BYTES_MAX};
pub use replacing::Replacing;
pub use requirements::{MachineIdentity, Requirements, unmet};
pub use text::{UnitHash, canonical};
pub use warnings::OptionWarning;
