//! One option of a unit file.

use serde::{Deserialize, Serialize};

/// An assignment in a section: `[section]`, `name=value`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct UnitOption {
    /// Without brackets.
    pub section: String,
    pub name: String,
    /// In a continued line, `\` and the newline are part of it.
    pub value: String,
}

impl UnitOption {
    pub fn new(section: &str, name: &str, value: &str) -> Self {
        Self {
            section: section.to_owned(),
            name: name.to_owned(),
            value: value.to_owned(),
        }
    }
}
