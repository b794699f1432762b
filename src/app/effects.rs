//! Metrics and log lines that follow from a change, emitted once it is committed.

use std::collections::HashSet;

use metrics::Counter;
use strum::VariantNames as _;

use super::Error;
use super::unrequired_adapters::UnrequiredReport;
use crate::domain::aggregation::RECONCILED;
use crate::domain::audit::Action;
use crate::domain::lifecycle::Outcome;
use crate::domain::mapping::Failure;
use crate::domain::{
    Condition, ConditionStatus, EntityRegistry, ReportOutcome, Resource, ResourceState,
};
use crate::storage::postgres::Tx;

const RULE_FAILURES: &str = "hyperfleet_api_condition_rule_failures_total";
const STARTED: &str = "hyperfleet_api_reconciliation_started_total";
const AUDITED: &str = "hyperfleet_api_audit_entries_total";
const HARD_DELETES: &str = "hyperfleet_api_hard_deletes_total";
const FORCE_DELETES: &str = "hyperfleet_api_force_deletes_total";
const REPORTS: &str = "hyperfleet_api_reports_total";
const UNREQUIRED_REPORTS: &str = "hyperfleet_api_unrequired_reports_total";

/// What follows from one change. Emitted after commit: a change that is rolled back never happened.
#[derive(Debug, Default)]
#[must_use = "effects that are not emitted are neither counted nor logged"]
pub(super) struct Effects {
    failures: Vec<Failure>,
    /// Each of them goes up by one.
    counters: Vec<Counter>,
    unrequired: Option<UnrequiredReport>,
}

/// Ends the transaction of a change, and emits its effects if it was committed.
pub(super) async fn commit<T>(tx: Tx<'_>, result: Result<(T, Effects), Error>) -> Result<T, Error> {
    let (changed, effects) = tx.finish(result).await?;
    effects.emit();
    Ok(changed)
}

impl Effects {
    /// The rules that failed, and nothing else yet.
    pub(super) fn failed(failures: Vec<Failure>) -> Self {
        Self {
            failures,
            ..Self::default()
        }
    }

    /// One resource has other conditions than before.
    pub(super) fn moved(
        mut self,
        state: &ResourceState,
        before: &[Condition],
        after: &[Condition],
    ) -> Self {
        if !is_pending(before) && is_pending(after) {
            let started = started(&state.kind, state.is_finalizing());
            self.counters.push(started);
        }
        self
    }

    /// One entry of the audit trail.
    pub(super) fn audited(mut self, action: Action, kind: &str) -> Self {
        self.counters.push(audited(action.into_str()));
        match action {
            Action::HardDelete => self.counters.push(removed(HARD_DELETES, kind)),
            Action::ForceDelete => self.counters.push(removed(FORCE_DELETES, kind)),
            Action::Create | Action::Patch | Action::Delete => {}
        }
        self
    }

    /// A report was taken in.
    pub(super) fn reported(mut self, state: &ResourceState, outcome: ReportOutcome) -> Self {
        self.counters.push(reported(&state.kind, outcome));
        self
    }

    /// The report was stored, and the kind may not require its adapter.
    pub(super) fn stored(mut self, report: Option<UnrequiredReport>) -> Self {
        self.unrequired = report;
        self
    }

    /// A new resource.
    pub(super) fn created(resource: &Resource, failures: Vec<Failure>) -> Self {
        let state = &resource.state;
        Self::failed(failures)
            .moved(state, &[], &state.conditions)
            .audited(Action::Create, &state.kind)
    }

    /// A resource is not as it was.
    pub(super) fn patched(before: &Resource, after: &Resource, failures: Vec<Failure>) -> Self {
        let state = &after.state;
        Self::failed(failures)
            .moved(state, &before.state.conditions, &state.conditions)
            .audited(Action::Patch, &state.kind)
    }

