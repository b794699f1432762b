//! The answer of `…/{id}/explain`.

use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use super::{LinkView, Views};
use crate::wire::members::{
    AdapterCondition, ExplanationAdapterState, ExplanationRuleState, ResourceConditionStatus,
};
use hyperfleet_domain::explain::{
    AdapterProgress, BlockedDeletion, BlockingChild, BlockingReferrer, ConditionOrigin, Kin,
    ResourceExplanation,
};
use hyperfleet_domain::{ReportedCondition, moment};

#[derive(Serialize, ToSchema)]
#[schema(as = Explanation, description = "What a resource waits for, since when, and what prevents its deletion.")]
pub(in crate::wire) struct ResourceExplanationView<'a> {
    /// The required adapters, in the order of the configuration, then others that have reported.
    adapters: Vec<AdapterProgressView<'a>>,
    children: BlockingChildrenView<'a>,
    /// Conditions that rules derive, and conditions that the present configuration does not explain.
    conditions: Vec<ConditionOriginView<'a>>,
    /// The caller that requested the deletion; absent before.
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted_by: Option<&'a str>,
    /// Time of the first request to delete the resource; absent before.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "moment::serialize_some")]
    deleted_time: Option<DateTime<Utc>>,
    deletion: BlockedDeletionView<'a>,
    /// When the explanation was computed.
    #[serde(serialize_with = "moment::serialize")]
    explained_time: DateTime<Utc>,
    /// Number of the desired state.
    #[schema(minimum = 1)]
    generation: i32,
    /// Path of the resource.
    href: String,
    /// Id of the resource.
    id: String,
    /// Kind of the resource.
    kind: &'a str,
    /// Name of the resource.
    name: &'a str,
    referrers: BlockingReferrersView<'a>,
    /// The explanation in one sentence.
    summary: &'a str,
    /// Whether the resource waits for anything.
    waits: bool,
    /// Since when the resource waits; absent if it waits for nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "moment::serialize_some")]
    waits_since_time: Option<DateTime<Utc>>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ExplanationAdapter, description = "The progress of one adapter with the resource.")]
pub(in crate::wire) struct AdapterProgressView<'a> {
    /// Name of the adapter.
    #[schema(example = "validation")]
    adapter: &'a str,
    /// The condition that `state` follows from, as the adapter reported it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<AdapterCondition>)]
    condition: Option<&'a ReportedCondition>,
    /// `observed_time` of the latest accepted report; absent before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "moment::serialize_some")]
    last_report_time: Option<DateTime<Utc>>,
    /// The generation of the latest accepted report; absent before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    observed_generation: Option<i32>,
    /// The same in words.
    sentence: &'a str,
    /// Since when the adapter is in this state; time of its first report if it is not required.
    #[serde(serialize_with = "moment::serialize")]
    since_time: DateTime<Utc>,
    /// Whether the latest accepted report is more than 30 minutes old.
    stale: bool,
    #[schema(value_type = ExplanationAdapterState)]
    state: &'static str,
    /// Whether the resource waits for the adapter.
    waited_for: bool,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ExplanationChildren, description = "Descendants that block the deletion: all of a finalizing resource; \
    of an active one those that a DELETE is refused for.")]
pub(in crate::wire) struct BlockingChildrenView<'a> {
    /// How many of `total` belong to other tenants.
    #[schema(value_type = i32, minimum = 0)]
    hidden: usize,
    /// The first 20 that the caller may see, nearest first.
    items: Vec<BlockingChildView<'a>>,
    /// Whether there may be more: 1000 descendants are checked at most, on 16 levels.
    partial: bool,
    /// Number of all.
    #[schema(value_type = i32, minimum = 0)]
    total: usize,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ExplanationChild, description = "A descendant that blocks the deletion.")]
pub(in crate::wire) struct BlockingChildView<'a> {
    /// Time of the first request to delete the descendant; absent before.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "moment::serialize_some")]
    deleted_time: Option<DateTime<Utc>>,
    /// Path of the descendant; with `/explain` it says what the descendant waits for.
    href: String,
    /// Id of the descendant.
    id: String,
    /// Kind of the descendant.
    kind: &'a str,
    /// 1 for a child, 2 for a child of a child.
    #[schema(value_type = i32, minimum = 1)]
    level: usize,
    /// Message of the descendant's condition `Reconciled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    /// Name of the descendant.
    name: &'a str,
    /// Reason of the descendant's condition `Reconciled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    /// The same in words.
    sentence: &'a str,
    /// When the desired state of the descendant last changed.
    #[serde(serialize_with = "moment::serialize")]
    updated_time: DateTime<Utc>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ExplanationReferrers, description = "References that a DELETE is refused for, to the resource or to its \
    descendants, from active resources that would not be deleted with it.")]
pub(in crate::wire) struct BlockingReferrersView<'a> {
    /// How many of `total` belong to other tenants.
    #[schema(value_type = i32, minimum = 0)]
    hidden: usize,
    /// The first 20 that the caller may see.
    items: Vec<BlockingReferrerView<'a>>,
    /// Whether there may be more: 1000 references are read at most.
    partial: bool,
    /// Number of all.
    #[schema(value_type = i32, minimum = 0)]
    total: usize,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ExplanationReferrer, description = "A resource with a reference that blocks the deletion.")]
