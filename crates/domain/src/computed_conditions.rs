//! Computes all conditions of a resource: the aggregated ones, then the ones that the rules of its kind derive, sorted
//! by type. Every change of a resource or its reports updates them.
//!
//! A kind without required adapters has no conditions until something reports, and none while it waits for its
//! children: its rules are not applied then.

use super::aggregation::{
    AggregationInput, LAST_KNOWN_RECONCILED, RECONCILED, adapter_condition_type, aggregate,
};
use super::condition_rules::{self, Facts, Failure, KindRules};
use super::{Condition, Entity, ReportState, ResourceState};

/// The input of a resource's conditions, beside its state.
pub(super) struct Evidence<'a> {
    /// The adapters that its kind requires.
    pub(super) required: &'a [String],
    pub(super) rules: Option<&'a KindRules>,
    pub(super) reports: &'a [ReportState],
    pub(super) has_children: bool,
    pub(super) facts: Option<&'a Facts>,
}

impl<'a> Evidence<'a> {
    /// Evidence without reports. `None` is a kind that is no longer configured.
    pub(super) fn of(entity: Option<&'a Entity>) -> Self {
        Self {
            required: entity.map_or(&[], |e| &e.required_adapters),
            rules: entity.and_then(|e| e.rules.as_deref()),
            reports: &[],
            has_children: false,
            facts: None,
        }
    }

    /// Updates all conditions. Returns the rules that failed.
    pub(super) fn aggregate_and_derive(&self, state: &mut ResourceState) -> Vec<Failure> {
        let aggregated = if self.required.is_empty() && state.is_finalizing() {
            Vec::new()
        } else {
            aggregate(&AggregationInput {
                generation: state.generation,
                updated_at: state.updated_at,
                is_deleting: state.is_finalizing(),
                has_children: self.has_children,
                required: self.required,
                reports: self.reports,
                previous: &state.conditions,
            })
        };
        let previous = std::mem::replace(&mut state.conditions, aggregated);
        self.derive(state, &previous)
    }

    /// Updates the derived conditions only. Returns the rules that failed.
    pub(super) fn derive(&self, state: &mut ResourceState, previous: &[Condition]) -> Vec<Failure> {
        let Some(rules) = self.rules else {
            return Vec::new();
        };
        state.conditions.retain(|c| self.is_aggregated(c));
        if self.required.is_empty() && (state.is_finalizing() || self.reports.is_empty()) {
            return Vec::new();
        }
        let Some(facts) = self.facts else {
            // They are read for every kind with rules. If not, the conditions stay.
            let derived = previous.iter().filter(|c| !self.is_aggregated(c));
            state.conditions.extend(derived.cloned());
            return Vec::new();
        };
        let derived = rules.derive(&condition_rules::RuleInput {
            state,
            facts,
            reports: self.reports,
            previous,
        });
        state.conditions.extend(derived.conditions);
        derived.failures
    }

    fn is_aggregated(&self, condition: &Condition) -> bool {
        let kind = condition.kind.as_str();
        kind == RECONCILED
            || kind == LAST_KNOWN_RECONCILED
            || self
                .required
                .iter()
                .any(|a| adapter_condition_type(a) == kind)
    }
}
