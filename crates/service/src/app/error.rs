//! Errors of use cases: what a client of any transport may see, without HTTP.

use chrono::{DateTime, Utc};

use hyperfleet_domain::lease::HeldLease;
use hyperfleet_domain::lifecycle::LifecycleRefusal;
use hyperfleet_domain::moment::rfc3339;
use hyperfleet_domain::patch::{PatchConflict, PatchError};
use hyperfleet_domain::precondition::EntityTag;
use hyperfleet_domain::{InvalidReport, ResourceId, Violation, Violations, excerpt};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{kind} with id='{id}' not found")]
    NotFound {
        /// The kind, or `Resource` if the path names none.
        kind: String,
        /// The id as the request spells it.
        id: String,
    },
    /// No such resource to delete.
    #[error("{kind} not found")]
    NothingToDelete { kind: String },
    #[error("the input is not valid")]
    Invalid(Violations),
    #[error("Unknown entity kind: {0}")]
    UnknownKind(String),
    /// The kind declares no references of the type.
    #[error("Unknown ref_type \"{ref_type}\" for entity {kind}")]
    UnknownReference { ref_type: String, kind: String },
    /// A child kind can only be created below its parent.
    #[error("kind \"{kind}\" is a child kind; create it via /{parent_plural}/{{id}}/{plural}")]
    ChildKind {
        kind: String,
        /// The path segment of the kind.
        plural: String,
        /// The path segment of its parent.
        parent_plural: String,
    },
    /// An active resource has the name.
    #[error("This {kind} already exists")]
    NameTaken { kind: String },
    /// The state of the resource does not allow it.
    #[error(transparent)]
    Refused(#[from] LifecycleRefusal),
    /// An operation of a patch does not fit the resource.
    #[error(transparent)]
    Patch(PatchConflict),
    /// `If-Match` names other states of the resource.
    #[error("{kind} '{id}' is in another state than the request demands: {tag}")]
    Precondition {
        kind: String,
        id: ResourceId,
        /// Its state.
        tag: EntityTag,
    },
    /// `If-None-Match` names the state of the resource, or is `*` and the resource exists.
    #[error("{kind} '{id}' is in a state that If-None-Match excludes: {tag}")]
    ExcludedState {
        kind: String,
        id: ResourceId,
        /// Its state.
        tag: EntityTag,
    },
    /// The key was used for another request.
    #[error("this Idempotency-Key was used for another request: use a new key for each change")]
    KeyReused,
    /// A request with this key is still in progress.
    #[error("a request with this Idempotency-Key is in progress: send it again later")]
    KeyInUse,
    /// Another holder has the lease.
    #[error("the lease '{}' is held by '{}' until {}", .0.name, .0.holder, rfc3339(.0.expires_at))]
    LeaseHeld(HeldLease),
    /// The lease is not held, or not by this holder.
    #[error("the lease '{name}' is not held")]
    NoLease { name: String },
    /// Descendants that the caller does not see prevent the deletion.
    #[error("Cannot delete {kind} '{id}': resources of other tenants below it do not allow it")]
    HeldBack { kind: String, id: ResourceId },
    #[error(transparent)]
    Report(#[from] InvalidReport),
    /// The position is after the end of the audit trail.
    #[error(
        "after is ahead of the audit trail: the database was set back to an earlier state, and its operator has not \
         begun a new era of the trail (SELECT begin_audit_era())"
    )]
    AheadOfTrail,
    /// Changes after the position are no longer stored, or the database was set back since.
    #[error(
        "changes after this position are no longer stored: list the resources again, or watch with initial=true"
    )]
    PositionGone,
    /// Changes since the time are no longer stored, or were not recorded yet.
    #[error("the history is not kept from then on: the earliest time is {}", rfc3339(*.since))]
    BeforeHistory { since: DateTime<Utc> },
    /// The resource has never had the generation.
    #[error("this {kind} has no generation {generation}: its latest is {latest}")]
    NoSuchGeneration {
        kind: String,
        generation: i32,
        latest: i32,
    },
    /// The resource may have had the generation, but the changes that would show it are not stored.
    #[error("generation {generation} of this {kind} is not kept: …/history has those that are")]
    GenerationNotStored { kind: String, generation: i32 },
    /// The answer to a change cannot be written; the change is not made.
    #[error("cannot write the answer")]
    Answer(#[source] serde_json::Error),
    /// The database is unavailable; the same request may succeed later.
    #[error("storage is unavailable")]
    Unavailable(#[source] hyperfleet_storage::Error),
    /// Another transaction holds a lock for too long; the same request may succeed later.
    #[error("another transaction holds what the request needs: send it again later")]
    Contended(#[source] hyperfleet_storage::Error),
    /// The list exceeds the time of a request, or waits too long for other slow lists.
    #[error("the list takes too long: narrow it down, or try again later")]
    TooSlow,
    #[error("storage failed")]
    Storage(#[source] hyperfleet_storage::Error),
}

impl Error {
    /// No resource of the kind has the id, which is shortened to what a reader needs.
    pub(super) fn not_found(kind: &str, id: &str) -> Self {
        Self::NotFound {
            kind: kind.to_owned(),
            id: excerpt(id),
        }
    }
}

impl From<hyperfleet_storage::Error> for Error {
    fn from(error: hyperfleet_storage::Error) -> Self {
        match error {
            hyperfleet_storage::Error::Unavailable { .. }
            | hyperfleet_storage::Error::Refused { .. }
            | hyperfleet_storage::Error::Unconnectable { .. } => Self::Unavailable(error),
            hyperfleet_storage::Error::Contended { .. } => Self::Contended(error),
            hyperfleet_storage::Error::TooSlow { .. } => Self::TooSlow,
            hyperfleet_storage::Error::Duplicate { .. }
            | hyperfleet_storage::Error::SequenceBehind { .. }
            | hyperfleet_storage::Error::Locked { .. }
            | hyperfleet_storage::Error::Corrupt { .. }
            | hyperfleet_storage::Error::Failed { .. } => Self::Storage(error),
        }
    }
}

impl From<Violation> for Error {
    fn from(violation: Violation) -> Self {
        Self::Invalid(violation.into())
    }
}

impl From<PatchError> for Error {
    fn from(error: PatchError) -> Self {
        match error {
            PatchError::Conflict(conflict) => Self::Patch(conflict),
            PatchError::Invalid(violations) => Self::Invalid(violations),
        }
    }
}
