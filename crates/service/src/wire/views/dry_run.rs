//! The member `dry_run`, which the response to a dry run has in addition to the members of the real response.

use std::ops::Not;

use serde::Serialize;
use utoipa::ToSchema;

use crate::wire::members::{AuditAction, ResourceConditionStatus};
use hyperfleet_domain::ConditionStatus;
use hyperfleet_domain::condition_rules::Failure;
use hyperfleet_domain::dry_run::{DryRunPlan, PlannedChange, PlannedCondition};

#[derive(Serialize, ToSchema)]
#[schema(as = DryRun, description = "What the request would change. Only in responses to dry runs.")]
pub(in crate::wire) struct DryRunView<'a> {
    /// The conditions that would appear, disappear or change their status.
    #[schema(max_items = 1000)]
    conditions: Vec<ConditionChangeView<'a>>,
    /// Number of all of these changes of conditions.
    #[schema(value_type = i32, minimum = 0)]
    conditions_total: usize,
    /// The changes that the audit trail would list, in its order.
    #[schema(max_items = 1000)]
    effects: Vec<EffectView<'a>>,
    /// Number of all effects.
    #[schema(value_type = i32, minimum = 0)]
    effects_total: usize,
    /// The rules of derived conditions that would fail. Absent when there are none.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(max_items = 1000)]
    failed_rules: Vec<FailedRuleView<'a>>,
    /// Number of all rules that would fail. Absent when there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i32>, minimum = 1)]
    failed_rules_total: Option<usize>,
    /// `true` if resources of other tenants, which are not listed, would also change. Absent otherwise.
    #[serde(skip_serializing_if = "Not::not")]
    hidden_effects: bool,
    /// `true` if a list has only its first 1000 entries. Absent otherwise.
    #[serde(skip_serializing_if = "Not::not")]
    partial: bool,
    /// Status of the real response.
    #[schema(value_type = i32)]
    status: u16,
}

#[derive(Serialize, ToSchema)]
#[schema(as = DryRunEffect, description = "One change of one resource, as the audit trail would list it.")]
pub(in crate::wire) struct EffectView<'a> {
    /// The kind of change.
    #[schema(value_type = AuditAction)]
    action: &'static str,
    /// The required adapters that would have to report on the new generation.
    adapters: &'a [String],
    /// Whether another resource could take the name afterwards.
    frees_name: bool,
    /// The generation after it; absent when the resource would be removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    generation_after: Option<i32>,
    /// The generation before it; absent when the resource would be new.
    #[serde(skip_serializing_if = "Option::is_none")]
    generation_before: Option<i32>,
    /// Kind of the resource.
    kind: &'a str,
    /// Its name.
    name: &'a str,
    /// Id of the resource. A real create assigns another id.
    resource_id: String,
}

#[derive(Serialize, ToSchema)]
#[schema(as = DryRunCondition, description = "A change of the status of one condition.")]
pub(in crate::wire) struct ConditionChangeView<'a> {
    /// Kind of the resource.
    kind: &'a str,
    /// Its name.
    name: &'a str,
    /// Id of the resource.
    resource_id: String,
    /// The status after the change; absent when the condition would disappear.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ResourceConditionStatus>)]
    status_after: Option<&'static str>,
    /// The status before the change; absent when the condition would be new.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ResourceConditionStatus>)]
    status_before: Option<&'static str>,
    /// Type of the condition.
    r#type: &'a str,
}

#[derive(Serialize, ToSchema)]
#[schema(as = DryRunFailedRule, description = "A rule of a derived condition that would fail: its condition stays as it is.")]
pub(in crate::wire) struct FailedRuleView<'a> {
    /// The error.
    error: &'a str,
    /// Kind of the resource.
    kind: &'a str,
    /// Id of the resource.
    resource_id: String,
    /// Type of the condition.
    r#type: &'a str,
}

#[derive(Serialize, ToSchema)]
#[schema(as = DryRunAnswer, description = "The response to the dry run of a request whose real response has no body.")]
pub(in crate::wire) struct PlanBody<'a> {
    dry_run: DryRunView<'a>,
}

