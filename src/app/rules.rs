//! The configured rules that derive conditions: for which resources they need more to be read, and
//! what becomes of those that fail.

use super::Service;
use crate::domain::mapping::Failure;

/// How often a rule could not be computed, by kind and type of the condition.
const FAILURES: &str = "hyperfleet_api_condition_rule_failures_total";

impl Service {
    /// The kinds with rules, if a resource may be of one of them: it is of `kind`, or of any.
    pub(super) fn with_rules(&self, kind: Option<&str>) -> &[String] {
        match kind {
            Some(kind) if self.registry.rules(kind).is_none() => &[],
            _ => self.registry.kinds_with_rules(),
        }
    }

    /// The same for a resource with its family: the owners above it and what it owns.
    pub(super) fn family_with_rules(&self, kind: Option<&str>) -> &[String] {
        match kind {
            Some(kind) if !self.registry.family_has_rules(kind) => &[],
            _ => self.registry.kinds_with_rules(),
        }
    }
}

/// Logs and counts the rules that failed, once a change is made: it is made all the same.
pub(super) fn tell(failures: &[Failure]) {
    for failure in failures {
        let Failure {
            kind,
            id,
            rule,
            error,
        } = failure;
        tracing::warn!(
            resource_kind = kind,
            resource_id = %id,
            condition = rule,
            error,
            "A condition rule failed"
        );
        metrics::counter!(FAILURES, "kind" => kind.clone(), "type" => rule.clone()).increment(1);
    }
}
