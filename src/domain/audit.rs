//! The audit trail: the author, the time and the reason of each change. Written with the change, never changed after.

mod fault;
mod line;
mod pass;
mod record;
mod removal;
mod seal;
mod sealing;
mod verify;

use std::fmt;

use chrono::{DateTime, Utc};
use strum::{EnumString, IntoStaticStr, VariantNames};

use super::page::Listing;
use super::{ResourceId, ResourceState, Tenancy};

pub use fault::{FAULTS_SHOWN_MAX, TrailFault, TrailFaultKind, TrailFaults};
pub use line::TrailEntry;
pub use record::{EntryRecord, ExportRecord};
pub use removal::{RETENTION_MIN, RemovedPart, RemovedSeal, RetentionRule};
pub use seal::{ChainHash, ChainHead, PassHead, Seal};
pub use sealing::seal_all;
pub use verify::{
    SealStamp, TrailVerifier, UnsealedEntries, VerifiedChain, VerifiedRange, VerifiedTrail,
};

/// The kind of a change, stored and shown by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr, VariantNames)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum Action {
    Create,
    /// The desired state was changed.
    Patch,
    /// Its deletion was requested, directly or with its parent.
    Delete,
    /// It was removed after its adapters were done.
    HardDelete,
    /// It was removed before its adapters were done.
    ForceDelete,
}

/// The caller and the time of a request: the same for all its changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeOrigin {
    pub actor: String,
    /// The request's id, as in its answer and in the log.
    pub request_id: String,
    /// When the service began to work on the request, in whole microseconds. Not the order of changes: requests wait
    /// for each other, and instances have clocks of their own.
    pub at: DateTime<Utc>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub action: Action,
    pub kind: String,
    pub id: ResourceId,
    pub name: String,
    /// Unset for a new resource.
    pub generation_before: Option<i32>,
    /// Unset for a removed resource.
    pub generation_after: Option<i32>,
    /// The reason, if the caller must give one.
    pub reason: Option<String>,
}

impl Change {
    pub fn removal(action: Action, state: &ResourceState, reason: Option<&str>) -> Self {
        Self {
            generation_after: None,
            reason: reason.map(ToOwned::to_owned),
            ..Self::of(action, Some(state.generation), state)
        }
    }

    /// A change that leaves the resource.
    pub fn of(action: Action, before: Option<i32>, state: &ResourceState) -> Self {
        Self {
            action,
            kind: state.kind.clone(),
            id: state.id,
            name: state.name.as_str().to_owned(),
            generation_before: before,
            generation_after: Some(state.generation),
            reason: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// Later changes of a resource have higher numbers. An entry may appear after one with a higher number.
    pub sequence: i64,
    pub origin: ChangeOrigin,
    pub change: Change,
    pub tenancy: Tenancy,
}

/// Selects entries; unset fields do not restrict.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    pub resource_id: Option<ResourceId>,
    pub kind: Option<String>,
    pub actor: Option<String>,
    pub action: Option<Action>,
    /// At this time or later.
    pub since: Option<DateTime<Utc>>,
    /// Before this time.
    pub until: Option<DateTime<Utc>>,
    /// After this position: settled entries only, in the order of positions.
    pub after: Option<TrailPosition>,
}

impl AuditFilter {
    /// Whether it has a position and nothing else: then entries are read one after the other.
    pub fn is_after_alone(&self) -> bool {
        let after_alone = Self {
            after: self.after,
            ..Self::default()
        };
        self.after.is_some() && *self == after_alone
    }
}

/// A position in the order in which entries settle. An entry is settled when no entry can appear before it any more
/// (`docs/internals/database.md`, "The order of the audit trail").
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TrailPosition {
    /// Incremented when the database is restored: transactions then count from an earlier number.
    pub era: i64,
    /// The number of the entry's transaction, or of the latest one that had ended before it was written, whichever is
    /// higher.
    pub commit_order: i64,
    pub sequence: i64,
}

impl TrailPosition {
    /// Before all entries.
    pub const START: Self = Self {
        era: 0,
        commit_order: 0,
        sequence: 0,
    };
    /// The text of [`TrailPosition::START`].
    const START_TEXT: &str = "start";

