//! The audit trail: who changed what, when and why. Written with the change, never changed after.

use chrono::{DateTime, Utc};
use strum::{EnumString, IntoStaticStr, VariantNames};

use super::{ResourceId, ResourceState, Tenancy};

/// What was done to a resource, stored and shown by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr, VariantNames)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum Action {
    /// It was created.
    Create,
    /// What is wanted of it was changed.
    Patch,
    /// Its deletion was asked for, directly or with its parent.
    Delete,
    /// It was removed because all work was done.
    HardDelete,
    /// It was removed although work was not done.
    ForceDelete,
}

/// Who asks for a change, and when: the same for everything that one request changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The caller's identity.
    pub actor: String,
    /// The request's id, as in its answer and in the log.
    pub request_id: String,
    /// The time of the change, in whole microseconds.
    pub at: DateTime<Utc>,
}

/// One change of one resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What was done.
    pub action: Action,
    /// To which kind of resource.
    pub kind: String,
    /// To which resource.
    pub id: ResourceId,
    /// What it was called.
    pub name: String,
    /// Its generation before; unset when it is new.
    pub generation_before: Option<i32>,
    /// Its generation after; unset when it is gone.
    pub generation_after: Option<i32>,
    /// Why, where the caller has to say.
    pub reason: Option<String>,
}

impl Change {
    /// The removal of a resource.
    pub fn removal(action: Action, state: &ResourceState, reason: Option<&str>) -> Self {
        Self {
            generation_after: None,
            reason: reason.map(ToOwned::to_owned),
            ..Self::of(action, Some(state.generation), state)
        }
    }

    /// A change that a resource survives.
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

/// A change as it stands in the trail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its place: later changes have higher numbers.
    pub sequence: i64,
    /// Who and when.
    pub origin: Origin,
    /// What.
    pub change: Change,
    /// Whose the resource is or was.
    pub tenancy: Tenancy,
}

/// Which entries to list; unset fields do not restrict.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Of one resource.
    pub resource_id: Option<ResourceId>,
    /// Of one kind.
    pub kind: Option<String>,
    /// By one caller.
    pub actor: Option<String>,
    /// Of one action.
    pub action: Option<Action>,
    /// At this time or later.
    pub since: Option<DateTime<Utc>>,
    /// Before this time.
    pub until: Option<DateTime<Utc>>,
}
