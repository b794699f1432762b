//! Rules, as configured.

use serde::{Deserialize, Serialize};

/// Longest type of a condition, in bytes.
pub const TYPE_BYTES_MAX: usize = 100;

/// One entry of a kind's `conditions` list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct RuleConfig {
    /// Type of the condition, `PascalCase`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether the condition exists now.
    pub when: ExpressionConfig,
    pub output: OutputConfig,
}

/// The content of a derived condition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct OutputConfig {
    /// `True` or `False`, as a text or a bool.
    pub status: ExpressionConfig,
    /// For programs.
    pub reason: ExpressionConfig,
    /// For people.
    pub message: ExpressionConfig,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ExpressionConfig {
    /// In CEL.
    pub expression: String,
}
