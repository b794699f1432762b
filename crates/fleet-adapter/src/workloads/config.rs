//! Configured workloads.

use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize};

pub const WORKLOADS_MAX: usize = 100;
/// Longest file of a workload, in bytes.
pub const FILE_BYTES_MAX: usize = 32 * 1024;

/// The units that resources of a kind need.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorkloadConfig {
    /// Kind of the resources, such as `NodePool`.
    pub kind: String,
    /// Boolean expression: whether the workload applies to a resource.
    #[serde(deserialize_with = "expression")]
    pub when: String,
    /// Integer expression: number of units.
    #[serde(deserialize_with = "expression")]
    pub replicas: String,
    /// Name of the units, with `${…}`.
    pub unit: String,
    /// File of the units, with `${…}`.
    pub file: String,
    /// How many replicas an update may make unavailable at a time.
    #[serde(alias = "maxUnavailable")]
    pub max_unavailable: u32,
    /// How long a service must be active to count as available.
    #[serde(alias = "minReadySeconds")]
    pub min_ready_seconds: u64,
}

impl Default for WorkloadConfig {
    fn default() -> Self {
        Self {
            kind: String::new(),
            when: "true".to_owned(),
            replicas: "1".to_owned(),
            unit: String::new(),
            file: String::new(),
            max_unavailable: 1,
            min_ready_seconds: 5,
        }
    }
}

/// Reads an expression. In YAML a boolean or number needs no quotes: `replicas: 3`.
fn expression<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    struct Expression;

    impl Visitor<'_> for Expression {
        type Value = String;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an expression")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
            Ok(text.to_owned())
        }

        fn visit_bool<E: Error>(self, value: bool) -> Result<String, E> {
            Ok(value.to_string())
        }

        fn visit_i64<E: Error>(self, value: i64) -> Result<String, E> {
            Ok(value.to_string())
        }

        fn visit_u64<E: Error>(self, value: u64) -> Result<String, E> {
            Ok(value.to_string())
        }
    }

    from.deserialize_any(Expression)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn expressions_that_are_bools_or_numbers_need_no_quotes() {
        let read = |value| WorkloadConfig::deserialize(value).unwrap();
        let plain = read(json!({"kind": "A", "when": true, "replicas": 3, "maxUnavailable": 2}));
        let quoted =
            read(json!({"kind": "A", "when": "true", "replicas": "3", "max_unavailable": 2}));
        assert_eq!(plain, quoted);
        assert_eq!(
            (plain.when.as_str(), plain.replicas.as_str()),
            ("true", "3")
        );
        assert!(WorkloadConfig::deserialize(json!({"replicas": [3]})).is_err());
        assert!(WorkloadConfig::deserialize(json!({"unknown": 1})).is_err());
    }
}
