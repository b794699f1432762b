//! Recorded changes: what the service stores of a change, so that watchers learn of it (`docs/decisions/0074-watch.md`).

use std::fmt;

use super::Condition;

/// A place in the order of changes. Later changes of a resource have later positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChangePosition {
    /// Incremented when the database is restored: positions then count from an earlier number.
    pub era: i64,
    /// Of the last change before the position; 0 before the first.
    pub number: i64,
}

impl ChangePosition {
    /// Reads the text of a [`ChangePosition`].
    pub fn parse(text: &str) -> Option<Self> {
        // No signs: a position has only one text.
        let number = |text: &str| {
            let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
            is_plain.then(|| text.parse().ok()).flatten()
        };
        let (era, place) = text.split_once('-')?;
        Some(Self {
            era: number(era)?,
            number: number(place)?,
        })
    }
}

impl fmt::Display for ChangePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.era, self.number)
    }
}

/// Whether a report is recorded as a change of its resource. Most reports change only times: they are not recorded, and
/// watchers do not receive them.
pub fn is_recorded(before: &[Condition], after: &[Condition]) -> bool {
    let is_same = |(before, after): (&Condition, &Condition)| {
        // Destructured, so that a new member cannot be forgotten.
        let Condition {
            created_at: _,
            last_transition_at: _,
            last_updated_at: _,
            message,
            observed_generation,
            reason,
            status,
            kind,
        } = before;
        *kind == after.kind
            && *status == after.status
            && *reason == after.reason
            && *message == after.message
            && *observed_generation == after.observed_generation
    };
    before.len() != after.len() || !before.iter().zip(after).all(is_same)
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::ConditionStatus;

    #[test]
    fn a_position_is_read_as_it_was_printed() {
        for (era, number, text) in [
            (0, 0, "0-0"),
            (1_767_261_600, 12, "1767261600-12"),
            (0, i64::MAX, "0-9223372036854775807"),
        ] {
            let position = ChangePosition { era, number };
            assert_eq!(position.to_string(), text);
            assert_eq!(ChangePosition::parse(text), Some(position), "{text}");
        }
        for text in [
            "",
            "1",
            "-",
            "1-",
            "-1",
            "1-2-3",
            "1-+2",
            "1- 2",
            "0-9223372036854775808",
        ] {
            assert_eq!(ChangePosition::parse(text), None, "{text:?}");
        }
    }

    fn condition() -> Condition {
        let at = DateTime::UNIX_EPOCH;
        Condition {
            created_at: at,
            last_transition_at: at,
            last_updated_at: at,
            message: None,
            observed_generation: 1,
            reason: None,
            status: ConditionStatus::True,
            kind: "A".to_owned(),
        }
    }

    #[test]
    fn only_changes_of_times_are_not_recorded() {
        let later = DateTime::from_timestamp(1, 0).unwrap();
        let changed = |change: fn(&mut Condition)| {
            let mut condition = condition();
            change(&mut condition);
            is_recorded(&[self::condition()], &[condition])
        };
        let moved = Condition {
            created_at: later,
            last_transition_at: later,
            last_updated_at: later,
            ..condition()
        };
        assert!(!is_recorded(&[condition()], &[moved]));
        assert!(changed(|c| c.message = Some("m".to_owned())));
        assert!(changed(|c| c.observed_generation = 2));
        assert!(changed(|c| c.reason = Some("r".to_owned())));
        assert!(changed(|c| c.status = ConditionStatus::False));
        assert!(changed(|c| c.kind = "B".to_owned()));
        assert!(is_recorded(&[], &[condition()]));
        assert!(is_recorded(&[condition()], &[]));
        assert!(!is_recorded(&[], &[]));
    }
}
