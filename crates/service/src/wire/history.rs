//! Answers about the past: generations, events, tombstones.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::members::{AuditAction, EventType, Resource};
use super::views::{LinkView, Views, history};
use hyperfleet_domain::history::{Generation, HistoryPage, TimelineEvent, Tombstone, Transition};
use hyperfleet_domain::{JsonText, moment};

#[derive(Serialize, ToSchema)]
#[schema(as = Generation, description = "One generation of a resource: its declared state and its author.")]
pub(super) struct GenerationView<'a> {
    /// The action that created it: `create`, `patch` or `delete`.
    #[schema(value_type = AuditAction)]
    action: &'static str,
    /// The caller. Absent if another program wrote the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    actor: Option<&'a str>,
    /// What differs from the previous generation, as JSON pointers; absent if the previous generation is no longer
    /// stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    changed: Option<&'a [String]>,
    /// Number of the declared state.
    #[schema(minimum = 1)]
    generation: i32,
    #[schema(value_type = BTreeMap<String, String>)]
    labels: &'a JsonText,
    /// Links to other resources, by type of link; absent when there are none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    references: BTreeMap<&'a str, Vec<LinkView<'a>>>,
    /// Id of the request that made it; absent if its change is no longer stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
    /// The desired state.
    #[schema(value_type = BTreeMap<String, Value>)]
    spec: &'a JsonText,
    /// When the service began to work on the request.
    #[serde(serialize_with = "moment::serialize")]
    time: DateTime<Utc>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Event, description = "One event in the life of a resource.")]
pub(super) struct TimelineEventView<'a> {
    /// The caller. Absent if another program wrote the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    actor: Option<&'a str>,
    /// The adapter whose report caused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    adapter: Option<&'a str>,
    /// The change of the condition, for events of type `condition`.
    #[serde(skip_serializing_if = "Option::is_none")]
    condition: Option<TransitionView<'a>>,
    /// The generation of the resource after the event, or its last generation.
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<i32>,
    /// The reason of a force-delete.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    /// Id of the request that caused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
    /// When the service began to work on the request.
    #[serde(serialize_with = "moment::serialize")]
    time: DateTime<Utc>,
    #[schema(value_type = EventType)]
    r#type: &'static str,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Transition, description = "A change of a condition's status.")]
pub(super) struct TransitionView<'a> {
    /// How long the earlier status lasted, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_seconds: Option<f64>,
    /// The earlier status; absent for a new condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<&'static str>,
    /// The new message of the condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    /// The new reason of the condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    /// When the earlier status began, by the time of the change; if that is no longer stored, by the condition itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "moment::serialize_some")]
    since: Option<DateTime<Utc>>,
    /// The new status. Absent if the resource lost the condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<&'static str>,
    /// Type of the condition.
    r#type: &'a str,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Tombstone, description = "A removed resource: its last state and its removal.")]
pub(super) struct TombstoneView<'a, T> {
    /// The caller that removed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    actor: Option<&'a str>,
    /// The reason of a force-delete.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    /// Id of the request that removed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
    /// Its last state.
    #[schema(value_type = Resource)]
    resource: T,
    /// When the service began to work on that request.
    #[serde(serialize_with = "moment::serialize")]
    time: DateTime<Utc>,
}

impl<'a> Views<'a> {
    /// A page of generations.
    pub fn generations(self, page: &'a HistoryPage<Generation>) -> impl Serialize + 'a {
        history("Generation", page, move |generation: &'a Generation| {
            let (state, author) = (&generation.state, &generation.author);
            GenerationView {
                action: generation.action.into_str(),
                actor: author.actor.as_deref(),
                changed: generation.changed.as_deref(),
                generation: state.generation,
                labels: &state.labels,
                references: self.references(state),
                request_id: author.request_id.as_deref(),
                spec: &state.spec,
                time: author.at,
            }
        })
    }

    /// A page of events.
    pub fn timeline(page: &'a HistoryPage<TimelineEvent>) -> impl Serialize + 'a {
        history("Event", page, |event: &'a TimelineEvent| {
            TimelineEventView {
                actor: event.actor.as_deref(),
                adapter: event.cause.as_deref(),
                condition: event.transition.as_ref().map(transition),
                generation: event.generation,
                reason: event.reason.as_deref(),
                request_id: event.request_id.as_deref(),
                time: event.at,
                r#type: event.kind.into_str(),
            }
        })
    }

    /// The tombstone of a removed resource.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn tombstone(self, tombstone: &Tombstone) -> serde_json::Result<Value> {
        let view = TombstoneView {
            actor: tombstone.removed_by.as_deref(),
            reason: tombstone.reason.as_deref(),
            request_id: tombstone.request_id.as_deref(),
            resource: self.resource(&tombstone.last),
            time: tombstone.removed_at,
        };
        serde_json::to_value(&view)
    }
}

fn transition(moved: &Transition) -> TransitionView<'_> {
    TransitionView {
        duration_seconds: moved.lasted.map(seconds),
        from: moved.from,
        message: moved.message.as_deref(),
        reason: moved.reason.as_deref(),
        since: moved.since,
        to: moved.to,
        r#type: &moved.condition,
    }
}

fn seconds(lasted: TimeDelta) -> f64 {
    lasted.as_seconds_f64()
}
