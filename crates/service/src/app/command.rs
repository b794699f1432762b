//! Commands that change resources, and what comes of them.

use std::sync::Arc;

use super::ResourcePath;
use super::effects::Effects;
use hyperfleet_domain::audit::ChangeOrigin;
use hyperfleet_domain::dry_run::DryRunPlan;
use hyperfleet_domain::idempotency::{KeyedRequest, StoredAnswer};
use hyperfleet_domain::lifecycle::Outcome;
use hyperfleet_domain::patch::RequestedPatch;
use hyperfleet_domain::precondition::Preconditions;
use hyperfleet_domain::tenancy::Tenant;
use hyperfleet_domain::{
    ConditionalReport, Entity, Report, ReportOutcome, RequestedResource, Resource, ResourceState,
};

/// What a request asks to change.
pub enum Command<'a> {
    /// Creates a resource of a root kind, or of a child kind below `parent`: its kind, and its id as the path spells it.
    Create {
        entity: &'a Entity,
        parent: Option<(&'a Entity, &'a str)>,
        new: RequestedResource,
    },
    /// Changes the desired state. Writes nothing if nothing differs.
    Patch {
        path: ResourcePath<'a>,
        patch: &'a RequestedPatch,
        conditions: &'a Preconditions,
    },
    /// Marks a resource as deleted, and removes everything that waits for nothing.
    Delete {
        path: ResourcePath<'a>,
        conditions: &'a Preconditions,
    },
    /// Removes a finalizing resource with its descendants although adapters are not done.
    ForceDelete {
        path: ResourcePath<'a>,
        reason: &'a str,
        conditions: &'a Preconditions,
    },
    /// Judges and stores an adapter's report, updates the conditions, and removes the resource if the report completes
    /// its deletion.
    Report {
        path: ResourcePath<'a>,
        report: ConditionalReport<'a>,
    },
}

/// On whose behalf, and by whom.
#[derive(Clone, Copy)]
pub struct Author<'a> {
    pub tenant: &'a Tenant,
    pub origin: &'a ChangeOrigin,
}

/// How a command is executed.
#[derive(Clone, Copy)]
pub enum Mode<'a> {
    Plain,
    /// One effect and one answer, however often the request is sent.
    Keyed(&'a KeyedRequest),
    /// Rolled back. The key of the request is judged, but not stored.
    DryRun(Option<&'a KeyedRequest>),
}

/// A resource whose deletion was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Deleted {
    /// As it is, or as it was when it was removed.
    pub resource: Resource,
    /// Whether it is gone.
    pub is_removed: bool,
}

/// What a command has made.
#[derive(Debug, Clone, PartialEq)]
pub enum CommandResult {
    Created(Arc<Resource>),
    /// As it is now.
    Patched(Resource),
    Deleted(Deleted),
    ForceDeleted,
    Reported {
        /// The adapter's stored report; `None` if the incoming one was discarded.
        stored: Option<Report>,
        judged: ReportOutcome,
    },
}

/// Writes the answer to a change, before the change is committed.
pub type WriteAnswer<'a> = &'a dyn Fn(&CommandResult) -> Result<StoredAnswer, serde_json::Error>;

/// The answer to a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeAnswer {
    pub answer: StoredAnswer,
    /// Whether it is the response to an earlier request with the same key.
    pub is_replayed: bool,
    /// What the command would do, if it was a dry run.
    pub plan: Option<DryRunPlan>,
    /// Why a report was not stored.
    pub warning: Option<&'static str>,
}

/// A command that has been made, and is not committed yet.
pub(super) struct Applied {
    pub(super) result: CommandResult,
    /// The resources as they were.
    pub(super) before: Vec<ResourceState>,
    pub(super) outcome: Outcome,
    /// What is counted and logged beside what follows from the outcome.
    pub(super) more: Effects,
}

impl<'a> Mode<'a> {
    pub(super) fn key(self) -> Option<&'a KeyedRequest> {
        match self {
            Self::Plain => None,
            Self::Keyed(key) => Some(key),
            Self::DryRun(key) => key,
        }
    }

    pub(super) fn is_dry_run(self) -> bool {
        matches!(self, Self::DryRun(_))
    }
}

impl CommandResult {
    pub(super) fn warning(&self) -> Option<&'static str> {
        match self {
            Self::Reported { judged, .. } => judged.reason(),
            _ => None,
        }
    }
}

impl Applied {
    /// What is counted and logged once the change is committed.
    pub(super) fn effects(self) -> Effects {
        Effects::of(&self.before, self.outcome).and(self.more)
    }
}
