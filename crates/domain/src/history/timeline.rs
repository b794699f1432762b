//! Everything that happened to a resource, as one list of events.

use chrono::{DateTime, TimeDelta, Utc};
use strum::{IntoStaticStr, VariantNames};

use crate::Condition;
use crate::audit::{Action, AuditEntry};

/// What a recorded change did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordedAction {
    Created,
    Modified,
    Removed,
}

/// A change of a resource, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedChange {
    pub position: i64,
    pub at: DateTime<Utc>,
    pub action: RecordedAction,
    /// Unset for a writer other than the service.
    pub actor: Option<String>,
    pub request_id: Option<String>,
    /// The adapter whose report made the change.
    pub cause: Option<String>,
    /// After the change; of a removal the last one.
    pub generation: i32,
    /// Whether the resource is finalizing after the change; unset if the change declares nothing.
    pub is_deleting: Option<bool>,
    /// After the change; unset if they stayed the same.
    pub conditions: Option<Vec<Condition>>,
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
    /// The new status; unset if the resource no longer has the condition.
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
    /// Unset if it is not known.
    pub actor: Option<String>,
    pub request_id: Option<String>,
    /// The adapter whose report made the change.
    pub cause: Option<String>,
    /// The reason of a force-delete.
    pub reason: Option<String>,
    /// The generation after the event; of a removal the last one.
    pub generation: Option<i32>,
    /// Of [`TimelineEventKind::Condition`].
    pub transition: Option<Transition>,
}

/// Entries of the audit trail that tell of a removal: it, and the deletion of a resource that no adapter had to finalize.
pub const REMOVAL_ENTRIES_MAX: i64 = 2;

/// Turns the changes of one resource, newest first, into events. An event needs the state before its change.
#[derive(Debug, Default)]
pub struct Timeline {
    /// With the position of each change, and the place of the event in it.
    events: Vec<(i64, usize, TimelineEvent)>,
    /// The change whose declared state waits for the previous change.
    undeclared: Option<RecordedChange>,
    /// The change whose conditions wait for the ones before.
    uncompared: Option<RecordedChange>,
    /// The last generation of a removed resource.
    removed: Option<i32>,
    oldest: Option<i32>,
}

impl Timeline {
    /// Adds the change before all that were added.
    pub fn push(&mut self, change: RecordedChange) {
        self.oldest = Some(change.generation);
        match change.action {
            RecordedAction::Removed => {
                self.undeclared = None;
                self.uncompared = None;
                if self.events.is_empty() {
                    self.removed = Some(change.generation);
                }
                self.add(&change, 0, TimelineEventKind::Removed);
            }
            RecordedAction::Created => {
                self.compare(&change);
                self.undeclared = None;
                self.uncompared = None;
                self.add(&change, 0, TimelineEventKind::Created);
            }
            RecordedAction::Modified => {
                self.compare(&change);
                if change.is_deleting.is_some() {
                    self.undeclared = Some(change.clone());
                }
                if change.conditions.is_some() {
                    self.uncompared = Some(change);
                }
            }
        }
    }

    /// Whether its newest events, so many, are known.
    pub fn has(&self, count: usize) -> bool {
        let waiting = [&self.undeclared, &self.uncompared].into_iter().flatten();
        let waiting = waiting.map(|change| change.position).max();
        let is_known = |position: i64| waiting.is_none_or(|waiting| position > waiting);
        let known = self.events.iter().filter(|(at, ..)| is_known(*at)).count();
        known >= count
    }

    /// Whether the audit trail has entries with more details than the changes. `is_complete` says whether the history
    /// is complete.
    pub fn needs_audit(&self, is_complete: bool) -> bool {
        self.removed.is_some() || !is_complete
    }

    /// All events, newest first. `entries` are the entries of the audit trail, newest first: they record who removed a
    /// resource and why, what the removing transaction did before, and what happened before the first stored change.
    pub fn finish(self, entries: &[AuditEntry], is_complete: bool) -> Vec<TimelineEvent> {
        let mut events = self.events;
        events.sort_by_key(|(position, place, _)| std::cmp::Reverse((*position, *place)));
        let mut events: Vec<_> = events.into_iter().map(|(.., event)| event).collect();
        if let Some(last) = self.removed {
            let is_removal = |entry: &&AuditEntry| entry.generation_after.is_none();
            if let (Some(event), Some(entry)) =
                (events.first_mut(), entries.iter().find(is_removal))
            {
                event.reason.clone_from(&entry.reason);
                event.actor.get_or_insert(entry.actor.clone());
                event.request_id.get_or_insert(entry.request_id.clone());
            }
            let unrecorded = audited(entries, |generation| generation > last);
            events.splice(1..1, unrecorded.take(1));
        }
        if let Some(oldest) = self.oldest.filter(|_| !is_complete) {
            events.extend(audited(entries, |generation| generation <= oldest));
        }
        events
    }

