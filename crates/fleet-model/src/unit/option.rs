//! One option of a unit file.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One line of a unit file.
// An assignment in a section: `[section]`, `name=value`. In a continued line, `\` and the newline are part of the value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(expecting = "an object")]
pub struct UnitOption {
    /// Name of the option.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schema(required = false, example = "ExecStart")]
    pub name: String,
    /// Section without brackets.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schema(required = false, example = "Service")]
    pub section: String,
    /// Value of the option.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schema(required = false, example = "/usr/bin/sleep infinity")]
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
