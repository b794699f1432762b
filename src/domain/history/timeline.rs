//! Everything that happened to a resource, as one list of events.

use chrono::{DateTime, TimeDelta, Utc};
use strum::{IntoStaticStr, VariantNames};

use crate::domain::Condition;
use crate::domain::audit::Action;

/// One step in the life of a resource, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedStep {
    pub at: DateTime<Utc>,
    /// Unset for a writer other than the service.
    pub actor: Option<String>,
    pub request_id: Option<String>,
    /// The adapter whose report made the change.
    pub cause: Option<String>,
    /// The reason of a force-delete.
    pub reason: Option<String>,
    /// The generation after the step; of a removal the last one.
    pub generation: Option<i32>,
    pub source: StepSource,
}

/// From where a step is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepSource {
    Created,
    /// The declared state changed. Whether the resource was finalizing before and after.
    Declared {
        was_deleting: bool,
        is_deleting: bool,
    },
    Removed,
    /// A condition has another status than before; one of both may be missing.
    Moved {
        before: Option<Box<Condition>>,
        after: Option<Box<Condition>>,
        /// When the earlier status began, if the change that began it is stored.
        since: Option<DateTime<Utc>>,
    },
    /// Only the audit trail knows the change.
    Audited(Action),
}

/// The sort of an event, by its name in answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantNames)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum TimelineEventKind {
    Created,
    /// The declared state changed.
    Changed,
    DeletionRequested,
    Removed,
    /// A condition has another status than before.
    Condition,
}

/// Another status of a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    /// The type of the condition.
    pub condition: String,
    /// The status before; unset for a new condition.
    pub from: Option<&'static str>,
    /// The status after; unset if the resource has no such condition any more.
    pub to: Option<&'static str>,
    /// When the earlier status began.
    pub since: Option<DateTime<Utc>>,
    /// How long the earlier status lasted.
    pub lasted: Option<TimeDelta>,
    pub reason: Option<String>,
    pub message: Option<String>,
}

/// One event of the timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimelineEvent {
    pub at: DateTime<Utc>,
    pub kind: TimelineEventKind,
    pub actor: Option<String>,
    pub request_id: Option<String>,
    pub cause: Option<String>,
    pub reason: Option<String>,
    pub generation: Option<i32>,
    /// Of [`TimelineEventKind::Condition`].
    pub transition: Option<Transition>,
}

/// The events of these steps, in the same order.
pub fn timeline(steps: Vec<RecordedStep>) -> Vec<TimelineEvent> {
    steps.into_iter().map(event).collect()
}

fn event(step: RecordedStep) -> TimelineEvent {
    use TimelineEventKind as Kind;
    let (kind, transition) = match step.source {
        StepSource::Created | StepSource::Audited(Action::Create) => (Kind::Created, None),
        StepSource::Declared {
            was_deleting: false,
            is_deleting: true,
        }
        | StepSource::Audited(Action::Delete) => (Kind::DeletionRequested, None),
        StepSource::Declared { .. } | StepSource::Audited(Action::Patch) => (Kind::Changed, None),
        StepSource::Removed | StepSource::Audited(Action::HardDelete | Action::ForceDelete) => {
            (Kind::Removed, None)
        }
        StepSource::Moved {
            before,
            after,
            since,
        } => {
            let began = before
                .as_ref()
                .map(|before| since.unwrap_or(before.last_transition_at));
            let moved = transition(step.at, began, before.as_deref(), after.map(|after| *after));
            (Kind::Condition, Some(moved))
        }
    };
    TimelineEvent {
        at: step.at,
        kind,
        actor: step.actor,
        request_id: step.request_id,
        cause: step.cause,
        reason: step.reason,
        generation: step.generation,
        transition,
    }
}

/// Times are those of the service: those of conditions are adapters', and may tell of an earlier moment.
fn transition(
    at: DateTime<Utc>,
    since: Option<DateTime<Utc>>,
    before: Option<&Condition>,
    after: Option<Condition>,
) -> Transition {
    let lasted = since.map(|since| (at - since).max(TimeDelta::zero()));
    let status = |condition: &Condition| -> &'static str { condition.status.into_str() };
    let (from, to) = (before.map(status), after.as_ref().map(status));
    let named = after.as_ref().or(before);
    let condition = named.map_or_else(String::new, |condition| condition.kind.clone());
    let (reason, message) = after.map_or((None, None), |after| (after.reason, after.message));
    Transition {
        condition,
        from,
        to,
        since,
        lasted,
        reason,
        message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ConditionStatus;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(second, 0).unwrap()
    }

    fn condition(status: bool, since: i64) -> Condition {
        Condition {
            created_at: at(0),
            last_transition_at: at(since),
            last_updated_at: at(since),
            message: None,
            observed_generation: 1,
            reason: Some("R".to_owned()),
            status: ConditionStatus::from_bool(status),
            kind: "Reconciled".to_owned(),
        }
    }

    fn step(source: StepSource) -> RecordedStep {
        RecordedStep {
            at: at(50),
            actor: None,
            request_id: None,
            cause: None,
            reason: None,
            generation: Some(2),
            source,
        }
    }

    #[test]
    fn a_transition_says_how_long_the_earlier_status_lasted() {
        let lasted = |before: Option<Condition>, after: Option<Condition>, since| {
            let moved = StepSource::Moved {
                before: before.map(Box::new),
                after: after.map(Box::new),
                since,
            };
            let events = timeline(vec![step(moved)]);
            let moved = events[0].transition.clone().unwrap();
            assert_eq!(moved.condition, "Reconciled");
            (moved.from, moved.to, moved.lasted.map(|l| l.num_seconds()))
        };
        let (no, yes) = (condition(false, 10), condition(true, 40));
        let (none, both) = (None, (Some(no.clone()), Some(yes.clone())));
        let moved = lasted(both.0.clone(), both.1.clone(), Some(at(20)));
        assert_eq!(moved, (Some("False"), Some("True"), Some(30)));
        let unknown = lasted(both.0.clone(), both.1.clone(), none);
        assert_eq!(unknown, (Some("False"), Some("True"), Some(40)));
        let ahead = lasted(both.1.clone(), both.0, Some(at(60)));
        assert_eq!(ahead, (Some("True"), Some("False"), Some(0)));
        let new = lasted(None, both.1.clone(), Some(at(20)));
        assert_eq!(new, (None, Some("True"), None));
        assert_eq!(lasted(both.1, None, none), (Some("True"), None, Some(10)));
    }

    #[test]
    fn steps_are_named_by_what_they_are_to_a_reader() {
        use TimelineEventKind as Kind;
        let declared = |was_deleting, is_deleting| StepSource::Declared {
            was_deleting,
            is_deleting,
        };
        for (source, expected) in [
            (StepSource::Created, Kind::Created),
            (declared(false, false), Kind::Changed),
            (declared(false, true), Kind::DeletionRequested),
            (declared(true, true), Kind::Changed),
            (StepSource::Removed, Kind::Removed),
            (StepSource::Audited(Action::Create), Kind::Created),
            (StepSource::Audited(Action::Patch), Kind::Changed),
            (StepSource::Audited(Action::Delete), Kind::DeletionRequested),
            (StepSource::Audited(Action::HardDelete), Kind::Removed),
            (StepSource::Audited(Action::ForceDelete), Kind::Removed),
        ] {
            let events = timeline(vec![step(source.clone())]);
            assert_eq!(events[0].kind, expected, "{source:?}");
        }
    }
}
