//! Findings of an import: what it refuses or imports with a difference, why, and what to do.

use std::fmt::Display;

use serde::Serialize;
use strum::IntoStaticStr;

/// Why a part of the source differs here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ImportReason {
    /// The id is not a UUID.
    Id,
    UnknownKind,
    /// The name breaks a rule of its kind.
    Name,
    /// Another resource of this database has the name.
    NameTaken,
    /// A resource of this database that was not imported has the id.
    IdTaken,
    /// A resource keeps its kind forever, in both services.
    KindChanged,
    NoParent,
    /// The kind has a parent in one of both only, or another one.
    Parent,
    Spec,
    Labels,
    Tenancy,
    Conditions,
    /// A column has a value that the older service never writes.
    Column,
    Report,
    /// The kind declares no references of the type.
    ReferenceType,
    ReferenceTarget,
    /// The resource was changed in this database after it was imported.
    ChangedHere,
    /// The resource was removed from this database after it was imported.
    RemovedHere,
    /// The source has removed the resource, but others need it here.
    NeededHere,
    /// The path differs from the one in the source.
    Href,
    /// The older service leaves reports behind when it removes resources without required adapters.
    OrphanReport,
}

impl ImportReason {
    /// Whether the part is left out although the source uses it.
    pub fn is_refusal(self) -> bool {
        !matches!(self, Self::Href | Self::OrphanReport)
    }

    /// Its name for programs.
    pub fn code(self) -> &'static str {
        self.into()
    }

    /// What is wrong, unless only a detail says it, and what the operator can do.
    #[rustfmt::skip]
    fn texts(self) -> (&'static str, &'static str) {
        match self {
            Self::Id => ("the id is not a UUID in lower case", "clients find resources by UUIDs only: create it again in the older service, or do without it"),
            Self::UnknownKind => ("no entity is configured for the kind", "add the kind to `entities` in the configuration and import again, or do without it"),
            Self::Name => ("", "names never change: create it again under another name in the older service, or widen the limits of its kind"),
            Self::NameTaken => ("an active resource of this database has the name", "delete or recreate one of the two, then import again"),
            Self::IdTaken => ("a resource of this database that was not imported has the id", "import into an empty database"),
            Self::KindChanged => ("the kind is another one than when the resource was imported", "the older service never changes kinds: undo it in the older database, then import again"),
            Self::NoParent => ("the parent is not imported or not in the source", "see why the parent is left out; without a parent it can only be created again"),
            Self::Parent => ("the kind and its parent do not fit the configured entities", "configure `parent_kind` as in the older service and import again"),
            Self::Spec => ("spec", "patch the spec in the older service, or import without server.openapi_schema_path, then import again"),
            Self::Labels => ("labels", "patch the labels in the older service, then import again"),
            Self::Tenancy => ("tenancy", "correct the column in the older database, then import again"),
            Self::Conditions => ("conditions", "the older service writes no such row: correct it in the older database, then import again"),
            Self::Column => ("impossible value", "the older service writes no such row: correct it in the older database, then import again"),
            Self::Report => ("report", "the adapter's next report takes its place"),
            Self::ReferenceType => ("no entity declares this reference type with this target kind", "add the reference to the kind in `entities` and import again, or do without it"),
            Self::ReferenceTarget => ("the target of the reference is not imported or not in the source", "see why the target is left out"),
            Self::ChangedHere => ("the resource was changed here since it was imported, and differs from the source", "decide which state is right, and stop writing to the older service"),
            Self::RemovedHere => ("the resource was removed here since it was imported, and is still in the source", "decide which state is right, and stop writing to the older service"),
            Self::NeededHere => ("the source has removed the resource, but this database has changed or uses it", "delete it here when nothing uses it any longer"),
            Self::Href => ("", "nothing: no route served the older path; clients that stored it take the new one"),
            Self::OrphanReport => ("the resource of the report is not in the source", "nothing: the older service cannot read it either"),
        }
    }

    /// A refusal for this reason, with details that the reason does not include.
    pub(super) fn because(self, detail: impl Into<String>) -> Refusal {
        Refusal {
            reason: self,
            detail: detail.into(),
        }
    }

    /// The finding about a resource.
    pub(super) fn of(self, kind: &str, id: &dyn Display, name: &str) -> ImportFinding {
        self.because("").of(kind, id, name)
    }
}

/// A broken rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    reason: ImportReason,
    detail: String,
}

impl From<ImportReason> for Refusal {
    fn from(reason: ImportReason) -> Self {
        reason.because("")
    }
}

impl Refusal {
    /// The finding about a resource.
    pub(super) fn of(self, kind: &str, id: &dyn Display, name: &str) -> ImportFinding {
        let (what, advice) = self.reason.texts();
        let parts = [what, &self.detail]
            .into_iter()
            .filter(|part| !part.is_empty());
        ImportFinding {
            reason: self.reason,
            message: parts.collect::<Vec<_>>().join(": "),
            advice,
            refused: self.reason.is_refusal(),
            kind: kind.to_owned(),
            id: id.to_string(),
            name: name.to_owned(),
            adapter: None,
            ref_type: None,
            target: None,
        }
    }
}

/// One part of the source that differs here: a resource, or its report or reference if these are named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImportFinding {
    pub reason: ImportReason,
    pub message: String,
    pub advice: &'static str,
    pub refused: bool,
    /// Kind of the resource in the source.
    pub kind: String,
    /// Id of the resource in the source.
    pub id: String,
    /// Name of the resource; empty if unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adapter: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ref_type: Option<String>,
    /// The id of the reference's target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}