    /// Adds the events of the changes that wait for this one, the one before them.
    fn compare(&mut self, before: &RecordedChange) {
        if let Some(was_deleting) = before.is_deleting
            && let Some(change) = self.undeclared.take()
            && change.generation != before.generation
        {
            let kind = match (was_deleting, change.is_deleting) {
                (false, Some(true)) => TimelineEventKind::DeletionRequested,
                _ => TimelineEventKind::Changed,
            };
            self.add(&change, 0, kind);
        }
        if let Some(conditions) = &before.conditions
            && let Some(change) = self.uncompared.take()
        {
            self.add_transitions(&change, conditions);
        }
    }

    fn add_transitions(&mut self, change: &RecordedChange, before: &[Condition]) {
        let after = change.conditions.as_deref().unwrap_or_default();
        let of = |conditions: &[Condition], kind: &str| {
            conditions
                .iter()
                .position(|condition| condition.kind == kind)
        };
        let gone = before
            .iter()
            .enumerate()
            .filter(|(_, b)| of(after, &b.kind).is_none());
        let gone = gone.map(|(place, before)| (place, Some(before), None));
        let there = after.iter().enumerate().map(|(place, after)| {
            let before = of(before, &after.kind).map(|place| &before[place]);
            (place, before, Some(after))
        });
        for (place, before, after) in there.chain(gone) {
            if before.map(|b| b.status) == after.map(|a| a.status) {
                continue;
            }
            let moved = transition(change.at, before, after);
            self.date(&moved.condition, change.at);
            let mut event = event(change, TimelineEventKind::Condition);
            event.transition = Some(moved);
            self.events.push((change.position, place + 1, event));
        }
    }

    /// The earlier status of a condition's next transition began now. Times are the service's times, because times of
    /// conditions are adapters', and may tell of an earlier moment.
    fn date(&mut self, condition: &str, since: DateTime<Utc>) {
        let later = self.events.iter_mut().rev().find_map(|(.., event)| {
            let at = event.at;
            let moved = event.transition.as_mut()?;
            (moved.condition == condition).then_some((at, moved))
        });
        if let Some((at, moved)) = later.filter(|(_, moved)| moved.from.is_some()) {
            moved.since = Some(since);
            moved.lasted = Some((at - since).max(TimeDelta::zero()));
        }
    }

    fn add(&mut self, change: &RecordedChange, place: usize, kind: TimelineEventKind) {
        self.events
            .push((change.position, place, event(change, kind)));
    }
}

fn event(change: &RecordedChange, kind: TimelineEventKind) -> TimelineEvent {
    TimelineEvent {
        at: change.at,
        kind,
        actor: change.actor.clone(),
        request_id: change.request_id.clone(),
        cause: change.cause.clone(),
        reason: None,
        generation: Some(change.generation),
        transition: None,
    }
}

/// The time of the condition replaces the time of an earlier transition, which may not be stored.
fn transition(
    at: DateTime<Utc>,
    before: Option<&Condition>,
    after: Option<&Condition>,
) -> Transition {
    let since = before.map(|before| before.last_transition_at);
    let status = |condition: &Condition| -> &'static str { condition.status.into_str() };
    let named = after.or(before);
    Transition {
        condition: named.map_or_else(String::new, |condition| condition.kind.clone()),
        from: before.map(status),
        to: after.map(status),
        since,
        lasted: since.map(|since| (at - since).max(TimeDelta::zero())),
        reason: after.and_then(|after| after.reason.clone()),
        message: after.and_then(|after| after.message.clone()),
    }
}

