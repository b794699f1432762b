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

#[cfg(test)]
mod tests {
    use metrics_util::debugging::{DebugValue, DebuggingRecorder};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn failures_are_counted_by_kind_and_type() {
        let failure = |rule: &str| Failure {
            kind: "Cluster".to_owned(),
            id: Uuid::nil().into(),
            rule: rule.to_owned(),
            error: "division by zero".to_owned(),
        };
        let recorder = DebuggingRecorder::new();
        metrics::with_local_recorder(&recorder, || {
            tell(&[failure("Zone"), failure("Quota")]);
            tell(&[failure("Zone")]);
            tell(&[]);
        });
        let counted = recorder.snapshotter().snapshot().into_vec().into_iter();
        let mut counted: Vec<_> = counted
            .map(|(key, _, _, value)| {
                let labels = key.key().labels();
                let labels: Vec<_> = labels
                    .map(|l| format!("{}={}", l.key(), l.value()))
                    .collect();
                (key.key().name().to_owned(), labels.join(","), value)
            })
            .collect();
        counted.sort_by(|a, b| a.1.cmp(&b.1));
        let expected = |kind: &str, count| {
            let labels = format!("kind=Cluster,type={kind}");
            (FAILURES.to_owned(), labels, DebugValue::Counter(count))
        };
        assert_eq!(counted, [expected("Quota", 1), expected("Zone", 2)]);
    }
}
