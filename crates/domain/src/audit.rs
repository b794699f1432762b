//! The audit trail: the author, the time and the reason of each change. Written with the change, never changed after.

use chrono::{DateTime, Utc};
use strum::{EnumString, IntoStaticStr, VariantNames};

use super::page::Listing;
use super::{ResourceId, ResourceState};

pub use hyperfleet_audit::{AuditEntry, TrailPosition};

/// The kind of a change, stored and returned by its name.
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
    /// After this position: stable entries only, in the order of positions.
    pub after: Option<TrailPosition>,
}

impl AuditFilter {
    /// Whether its only member is a position. Entries are then read in the order of positions.
    pub fn is_only_after(&self) -> bool {
        let only_after = Self {
            after: self.after,
            ..Self::default()
        };
        self.after.is_some() && *self == only_after
    }
}

/// The end of the stable part of the trail, at one moment: no open transaction can add an entry before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StableTrail {
    /// The era of new entries.
    pub era: i64,
    /// The oldest open transaction: entries of this era below its number are stable.
    pub transaction: i64,
    pub last: Option<TrailPosition>,
}

impl StableTrail {
    /// Whether a reader can have reached `position`. If not, the database has been restored to an earlier state since.
    pub fn reaches(&self, position: TrailPosition) -> bool {
        (position.era, position.commit_order) < (self.era, self.transaction)
    }

    /// Where a reader continues that has read all stable entries after `after`, or the newest ones.
    pub fn end(&self, after: Option<TrailPosition>) -> TrailPosition {
        let last = self.last.max(after);
        last.unwrap_or(TrailPosition::START)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct TrailPage {
    pub listing: Listing<AuditEntry>,
    /// Where a reader continues. Every entry that is not yet stable is after it.
    pub position: TrailPosition,
    /// The end of the last pass: every entry up to it is sealed.
    pub sealed: TrailPosition,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_that_no_reader_can_have_got_is_not_reached() {
        let stable = StableTrail {
            era: 5,
            transaction: 100,
            last: None,
        };
        for (position, is_reached) in [
            (TrailPosition::START, true),
            (TrailPosition::new(5, 99, 1_000), true),
            (TrailPosition::new(4, 2_000, 1), true),
            (TrailPosition::new(5, 100, 0), false),
            (TrailPosition::new(6, 1, 1), false),
        ] {
            assert_eq!(stable.reaches(position), is_reached, "{position}");
        }
    }

    #[test]
    fn a_reader_never_goes_back() {
        let last = Some(TrailPosition::new(0, 9, 4));
        let stable = |last| StableTrail {
            era: 0,
            transaction: 100,
            last,
        };
        assert_eq!(stable(last).end(None), TrailPosition::new(0, 9, 4));
        assert_eq!(
            stable(last).end(Some(TrailPosition::new(0, 8, 1))),
            TrailPosition::new(0, 9, 4)
        );
        // What was last has expired.
        let later = TrailPosition::new(0, 50, 7);
        assert_eq!(stable(last).end(Some(later)), later);
        assert_eq!(stable(None).end(Some(later)), later);
        assert_eq!(stable(None).end(None), TrailPosition::START);
    }
}
