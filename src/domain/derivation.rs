//! When the rules of a kind are applied: with every change of a resource or its reports, after the
//! aggregated conditions are known. Derived conditions follow these, sorted by type.
//!
//! A kind that no adapter works on has no conditions until something reports, and none while it waits
//! for its children (decision H15): its rules are not applied then.

use super::aggregation::{LAST_KNOWN_RECONCILED, RECONCILED, adapter_condition_type};
use super::lifecycle::Reported;
use super::mapping::{Data, Facts, Failure, Subject};
use super::{
    Condition, Entity, EntityRegistry, Report, ReportState, Resource, ResourceState, Standing,
};

/// Completes the conditions of a new resource. Gives the rules that failed, as all here do.
#[must_use]
pub fn created(entity: &Entity, resource: &mut Resource) -> Vec<Failure> {
    if entity.rules.is_none() {
        return Vec::new();
    }
    let facts = Facts::of(resource, std::collections::BTreeMap::default());
    apply(Some(entity), &mut resource.state, Some(&facts), &[], &[])
}

/// Completes the conditions of a patched resource. `standing` is what it was before, with its reports.
#[must_use]
pub fn patched(
    registry: &EntityRegistry,
    standing: &Standing,
    resource: &mut Resource,
) -> Vec<Failure> {
    let entity = registry.get(&resource.state.kind);
    let data = standing.facts.as_ref().map(|facts| facts.data.clone());
    let facts = data.map(|data| Facts::of(resource, data));
    apply(
        entity,
        &mut resource.state,
        facts.as_ref(),
        &standing.reports,
        &standing.state.conditions,
    )
}

/// Completes the conditions that an incoming report leads to.
#[must_use]
pub fn reported(
    registry: &EntityRegistry,
    standing: &Standing,
    incoming: &Report,
    reported: &mut Reported,
) -> Vec<Failure> {
    let entity = registry.get(&standing.state.kind);
    let Reported::Stored {
        report,
        conditions,
        completes: false,
    } = reported
    else {
        return Vec::new();
    };
    if entity.is_none_or(|e| e.rules.is_none()) {
        return Vec::new();
    }
    let mut reports = standing.reports.clone();
    reports.retain(|r| r.adapter != report.adapter);
    reports.push(report.clone());
    let facts = standing.facts.as_deref().map(|facts| {
        let mut facts = facts.clone();
        let data = Data::of(incoming.data.clone());
        facts.data.insert(report.adapter.clone(), data);
        facts
    });
    let mut state = standing.state.clone();
    state.conditions = std::mem::take(conditions);
    let previous = &standing.state.conditions;
    let failures = apply(entity, &mut state, facts.as_ref(), &reports, previous);
    *conditions = state.conditions;
    failures
}

/// Completes the conditions of a resource that a deletion changed, which are its aggregated ones as
/// they will be. `previous` are all of them as they were.
pub(super) fn settled(
    registry: &EntityRegistry,
    standing: &mut Standing,
    previous: &[Condition],
) -> Vec<Failure> {
    let Standing {
        state,
        reports,
        facts,
        ..
    } = standing;
    let entity = registry.get(&state.kind);
    apply(entity, state, facts.as_deref(), reports, previous)
}

/// Appends the derived conditions to the aggregated ones, which alone of its conditions are kept.
fn apply(
    entity: Option<&Entity>,
    state: &mut ResourceState,
    facts: Option<&Facts>,
    reports: &[ReportState],
    previous: &[Condition],
) -> Vec<Failure> {
    let Some((entity, rules)) = entity.and_then(|e| Some((e, e.rules.as_deref()?))) else {
        return Vec::new();
    };
    let required = &entity.required_adapters;
    state.conditions.retain(|c| is_aggregated(c, required));
    if !entity.is_reconcilable() && (state.is_finalizing() || reports.is_empty()) {
        return Vec::new();
    }
    let Some(facts) = facts else {
        // They are read for every kind with rules. If ever not, nothing is lost.
        let derived = previous.iter().filter(|c| !is_aggregated(c, required));
        state.conditions.extend(derived.cloned());
        return Vec::new();
    };
    let derived = rules.derive(&Subject {
        state,
        facts,
        reports,
        previous,
    });
    state.conditions.extend(derived.conditions);
    derived.failures
}

fn is_aggregated(condition: &Condition, required: &[String]) -> bool {
    let kind = condition.kind.as_str();
    kind == RECONCILED
        || kind == LAST_KNOWN_RECONCILED
        || required.iter().any(|a| adapter_condition_type(a) == kind)
}
