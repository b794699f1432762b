use crate::domain::lifecycle::Refusal;
use crate::domain::page::InvalidOrder;
use crate::domain::precondition::EntityTag;
use crate::domain::{InvalidReport, ResourceId, Violation, Violations, shown};
use crate::storage::postgres;

/// Why a use case was refused or failed. Knows nothing of HTTP.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No such resource.
    #[error("{kind} with id='{id}' not found")]
    NotFound {
        /// Of what kind; `Resource` where any was asked for.
        kind: String,
        /// Under which id, as it was asked for.
        id: String,
    },
    /// No such resource to delete.
    #[error("{kind} not found")]
    NothingToDelete {
        /// Of what kind.
        kind: String,
    },
    /// The input breaks rules.
    #[error("the input is not valid")]
    Invalid(Violations),
    /// There is no such kind.
    #[error("Unknown entity kind: {0}")]
    UnknownKind(String),
    /// Resources of a kind have no links of that type.
    #[error("Unknown ref_type \"{ref_type}\" for entity {kind}")]
    UnknownReference {
        /// Which type.
        ref_type: String,
        /// Of which kind.
        kind: String,
    },
    /// A child kind can only be created below its parent.
    #[error("kind \"{kind}\" is a child kind; create it via /{parent_plural}/{{id}}/{plural}")]
    ChildKind {
        /// Which kind.
        kind: String,
        /// Its path segment.
        plural: String,
        /// Its parent's path segment.
        parent_plural: String,
    },
    /// An active resource has the name already.
    #[error("This {kind} already exists")]
    NameTaken {
        /// Of what kind.
        kind: String,
    },
    /// The state of the resource does not allow it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The preconditions of the request name other states of the resource.
    #[error("{kind} '{id}' is in another state than the request demands: {tag}")]
    Precondition {
        kind: String,
        id: ResourceId,
        /// Its state.
        tag: EntityTag,
    },
    /// A request with this key was carried out that asked for something else.
    #[error("this Idempotency-Key was used for another request: use a new key for each change")]
    KeyReused,
    /// A request with this key is still in progress.
    #[error("a request with this Idempotency-Key is in progress: send it again later")]
    KeyInUse,
    /// What is below a resource does not allow its deletion, and is not for the caller to see.
    #[error("Cannot delete {kind} '{id}': resources of other tenants below it do not allow it")]
    HeldBack {
        /// Of what kind.
        kind: String,
        /// Which one.
        id: ResourceId,
    },
    /// The report cannot be taken.
    #[error(transparent)]
    Report(#[from] InvalidReport),
    /// The order of a list cannot be used.
    #[error(transparent)]
    Order(#[from] InvalidOrder),
    /// Entries are asked for behind a position that the audit trail has not reached.
    #[error(
        "after is ahead of the audit trail: the database was set back to an earlier state, and its operator has not \
         begun a new era of the trail (SELECT begin_audit_era())"
    )]
    AheadOfTrail,
    /// The answer to a change cannot be written; the change is not made.
    #[error("cannot write the answer")]
    Answer(#[source] serde_json::Error),
    /// The database cannot serve right now; the same request may succeed later.
    #[error("storage is unavailable")]
    Unavailable(#[source] postgres::Error),
    /// The list takes more time than a request may, or waits too long for others that are slow.
    #[error("the list takes too long: narrow it down, or try again later")]
    TooSlow,
    /// The database failed us.
    #[error("storage failed")]
    Storage(#[source] postgres::Error),
}

impl Error {
    /// There is nothing of that kind under that id, which is repeated as far as a reader needs it.
    pub(super) fn not_found(kind: &str, id: &str) -> Self {
        Self::NotFound {
            kind: kind.to_owned(),
            id: shown(id),
        }
    }
}

impl From<postgres::Error> for Error {
    fn from(error: postgres::Error) -> Self {
        match error {
            postgres::Error::Unavailable { .. } | postgres::Error::Refused { .. } => {
                Self::Unavailable(error)
            }
            postgres::Error::TooSlow { .. } => Self::TooSlow,
            postgres::Error::Duplicate { .. }
            | postgres::Error::Locked { .. }
            | postgres::Error::Corrupt { .. }
            | postgres::Error::Failed { .. } => Self::Storage(error),
        }
    }
}

impl From<Violation> for Error {
    fn from(violation: Violation) -> Self {
        Self::Invalid(violation.into())
    }
}