    /// What was carried out on resources that were `before`.
    pub(super) fn effects_of<'a>(
        before: impl IntoIterator<Item = &'a ResourceState>,
        outcome: Outcome,
    ) -> Self {
        let was_pending: HashSet<_> = before
            .into_iter()
            .filter(|state| is_pending(&state.conditions))
            .map(|state| state.id)
            .collect();
        let mut effects = Self::failed(outcome.failures);
        for state in &outcome.saved {
            if !was_pending.contains(&state.id) {
                effects = effects.moved(state, &[], &state.conditions);
            }
        }
        for change in &outcome.changes {
            effects = effects.audited(change.action, &change.kind);
        }
        effects
    }

    /// The same, with what followed from something else in the same transaction.
    pub(super) fn and(mut self, other: Self) -> Self {
        self.failures.extend(other.failures);
        self.counters.extend(other.counters);
        self.unrequired = self.unrequired.or(other.unrequired);
        self
    }

    /// Counts and logs all of it.
    pub(super) fn emit(self) {
        for failure in self.failures {
            emit_failure(failure);
        }
        for counter in self.counters {
            counter.increment(1);
        }
        if let Some(report) = self.unrequired {
            unrequired(&report.kind).increment(1);
            report.warn();
        }
    }
}

/// Shows every series that can be counted here, at 0: a first event would not be seen as growth of a
/// series that it brings along.
pub(super) fn count_from_zero(registry: &EntityRegistry) {
    for action in Action::VARIANTS {
        audited(action).absolute(0);
    }
    for entity in registry.entities() {
        let kind = &entity.kind;
        for is_deleting in [false, true] {
            started(kind, is_deleting).absolute(0);
        }
        for name in [HARD_DELETES, FORCE_DELETES] {
            removed(name, kind).absolute(0);
        }
        for outcome in ReportOutcome::ALL {
            reported(kind, outcome).absolute(0);
        }
        unrequired(kind).absolute(0);
        for rule in entity.rules.iter().flat_map(|rules| rules.types()) {
            failed(kind.clone(), rule.to_owned()).absolute(0);
        }
    }
}

/// A rule that failed: the change is made all the same.
fn emit_failure(failure: Failure) {
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
    failed(kind, rule).increment(1);
}

/// Rules that failed.
fn failed(kind: String, rule: String) -> Counter {
    metrics::counter!(RULE_FAILURES, "kind" => kind, "type" => rule)
}

/// Resources that stopped being reconciled.
fn started(kind: &str, is_deleting: bool) -> Counter {
    let (kind, is_deleting) = (resource_type(kind), is_deleting.to_string());
    metrics::counter!(STARTED, "resource_type" => kind, "is_delete" => is_deleting)
}

/// Entries of the audit trail.
fn audited(action: &'static str) -> Counter {
    metrics::counter!(AUDITED, "action" => action)
}

/// Resources that are gone, by one of two ways.
fn removed(name: &'static str, kind: &str) -> Counter {
    metrics::counter!(name, "resource_type" => resource_type(kind))
}

/// What became of reports.
pub(super) fn reported(kind: &str, outcome: ReportOutcome) -> Counter {
    let kind = resource_type(kind);
    metrics::counter!(REPORTS, "resource_type" => kind, "outcome" => outcome.label())
}

/// Stored reports of adapters that the kind does not require.
fn unrequired(kind: &str) -> Counter {
    metrics::counter!(UNREQUIRED_REPORTS, "resource_type" => resource_type(kind))
}

/// The kind as metrics show it: the older service's gauges say `cluster`.
fn resource_type(kind: &str) -> String {
    kind.to_lowercase()
}

/// Whether a resource is known to be other than wanted.
fn is_pending(conditions: &[Condition]) -> bool {
    let mut reconciled = conditions.iter().filter(|c| c.kind == RECONCILED);
    reconciled.any(|c| c.status == ConditionStatus::False)
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
            Effects::failed(vec![failure("Zone"), failure("Quota")]).emit();
            Effects::failed(vec![failure("Zone")]).emit();
            Effects::default().emit();
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
            (RULE_FAILURES.to_owned(), labels, DebugValue::Counter(count))
        };
        assert_eq!(counted, [expected("Quota", 1), expected("Zone", 2)]);
    }
}