/// The body of the answer to a dry run: the object of the real answer (`real`), with `dry_run` as its last member.
/// `status` is the status of the real response.
pub fn dry_run(real: Option<&[u8]>, status: u16, plan: &DryRunPlan) -> serde_json::Result<Vec<u8>> {
    let plan = PlanBody {
        dry_run: DryRunView::new(status, plan),
    };
    let plan = serde_json::to_vec(&plan)?;
    Ok(match real.and_then(|real| real.strip_suffix(b"}")) {
        None => plan,
        Some(members) => [members, b",", &plan[1..]].concat(),
    })
}

impl<'a> DryRunView<'a> {
    fn new(status: u16, plan: &'a DryRunPlan) -> Self {
        let failures = plan.failures.len();
        let totals = [plan.conditions.len(), plan.changes.len(), failures];
        Self {
            conditions: listed(&plan.conditions, condition),
            conditions_total: plan.conditions.len(),
            effects: listed(&plan.changes, effect),
            effects_total: plan.changes.len(),
            failed_rules: listed(&plan.failures, failed_rule),
            failed_rules_total: (failures > 0).then_some(failures),
            hidden_effects: plan.has_hidden,
            partial: totals.iter().any(|total| *total > DryRunPlan::LISTED_MAX),
            status,
        }
    }
}

/// The first entries of a list, up to the limit.
fn listed<'a, T, V>(all: &'a [T], view: impl Fn(&'a T) -> V) -> Vec<V> {
    all.iter().take(DryRunPlan::LISTED_MAX).map(view).collect()
}

fn effect(planned: &PlannedChange) -> EffectView<'_> {
    let change = &planned.change;
    EffectView {
        action: change.action.into_str(),
        adapters: &planned.adapters,
        frees_name: planned.frees_name,
        generation_after: change.generation_after,
        generation_before: change.generation_before,
        kind: &change.kind,
        name: &change.name,
        resource_id: change.id.to_string(),
    }
}

fn condition(planned: &PlannedCondition) -> ConditionChangeView<'_> {
    ConditionChangeView {
        kind: &planned.kind,
        name: &planned.name,
        resource_id: planned.id.to_string(),
        status_after: planned.after.as_ref().map(ConditionStatus::into_str),
        status_before: planned.before.as_ref().map(ConditionStatus::into_str),
        r#type: &planned.condition,
    }
}

fn failed_rule(failure: &Failure) -> FailedRuleView<'_> {
    FailedRuleView {
        error: &failure.error,
        kind: &failure.kind,
        resource_id: failure.id.to_string(),
        r#type: &failure.rule,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_real_answer_is_unchanged_byte_for_byte() {
        let plan = DryRunPlan::default();
        let without_body = dry_run(None, 204, &plan).unwrap();
        assert_eq!(
            String::from_utf8(without_body).unwrap(),
            r#"{"dry_run":{"conditions":[],"conditions_total":0,"effects":[],"effects_total":0,"status":204}}"#
        );
        let real = br#"{"spec":{"a": 1.50}}"#;
        let both = dry_run(Some(real), 200, &plan).unwrap();
        assert_eq!(
            String::from_utf8(both).unwrap(),
            r#"{"spec":{"a": 1.50},"dry_run":{"conditions":[],"conditions_total":0,"effects":[],"effects_total":0,"status":200}}"#
        );
    }

    #[test]
    fn long_lists_are_cut_and_counted() {
        let failure = Failure {
            kind: "Cluster".to_owned(),
            id: uuid::Uuid::nil().into(),
            rule: "Zone".to_owned(),
            error: "division by zero".to_owned(),
        };
        for (count, partial) in [
            (DryRunPlan::LISTED_MAX, None),
            (DryRunPlan::LISTED_MAX + 1, Some(true)),
        ] {
            let plan = DryRunPlan {
                failures: vec![failure.clone(); count],
                ..DryRunPlan::default()
            };
            let body: serde_json::Value =
                serde_json::from_slice(&dry_run(None, 204, &plan).unwrap()).unwrap();
            let said = &body["dry_run"];
            let listed = said["failed_rules"].as_array().unwrap().len();
            assert_eq!(listed, DryRunPlan::LISTED_MAX);
            assert_eq!(said["failed_rules_total"], count);
            assert_eq!(said["partial"].as_bool(), partial);
        }
    }
}
