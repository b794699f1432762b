//! Metrics and log lines that follow from a change, emitted once it is committed.

use std::collections::HashSet;

use metrics::Counter;
use strum::VariantNames as _;

use super::unrequired_adapters::UnrequiredReport;
use hyperfleet_domain::aggregation::RECONCILED;
use hyperfleet_domain::audit::{Action, ChangeOrigin};
use hyperfleet_domain::condition_rules::Failure;
use hyperfleet_domain::lifecycle::Outcome;
use hyperfleet_domain::{
    Condition, ConditionStatus, EntityRegistry, ReportOutcome, ResourceId, ResourceState,
};

const RULE_FAILURES: &str = "hyperfleet_api_condition_rule_failures_total";
const STARTED: &str = "hyperfleet_api_reconciliation_started_total";
const AUDITED: &str = "hyperfleet_api_audit_entries_total";
const HARD_DELETES: &str = "hyperfleet_api_hard_deletes_total";
const FORCE_DELETES: &str = "hyperfleet_api_force_deletes_total";
const REPORTS: &str = "hyperfleet_api_reports_total";
const UNREQUIRED_REPORTS: &str = "hyperfleet_api_unrequired_reports_total";

/// Ids of removed resources that the log line of a force-delete names at most.
const LOGGED_IDS_MAX: usize = 100;

/// The effects of one change. Emitted after commit: a change that is rolled back never happened.
#[derive(Debug, Default)]
#[must_use = "effects that are not emitted are neither counted nor logged"]
pub(super) struct Effects {
    failures: Vec<Failure>,
    /// Each is incremented by one.
    counters: Vec<Counter>,
    unrequired: Option<UnrequiredReport>,
    force_deleted: Option<ForceDeleteLog>,
}

impl Effects {
    /// Effects of failed rules only.
    fn failed(failures: Vec<Failure>) -> Self {
        Self {
            failures,
            ..Self::default()
        }
    }

    fn audited(mut self, action: Action, kind: &str) -> Self {
        self.counters.push(audited(action.into_str()));
        match action {
            Action::HardDelete => self.counters.push(removed(HARD_DELETES, kind)),
            Action::ForceDelete => self.counters.push(removed(FORCE_DELETES, kind)),
            Action::Create | Action::Patch | Action::Delete => {}
        }
        self
    }

    /// A report was judged.
    pub(super) fn reported(state: &ResourceState, outcome: ReportOutcome) -> Self {
        Self {
            counters: vec![reported(&state.kind, outcome)],
            ..Self::default()
        }
    }

    /// Resources were removed by force.
    pub(super) fn force_deleted(log: ForceDeleteLog) -> Self {
        Self {
            force_deleted: Some(log),
            ..Self::default()
        }
    }

    /// A report was stored, perhaps of an adapter that the kind does not require.
    pub(super) fn stored(mut self, report: Option<UnrequiredReport>) -> Self {
        self.unrequired = report;
        self
    }

    /// Those that follow from the outcome of a decision on the resources `before`.
    pub(super) fn of(before: &[ResourceState], outcome: Outcome) -> Self {
        let was_pending: HashSet<_> = before
            .iter()
            .filter(|state| is_pending(&state.conditions))
            .map(|state| state.id)
            .collect();
        let mut effects = Self::failed(outcome.failures);
        for state in &outcome.saved {
            if !was_pending.contains(&state.id) && is_pending(&state.conditions) {
                let started = started(&state.kind, state.is_finalizing());
                effects.counters.push(started);
            }
        }
        for change in &outcome.changes {
            effects = effects.audited(change.action, &change.kind);
        }
        effects
    }

    /// Adds the effects of another change in the same transaction.
    pub(super) fn and(mut self, other: Self) -> Self {
        self.failures.extend(other.failures);
        self.counters.extend(other.counters);
        self.unrequired = self.unrequired.or(other.unrequired);
        self.force_deleted = self.force_deleted.or(other.force_deleted);
        self
    }