    /// Reads the text of a [`TrailPosition`].
    pub fn parse(text: &str) -> Option<Self> {
        if text == Self::START_TEXT {
            return Some(Self::START);
        }
        // No signs: a position has only one text.
        let number = |text: &str| {
            let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
            is_plain.then(|| text.parse().ok()).flatten()
        };
        let mut numbers = text.split('-').map(number);
        let mut next = || numbers.next().flatten();
        let (era, commit_order, sequence) = (next()?, next()?, next()?);
        numbers.next().is_none().then_some(Self {
            era,
            commit_order,
            sequence,
        })
    }
}

impl fmt::Display for TrailPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::START {
            return f.write_str(Self::START_TEXT);
        }
        write!(f, "{}-{}-{}", self.era, self.commit_order, self.sequence)
    }
}

/// The end of the settled part of the trail, at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettledTrail {
    /// The era of new entries.
    pub era: i64,
    /// The oldest open transaction: entries of this era below its number are settled.
    pub transaction: i64,
    pub last: Option<TrailPosition>,
}

impl SettledTrail {
    /// Whether readers can have reached `position`. They cannot have in this state of the database if it was set back
    /// since.
    pub fn reaches(&self, position: TrailPosition) -> bool {
        (position.era, position.commit_order) < (self.era, self.transaction)
    }

    /// Where a reader continues who has read all settled entries after `after`, or the newest ones.
    pub fn end(&self, after: Option<TrailPosition>) -> TrailPosition {
        let last = self.last.max(after);
        last.unwrap_or(TrailPosition::START)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct TrailPage {
    pub listing: Listing<AuditEntry>,
    /// Where a reader continues: every entry that is not settled yet is after it.
    pub position: TrailPosition,
    /// The end of the last seals: every entry up to it is sealed.
    pub sealed: TrailPosition,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(era: i64, commit_order: i64, sequence: i64) -> TrailPosition {
        TrailPosition {
            era,
            commit_order,
            sequence,
        }
    }

    #[test]
    fn a_position_is_read_as_it_was_printed() {
        for (expected, text) in [
            (TrailPosition::START, "start"),
            (position(0, 0, 7), "0-0-7"),
            (position(1_767_261_600, 7_432, 12), "1767261600-7432-12"),
            (position(0, i64::MAX, 1), "0-9223372036854775807-1"),
        ] {
            assert_eq!(expected.to_string(), text);
            assert_eq!(TrailPosition::parse(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_positions() {
        for text in [
            "",
            "0",
            "1-2",
            "1-2-3-4",
            "1-2-",
            "--",
            "-1-2-3",
            "1-+2-3",
            "1-2-x",
            "1 -2-3",
            "1-2-9223372036854775808",
            "Start",
            "0x1-2-3",
        ] {
            assert_eq!(TrailPosition::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn positions_of_a_later_era_are_later() {
        assert!(position(0, 900, 900) < position(1, 5, 1));
        assert!(position(1, 5, 9) < position(1, 6, 1));
        assert!(position(1, 6, 1) < position(1, 6, 2));
    }

    #[test]
    fn a_position_that_no_reader_can_have_got_is_not_reached() {
        let settled = SettledTrail {
            era: 5,
            transaction: 100,
            last: None,
        };
        for (position, is_reached) in [
            (TrailPosition::START, true),
            (position(5, 99, 1_000), true),
            (position(4, 2_000, 1), true),
            (position(5, 100, 0), false),
            (position(6, 1, 1), false),
        ] {
            assert_eq!(settled.reaches(position), is_reached, "{position}");
        }
    }

    #[test]
    fn a_reader_never_goes_back() {
        let last = Some(position(0, 9, 4));
        let settled = |last| SettledTrail {
            era: 0,
            transaction: 100,
            last,
        };
        assert_eq!(settled(last).end(None), position(0, 9, 4));
        assert_eq!(
            settled(last).end(Some(position(0, 8, 1))),
            position(0, 9, 4)
        );
        // What was last has expired.
        let later = position(0, 50, 7);
        assert_eq!(settled(last).end(Some(later)), later);
        assert_eq!(settled(None).end(Some(later)), later);
        assert_eq!(settled(None).end(None), TrailPosition::START);
    }
}