pub(in crate::wire) struct BlockingReferrerView<'a> {
    /// Path of the referring resource.
    href: String,
    /// Id of the referring resource.
    id: String,
    /// Kind of the referring resource.
    kind: &'a str,
    /// Name of the referring resource.
    name: &'a str,
    /// Type of the reference.
    ref_type: &'a str,
    /// The same in words.
    sentence: &'a str,
    /// The target: the resource or a descendant; absent if it belongs to another tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<LinkView<'a>>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ExplanationDeletion, description = "Whether a DELETE would be refused, or a finalizing resource is not removed yet.")]
pub(in crate::wire) struct BlockedDeletionView<'a> {
    /// Whether anything blocks it.
    blocked: bool,
    /// The same in words.
    sentence: &'a str,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ExplanationCondition, description = "Where a condition comes from.")]
pub(in crate::wire) struct ConditionOriginView<'a> {
    /// Why the rule fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    /// The rule: the `type` of an entry of `conditions` in the configuration of the kind. Absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'a str>,
    /// The same in words.
    sentence: &'a str,
    #[schema(value_type = ExplanationRuleState)]
    state: &'static str,
    /// Status of the condition; absent if the resource does not have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ResourceConditionStatus>)]
    status: Option<&'static str>,
    /// Type of the condition.
    r#type: &'a str,
}

impl<'a> ResourceExplanationView<'a> {
    pub(super) fn new(views: Views<'a>, explanation: &'a ResourceExplanation) -> Self {
        let ResourceExplanation {
            subject, blocked, ..
        } = explanation;
        let deletion = explanation.deletion.as_ref();
        let adapters = explanation.adapters.iter();
        let conditions = explanation.conditions.iter();
        Self {
            adapters: adapters.map(AdapterProgressView::new).collect(),
            children: BlockingChildrenView::new(views, blocked),
            conditions: conditions.map(ConditionOriginView::new).collect(),
            deleted_by: deletion.map(|d| d.by.as_str()),
            deleted_time: deletion.map(|d| d.at),
            deletion: BlockedDeletionView {
                blocked: blocked.is_blocked,
                sentence: &blocked.sentence,
            },
            explained_time: explanation.explained_at,
            generation: explanation.generation,
            href: href(views, subject),
            id: subject.id.to_string(),
            kind: &subject.kind,
            name: &subject.name,
            referrers: BlockingReferrersView::new(views, blocked),
            summary: &explanation.summary,
            waits: explanation.waits(),
            waits_since_time: explanation.waits_since,
        }
    }
}

impl<'a> AdapterProgressView<'a> {
    fn new(progress: &'a AdapterProgress) -> Self {
        Self {
            adapter: &progress.adapter,
            condition: progress.condition.as_ref(),
            last_report_time: progress.report.map(|(_, at)| at),
            observed_generation: progress.report.map(|(generation, _)| generation),
            sentence: &progress.sentence,
            since_time: progress.since,
            stale: progress.is_stale,
            state: progress.state.into_str(),
            waited_for: progress.is_waited_for(),
        }
    }
}

impl<'a> BlockingChildrenView<'a> {
    fn new(views: Views<'a>, blocked: &'a BlockedDeletion) -> Self {
        let children = &blocked.children;
        let items = children.items.iter();
        Self {
            hidden: children.hidden,
            items: items.map(|c| BlockingChildView::new(views, c)).collect(),
            partial: children.is_partial,
            total: children.total,
        }
    }
}

impl<'a> BlockingChildView<'a> {
    fn new(views: Views<'a>, child: &'a BlockingChild) -> Self {
        let descendant = &child.descendant;
        let reconciled = descendant.reconciled.as_ref();
        Self {
            deleted_time: descendant.deleted_at,
            href: href(views, &descendant.kin),
            id: descendant.kin.id.to_string(),
            kind: &descendant.kin.kind,
            level: descendant.level,
            message: reconciled.and_then(|c| c.message.as_deref()),
            name: &descendant.kin.name,
            reason: reconciled.and_then(|c| c.reason.as_deref()),
            sentence: &child.sentence,
            updated_time: descendant.updated_at,
        }
    }
}

impl<'a> BlockingReferrersView<'a> {
    fn new(views: Views<'a>, blocked: &'a BlockedDeletion) -> Self {
        let referrers = &blocked.referrers;
        let items = referrers.items.iter();
        Self {
            hidden: referrers.hidden,
            items: items.map(|r| BlockingReferrerView::new(views, r)).collect(),
            partial: referrers.is_partial,
            total: referrers.total,
        }
    }
}

impl<'a> BlockingReferrerView<'a> {
    fn new(views: Views<'a>, referrer: &'a BlockingReferrer) -> Self {
        let source = &referrer.source;
        let target = referrer.target.as_ref();
        Self {
            href: href(views, &source.kin),
            id: source.kin.id.to_string(),
            kind: &source.kin.kind,
            name: &source.kin.name,
            ref_type: &source.ref_type,
            sentence: &referrer.sentence,
            target: target.map(|kin| views.link(&kin.kind, kin.id)),
        }
    }
}

impl<'a> ConditionOriginView<'a> {
    fn new(origin: &'a ConditionOrigin) -> Self {
        Self {
            error: origin.error.as_deref(),
            rule: Some(origin.kind.as_str()).filter(|_| origin.has_rule),
            sentence: &origin.sentence,
            state: origin.state.into_str(),
            status: origin.status.map(|status| status.into_str()),
            r#type: &origin.kind,
        }
    }
}

fn href(views: Views<'_>, kin: &Kin) -> String {
    views.0.href(&kin.kind, kin.id, kin.owner)
}
