//! Builders of test data, with defaults for everything that a fact is not about.

use chrono::{DateTime, Utc};
use serde_json::Map;
use uuid::Uuid;

use crate::audit::ChangeOrigin;
use crate::entity_config::{self, EntityConfig, ReferenceConfig};
use crate::lifecycle::{self, Draft, Family, LifecycleRefusal, Patch, ReportDecision};
use crate::report::{APPLIED, AVAILABLE, FINALIZED, HEALTH};
use crate::{
    Condition, ConditionStatus, Deletion, Entity, EntityRegistry, Labels, References, Report,
    ReportState, ReportedCondition, Resource, ResourceId, ResourceName, ResourceSnapshot, Tenancy,
};

/// A time, in seconds after the start of all tests.
pub(super) fn at(second: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_767_225_600 + second, 0).expect("tests are short")
}

pub(super) fn id(number: u128) -> ResourceId {
    ResourceId::from(Uuid::from_u128(number))
}

pub(super) fn origin(second: i64) -> ChangeOrigin {
    origin_of("alice", second)
}

pub(super) fn origin_of(actor: &str, second: i64) -> ChangeOrigin {
    ChangeOrigin {
        actor: actor.to_owned(),
        request_id: "request".to_owned(),
        at: at(second),
    }
}

/// The adapters that a kind requires; none for an unconfigured kind.
pub(super) fn required<'a>(registry: &'a EntityRegistry, kind: &str) -> &'a [String] {
    registry.get(kind).map_or(&[], |e| &e.required_adapters)
}

/// A kind with the plural that its name suggests.
pub(super) fn kind(kind: &str, required_adapters: &[&str]) -> EntityConfig {
    EntityConfig {
        kind: kind.to_owned(),
        plural: format!("{}s", kind.to_lowercase()),
        required_adapters: required_adapters.iter().map(ToString::to_string).collect(),
        ..EntityConfig::default()
    }
}

/// A kind that another one owns.
pub(super) fn child_kind(
    name: &str,
    parent: &str,
    on_parent_delete: &str,
    required_adapters: &[&str],
) -> EntityConfig {
    EntityConfig {
        parent_kind: parent.to_owned(),
        on_parent_delete: serde_json::from_value(on_parent_delete.into()).unwrap(),
        ..kind(name, required_adapters)
    }
}

pub(super) fn link(ref_type: &str, target_kind: &str, min: usize, max: usize) -> ReferenceConfig {
    ReferenceConfig {
        ref_type: ref_type.to_owned(),
        target_kind: target_kind.to_owned(),
        min,
        max,
    }
}

pub(super) fn registry(kinds: &[EntityConfig]) -> EntityRegistry {
    entity_config::registry(kinds).expect("the kinds of a test fit together")
}

/// A new resource without labels or links, named after its number.
pub(super) fn resource(
    registry: &EntityRegistry,
    kind: &str,
    number: u128,
    owner: Option<u128>,
) -> Resource {
    let draft = Draft {
        id: id(number),
        name: ResourceName::stored(format!("r{number}")),
        owner: owner.map(id),
        spec: Map::new(),
        labels: Labels::default(),
        references: References::new(),
        tenancy: Tenancy::new(),
    };
    let entity = registry.get(kind).expect("a kind of the test");
    lifecycle::create(entity, draft, &origin(0)).0
}

/// A new resource without reports and children.
pub(super) fn snapshot(
    registry: &EntityRegistry,
    kind: &str,
    number: u128,
    owner: Option<u128>,
) -> ResourceSnapshot {
    ResourceSnapshot {
        state: resource(registry, kind, number, owner).state,
        reports: Vec::new(),
        children: 0,
        facts: None,
    }
}

/// The same resource after a DELETE at second 5.
pub(super) fn finalizing(mut snapshot: ResourceSnapshot) -> ResourceSnapshot {
    snapshot.state.generation += 1;
    snapshot.state.updated_at = at(5);
    snapshot.state.deletion = Some(Deletion {
        at: at(5),
        by: "bob".to_owned(),
    });
    snapshot
}

/// The same resource with a report of that adapter, at its generation, with `Finalized=True`.
pub(super) fn finalized_by(mut snapshot: ResourceSnapshot, adapter: &str) -> ResourceSnapshot {
    let generation = snapshot.state.generation;
    let stored = finalized(adapter, generation, 6);
    snapshot.reports.push(stored);
    snapshot
}

/// A stored report with `Finalized=True`.
pub(super) fn finalized(adapter: &str, observed_generation: i32, second: i64) -> ReportState {
    let conditions = [AVAILABLE, APPLIED, HEALTH, FINALIZED];
    ReportState {
        adapter: adapter.to_owned(),
        observed_generation,
        created_at: at(second),
        reported_at: at(second),
        conditions: conditions
            .map(|kind| ReportedCondition {
                last_transition_at: at(second),
                message: None,
                reason: None,
                status: ConditionStatus::from_bool(kind != AVAILABLE),
                kind: kind.to_owned(),
            })
            .into(),
    }
}

/// A family without ancestors. `descendants` name their owners themselves.
pub(super) fn family(root: ResourceSnapshot, descendants: Vec<ResourceSnapshot>) -> Family {
    Family {
        ancestors: Vec::new(),
        root,
        descendants,
    }
}

/// A report with the mandatory conditions: `Available` has the status `available`, the others are true.
pub(super) fn report(
    adapter: &str,
    observed_generation: i32,
    second: i64,
    available: ConditionStatus,
) -> Report {
    let mut state = ReportState {
        adapter: adapter.to_owned(),
        observed_generation,
        created_at: at(second),
        reported_at: at(second),
        conditions: [
            (AVAILABLE, available),
            (APPLIED, ConditionStatus::True),
            (HEALTH, ConditionStatus::True),
        ]
        .map(|(kind, status)| observed(kind, status))
        .into(),
    };
    state.follow(None);
    Report {
        state,
        data: Map::new(),
        metadata: None,
    }
}

/// The decision about a report on a resource whose kind requires these adapters, and the stored report.
pub(super) fn reported(
    snapshot: &ResourceSnapshot,
    required: &[String],
    report: &Report,
) -> (ReportDecision, ReportState) {
    let mut report = report.clone();
    let decision = lifecycle::report(snapshot, Some(&waiting_for(required)), &mut report);
    (decision, report.state)
}

/// The patched resource, without reports, of a kind that requires these adapters.
pub(super) fn patched(
    resource: &Resource,
    patch: &Patch,
    required: &[String],
    origin: &ChangeOrigin,
) -> Result<Option<Resource>, LifecycleRefusal> {
    let entity = waiting_for(required);
    let patched = lifecycle::patch(resource, None, Some(&entity), patch, origin)?;
    Ok(patched.map(|(resource, _)| resource))
}

fn waiting_for(required: &[String]) -> Entity {
    let required: Vec<_> = required.iter().map(String::as_str).collect();
    let registry = registry(&[kind("Kind", &required)]);
    registry.entities()[0].clone()
}

/// The same report with the condition `Finalized`.
pub(super) fn saying_finalized(mut report: Report, status: ConditionStatus) -> Report {
    let mut condition = observed(FINALIZED, status);
    condition.last_transition_at = report.state.reported_at;
    report.state.conditions.push(condition);
    report
}

fn observed(kind: &str, status: ConditionStatus) -> ReportedCondition {
    ReportedCondition {
        last_transition_at: at(0),
        message: None,
        reason: Some(format!("{kind}Reason")),
        status,
        kind: kind.to_owned(),
    }
}

/// The condition of that type.
pub(super) fn condition<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|c| c.kind == kind)
}