    /// Whether the change was committed is unknown.
    pub(super) fn end_unknown(self) {
        if let Some(log) = self.force_deleted {
            log.write(false);
        }
    }

    pub(super) fn emit(self) {
        if let Some(log) = self.force_deleted {
            log.write(true);
        }
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

/// The log line of a force-delete. The audit trail has an entry for each resource.
#[derive(Debug)]
pub(super) struct ForceDeleteLog {
    root: ResourceState,
    reason: String,
    caller: String,
    children: Vec<ResourceId>,
    owners: Vec<ResourceId>,
}

impl ForceDeleteLog {
    pub(super) fn of(
        root: &ResourceState,
        outcome: &Outcome,
        reason: &str,
        origin: &ChangeOrigin,
    ) -> Self {
        let removed_by = |action| {
            let changes = outcome.changes.iter().filter(|c| c.action == action);
            changes
                .map(|c| c.id)
                .filter(|id| *id != root.id)
                .collect::<Vec<_>>()
        };
        Self {
            children: removed_by(Action::ForceDelete),
            owners: removed_by(Action::HardDelete),
            root: root.clone(),
            reason: reason.to_owned(),
            caller: origin.actor.clone(),
        }
    }

    /// Writes the line, once the commit is known.
    ///
    /// If the database did not answer the COMMIT, the line says `committed=false`; the trail then has the truth.
    fn write(&self, is_committed: bool) {
        tracing::info!(
            resource_kind = self.root.kind,
            resource_id = %self.root.id,
            caller = self.caller,
            reason = self.reason,
            action = Action::ForceDelete.into_str(),
            children = self.children.len(),
            child_resource_ids = first_ids(&self.children),
            owner_resource_ids = first_ids(&self.owners),
            committed = is_committed,
            "Force-deleting resource"
        );
    }
}

/// The first ids, as many as a log line names.
fn first_ids(ids: &[ResourceId]) -> Option<String> {
    let first = ids.iter().take(LOGGED_IDS_MAX).map(ToString::to_string);
    (!ids.is_empty()).then(|| first.collect::<Vec<_>>().join(" "))
}

/// Creates every series of these kinds with the value 0: the first event of a new series would not show as growth.
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

/// Reports a failed rule, which does not stop the change.
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
        "condition rule failed"
    );
    failed(kind, rule).increment(1);
}

fn failed(kind: String, rule: String) -> Counter {
    metrics::counter!(RULE_FAILURES, "kind" => kind, "type" => rule)
}

fn started(kind: &str, is_deleting: bool) -> Counter {
    let (kind, is_deleting) = (resource_type(kind), is_deleting.to_string());
    metrics::counter!(STARTED, "resource_type" => kind, "is_delete" => is_deleting)
}

fn audited(action: &'static str) -> Counter {
    metrics::counter!(AUDITED, "action" => action)
}

/// Resources removed in one of two ways.
fn removed(name: &'static str, kind: &str) -> Counter {
    metrics::counter!(name, "resource_type" => resource_type(kind))
}

pub(super) fn reported(kind: &str, outcome: ReportOutcome) -> Counter {
    let kind = resource_type(kind);
    metrics::counter!(REPORTS, "resource_type" => kind, "outcome" => outcome.label())
}

fn unrequired(kind: &str) -> Counter {
    metrics::counter!(UNREQUIRED_REPORTS, "resource_type" => resource_type(kind))
}

/// The kind as metrics show it: the older service's gauges have `cluster`.
fn resource_type(kind: &str) -> String {
    kind.to_lowercase()
}

/// Whether a resource is known to differ from its desired state.
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

    #[test]
    fn a_line_names_the_first_ids_and_no_more() {
        let ids: Vec<ResourceId> = (0..150).map(|n| Uuid::from_u128(n).into()).collect();
        assert_eq!(first_ids(&[]), None);
        assert_eq!(first_ids(&ids[..2]), Some(format!("{} {}", ids[0], ids[1])));
        let named = first_ids(&ids).unwrap();
        assert_eq!(named.split(' ').count(), LOGGED_IDS_MAX);
    }
}
