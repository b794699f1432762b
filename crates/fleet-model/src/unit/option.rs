//! One line of a unit file.

use serde::{Deserialize, Serialize};

/// An assignment in a section: `[section]`, `name=value`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct UnitOption {
    /// The section it stands in, without brackets.
    pub section: String,
    /// What is set.
    pub name: String,
    /// To what. Where the line goes on in the next one, `\` and the newline are part of it.
    pub value: String,
}

impl UnitOption {
    /// The option with these parts.
    pub fn new(section: &str, name: &str, value: &str) -> Self {
        Self {
            section: section.to_owned(),
            name: name.to_owned(),
            value: value.to_owned(),
        }
    }
}
