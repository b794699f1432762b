//! Conditions: typed facts about a resource, each with the time of its last change.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

use super::moment;

/// Whether a condition holds. Resources have `True` and `False` only; adapters may report `Unknown`.
///
/// Clients write it exactly like this, case-sensitive.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, EnumString, IntoStaticStr,
)]
#[strum(const_into_str)]
pub enum ConditionStatus {
    True,
    False,
    /// The adapter does not know yet.
    Unknown,
}

impl ConditionStatus {
    pub fn from_bool(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

/// One fact about a resource, computed from the reports of its adapters (`docs/concepts/conditions.md`).
///
/// Stored and returned in this form; members are in alphabetical order, as in every answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// When this type of condition first appeared on the resource.
    #[serde(rename = "created_time")]
    #[serde(serialize_with = "moment::serialize")]
    pub created_at: DateTime<Utc>,
    /// When `status` last changed, by the adapters' clocks; see [`super::aggregation`].
    #[serde(rename = "last_transition_time")]
    #[serde(serialize_with = "moment::serialize")]
    pub last_transition_at: DateTime<Utc>,
    /// Time of the oldest evidence for this condition.
    #[serde(rename = "last_updated_time")]
    #[serde(serialize_with = "moment::serialize")]
    pub last_updated_at: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The generation that the status is about.
    pub observed_generation: i32,
    /// For programs, `PascalCase`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub status: ConditionStatus,
    /// Type of the condition, `PascalCase`, unique within a resource.
    #[serde(rename = "type")]
    pub kind: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_in_its_exact_spelling() {
        for (text, status) in [
            ("True", Some(ConditionStatus::True)),
            ("False", Some(ConditionStatus::False)),
            ("Unknown", Some(ConditionStatus::Unknown)),
            ("true", None),
            ("", None),
        ] {
            assert_eq!(text.parse().ok(), status, "{text}");
        }
    }
}