/// Events of the entries after which the resource had such a generation.
fn audited(
    entries: &[AuditEntry],
    is_wanted: impl Fn(i32) -> bool,
) -> impl Iterator<Item = TimelineEvent> {
    let wanted = entries
        .iter()
        .filter(move |entry| entry.generation_after.is_some_and(&is_wanted));
    wanted.filter_map(|entry| {
        let kind = match entry.action.parse().ok()? {
            Action::Create => TimelineEventKind::Created,
            Action::Patch => TimelineEventKind::Changed,
            Action::Delete => TimelineEventKind::DeletionRequested,
            Action::HardDelete | Action::ForceDelete => TimelineEventKind::Removed,
        };
        Some(TimelineEvent {
            at: entry.at,
            kind,
            actor: Some(entry.actor.clone()),
            request_id: Some(entry.request_id.clone()),
            cause: None,
            reason: entry.reason.clone(),
            generation: entry.generation_after,
            transition: None,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ConditionStatus;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(second, 0).unwrap()
    }

    fn condition(kind: &str, status: bool) -> Condition {
        Condition {
            created_at: at(0),
            last_transition_at: at(10),
            last_updated_at: at(10),
            message: None,
            observed_generation: 1,
            reason: Some("R".to_owned()),
            status: ConditionStatus::from_bool(status),
            kind: kind.to_owned(),
        }
    }

    fn change(second: i64, action: RecordedAction) -> RecordedChange {
        RecordedChange {
            position: second,
            at: at(second),
            action,
            actor: None,
            request_id: None,
            cause: None,
            generation: 1,
            is_deleting: None,
            conditions: None,
        }
    }

    fn reported(second: i64, conditions: Vec<Condition>) -> RecordedChange {
        RecordedChange {
            conditions: Some(conditions),
            ..change(second, RecordedAction::Modified)
        }
    }

    fn declared(second: i64, generation: i32, is_deleting: bool) -> RecordedChange {
        RecordedChange {
            generation,
            is_deleting: Some(is_deleting),
            ..change(second, RecordedAction::Modified)
        }
    }

    /// Of changes in the order of time.
    fn timeline(changes: &[RecordedChange]) -> Timeline {
        let mut timeline = Timeline::default();
        for change in changes.iter().rev() {
            timeline.push(change.clone());
        }
        timeline
    }

    fn lines(events: &[TimelineEvent]) -> Vec<String> {
        let line = |event: &TimelineEvent| {
            let kind: &str = event.kind.into();
            let moved = event.transition.as_ref().map_or(String::new(), |moved| {
                let lasted = moved.lasted.map(|lasted| lasted.num_seconds());
                format!(
                    " {} {:?} {:?} {lasted:?}",
                    moved.condition, moved.from, moved.to
                )
            });
            format!("{} {kind}{moved}", event.at.timestamp())
        };
        events.iter().map(line).collect()
    }

    #[test]
    fn a_transition_says_how_long_the_earlier_status_lasted() {
        let changes = [
            reported(20, vec![condition("A", false)]),
            reported(30, vec![condition("A", true), condition("B", true)]),
            reported(50, vec![condition("A", false)]),
        ];
        let events = timeline(&changes).finish(&[], true);
        assert_eq!(
            lines(&events),
            [
                // Since the stored transition, and since the condition says it.
                "50 condition B Some(\"True\") None Some(20)",
                "50 condition A Some(\"True\") Some(\"False\") Some(20)",
                "30 condition B None Some(\"True\") None",
                "30 condition A Some(\"False\") Some(\"True\") Some(20)",
            ]
        );
    }

    #[test]
    fn changes_are_named_by_what_they_are_to_a_reader() {
        let created = RecordedChange {
            is_deleting: Some(false),
            conditions: Some(vec![]),
            ..change(1, RecordedAction::Created)
        };
        let changes = [
            created,
            declared(2, 2, false),
            // A reference was dropped: the generation stays.
            declared(3, 2, false),
            declared(4, 3, true),
            declared(5, 4, true),
            change(6, RecordedAction::Removed),
        ];
        let events = timeline(&changes).finish(&[], true);
        assert_eq!(
            lines(&events),
            [
                "6 removed",
                "5 changed",
                "4 deletion_requested",
                "2 changed",
                "1 created"
            ]
        );
    }

    #[test]
    fn the_first_stored_change_is_an_event_only_if_it_creates() {
        let changes = [
            RecordedChange {
                is_deleting: Some(false),
                ..reported(1, vec![condition("A", true)])
            },
            reported(2, vec![condition("A", false)]),
        ];
        let events = timeline(&changes).finish(&[], false);
        let expected = ["2 condition A Some(\"True\") Some(\"False\") Some(0)"];
        assert_eq!(lines(&events), expected);
    }

    #[test]
    fn events_are_known_when_nothing_newer_waits() {
        let mut timeline = timeline(&[
            reported(3, vec![condition("A", true)]),
            change(4, RecordedAction::Removed),
        ]);
        assert!(timeline.has(1) && !timeline.has(2));
        timeline.push(declared(2, 1, false));
        assert!(!timeline.has(2), "the report is not compared yet");
        timeline.push(reported(1, vec![condition("A", false)]));
        assert!(timeline.has(2));
    }
}
