//! Findings of an import: what it refuses or imports with a difference, why, and what to do.

use std::collections::BTreeMap;

use strum::IntoStaticStr;

use crate::domain::ResourceId;

/// Why a part of the source differs here.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ImportReason {
    /// The id is not a UUID.
    #[error("the id is not a UUID in lower case")]
    Id,
    #[error("no entity is configured for the kind")]
    UnknownKind,
    /// The name breaks a rule of its kind.
    #[error("{0}")]
    Name(String),
    /// Another resource of this database has the name.
    #[error("an active resource of this database has the name")]
    NameTaken,
    /// A resource of this database that was not imported has the id.
    #[error("a resource of this database that was not imported has the id")]
    IdTaken,
    /// A resource keeps its kind for ever, in both services.
    #[error("the kind is {there} in the source, and was {here} when it was imported")]
    KindChanged { here: String, there: String },
    #[error("the parent is not imported or not in the source")]
    NoParent,
    /// The kind has a parent in one of both only, or another one.
    #[error("the kind and its parent do not fit the configured entities: {0}")]
    Parent(String),
    #[error("spec: {0}")]
    Spec(String),
    #[error("labels: {0}")]
    Labels(String),
    #[error("tenancy: {0}")]
    Tenancy(String),
    #[error("conditions: {0}")]
    Conditions(String),
    /// A column has a value that the older service never writes.
    #[error("{column} is impossible: {value}")]
    Column { column: &'static str, value: String },
    #[error("report: {0}")]
    Report(String),
    /// The older service leaves reports behind when it removes resources without required adapters.
    #[error("the resource of the report is not in the source")]
    OrphanReport,
    /// The kind declares no references of the type.
    #[error("no entity declares this reference type with this target kind")]
    ReferenceType,
    #[error("the target of the reference is not imported or not in the source")]
    ReferenceTarget,
    /// The resource was changed in this database after it was imported.
    #[error("the resource was changed here since it was imported, and in the source")]
    ChangedHere,
    /// The resource was removed from this database after it was imported.
    #[error("the resource was removed here since it was imported, and changed in the source")]
    RemovedHere,
    /// The source has removed the resource, but others need it here.
    #[error("the source has removed the resource, but this database has changed or uses it")]
    NeededHere,
    /// The path differs from the one in the source.
    #[error("its path is {here} here, and was {there}")]
    Href { here: String, there: String },
}

impl ImportReason {
    /// Whether the part is left out although the source uses it.
    pub fn is_refusal(&self) -> bool {
        !matches!(self, Self::Href { .. } | Self::OrphanReport)
    }

    /// Its name for programs.
    pub fn code(&self) -> &'static str {
        self.into()
    }

    /// What the operator can do.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Id => {
                "clients find resources by UUIDs only: create it again in the older service, or do without it"
            }
            Self::UnknownKind => {
                "add the kind to `entities` in the configuration and import again, or do without it"
            }
            Self::Name(_) => {
                "names never change: create it again under another name in the older service, or widen the limits of its kind"
            }
            Self::NameTaken => "delete or recreate one of the two, then import again",
            Self::IdTaken => "import into an empty database",
            Self::NoParent => {
                "see why the parent is left out; without a parent it can only be created again"
            }
            Self::KindChanged { .. } => {
                "the older service never changes kinds: undo it in the older database, then import again"
            }
            Self::Parent(_) => "configure `parent_kind` as in the older service and import again",
            Self::Spec(_) => {
                "patch the spec in the older service, or import without server.openapi_schema_path, then import again"
            }
            Self::Labels(_) => "patch the labels in the older service, then import again",
            Self::Tenancy(_) => "correct the column in the older database, then import again",
            Self::Conditions(_) | Self::Column { .. } => {
                "the older service writes no such row: correct it in the older database, then import again"
            }
            Self::Report(_) => "the adapter's next report takes its place",
            Self::OrphanReport => "nothing: the older service cannot read it either",
            Self::ReferenceType => {
                "add the reference to the kind in `entities` and import again, or do without it"
            }
            Self::ReferenceTarget => "see why the target is left out",
            Self::ChangedHere | Self::RemovedHere => {
                "decide which one is right, and stop writing to the older service"
            }
            Self::NeededHere => "delete it here, when nothing uses it any more",
            Self::Href { .. } => {
                "nothing: no route served the older path; clients that stored it take the new one"
            }
        }
    }
}

/// The part of a resource that a finding is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingPart {
    Resource,
    Report { adapter: String },
    Reference { ref_type: String, target: String },
}

/// One part of the source that differs here.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ImportFinding {
    pub reason: ImportReason,
    /// Kind of the resource in the source.
    pub kind: String,
    /// Id of the resource in the source.
    pub id: String,
    /// Name of the resource; empty if unknown.
    pub name: String,
    pub part: FindingPart,
}

/// All findings of a run: each counted, the first ones kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    counts: BTreeMap<&'static str, usize>,
    listed: Vec<ImportFinding>,
    refused: usize,
}

impl Findings {
    /// Findings of one reason that are listed at most.
    pub const LISTED_MAX: usize = 1_000;

    /// Counts a finding, and keeps it if it is one of the first of its reason.
    pub fn push(&mut self, finding: ImportFinding) {
        let count = self.counts.entry(finding.reason.code()).or_default();
        *count += 1;
        self.refused += usize::from(finding.reason.is_refusal());
        if *count <= Self::LISTED_MAX {
            self.listed.push(finding);
        }
    }

    /// Number of findings, by the code of the reason.
    pub fn counts(&self) -> &BTreeMap<&'static str, usize> {
        &self.counts
    }

    /// The first ones of each reason, in the order in which they were found.
    pub fn listed(&self) -> &[ImportFinding] {
        &self.listed
    }

    /// Number of parts of the source that are left out.
    pub fn refused(&self) -> usize {
        self.refused
    }
}

/// The finding for a resource whose stored path in the source differs.
pub(super) fn href_differs(here: String, there: Option<&str>) -> Option<ImportReason> {
    let there = there.filter(|there| *there != here)?.to_owned();
    Some(ImportReason::Href { here, there })
}

/// A finding about a resource with a valid id.
pub fn about(reason: ImportReason, kind: &str, id: ResourceId) -> ImportFinding {
    ImportFinding {
        reason,
        kind: kind.to_owned(),
        id: id.to_string(),
        name: String::new(),
        part: FindingPart::Resource,
    }
}
