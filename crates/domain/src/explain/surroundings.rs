//! The surroundings of a resource: its descendants, and the resources that reference it or a descendant.

use chrono::{DateTime, Utc};

use crate::{Condition, ResourceId, ResourceState};

/// Descendants that are read at most, the nearest first.
pub const DESCENDANTS_MAX: usize = 1000;
/// Levels of descendants that are read at most.
pub const LEVELS_MAX: usize = 16;
/// References to the resource and its descendants that are read at most.
pub const REFERRERS_MAX: usize = 1000;
/// Blockers of one sort that an explanation lists at most.
pub const LISTED_MAX: usize = 20;

/// A resource in an explanation, with what its path needs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kin {
    pub kind: String,
    pub name: String,
    pub id: ResourceId,
    pub owner: Option<ResourceId>,
}

/// A resource below another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Descendant {
    pub kin: Kin,
    /// 1 for children, 2 for their children.
    pub level: usize,
    pub updated_at: DateTime<Utc>,
    /// When its deletion was requested.
    pub deleted_at: Option<DateTime<Utc>>,
    /// Its condition `Reconciled`.
    pub reconciled: Option<Condition>,
    /// Whether the caller sees it: an unseen one is counted, but not named.
    pub is_seen: bool,
}

/// An active resource outside the family that references the resource or a descendant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceOfReference {
    pub kin: Kin,
    pub ref_type: String,
    pub target: ResourceId,
    /// Whether it is below the resource itself: it would be deleted with it.
    pub is_inside: bool,
    /// Whether the caller sees it.
    pub is_seen: bool,
}

/// What surrounds a resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// One more than [`DESCENDANTS_MAX`] if there are more.
    pub descendants: Vec<Descendant>,
    /// One more than [`REFERRERS_MAX`] if there are more.
    pub referrers: Vec<SourceOfReference>,
}

/// Resources that block something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blockers<T> {
    /// Number of all that were read.
    pub total: usize,
    /// Number of resources that the caller does not see.
    pub hidden: usize,
    /// Whether there may be more than were read.
    pub is_partial: bool,
    /// The first [`LISTED_MAX`] that the caller sees.
    pub items: Vec<T>,
}

impl<T> Blockers<T> {
    /// Blockers of which the caller sees these, in the order to list them.
    pub(super) fn new(mut seen: Vec<T>, hidden: usize, is_partial: bool) -> Self {
        let total = seen.len() + hidden;
        seen.truncate(LISTED_MAX);
        Self {
            total,
            hidden,
            is_partial,
            items: seen,
        }
    }
}

impl Kin {
    pub(super) fn of(state: &ResourceState) -> Self {
        Self {
            kind: state.kind.clone(),
            name: state.name.as_str().to_owned(),
            id: state.id,
            owner: state.owner,
        }
    }

    /// `NodePool "workers"`.
    pub(super) fn quoted(&self) -> String {
        format!("{} \"{}\"", self.kind, self.name)
    }
}
