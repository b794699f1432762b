//! Conditions: one typed fact each about a resource, with the moment it last changed.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

use super::moment;

/// Whether a condition holds. Resources show `True` and `False` only; adapters may say `Unknown`.
///
/// Clients spell it exactly so, case-sensitive.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, EnumString, IntoStaticStr,
)]
#[strum(const_into_str)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// The adapter cannot say yet.
    Unknown,
}

impl ConditionStatus {
    /// `True` or `False`.
    pub fn from_bool(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

/// One fact about a resource, computed from what its adapters report (`docs/concepts/conditions.md`).
///
/// Stored and shown in this very shape; members are in alphabetical order, as in every answer.
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
    /// How old the oldest evidence for this condition is.
    #[serde(rename = "last_updated_time")]
    #[serde(serialize_with = "moment::serialize")]
    pub last_updated_at: DateTime<Utc>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The generation that the status speaks of.
    pub observed_generation: i32,
    /// For programs, `PascalCase`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// What it is about, `PascalCase`, unique within a resource.
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
