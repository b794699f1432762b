//! The result of a pass: one value, printed as text or as JSON.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use uuid::Uuid;

use super::finding::ImportFinding;
use hyperfleet_domain::ResourceId;

/// What a pass did, or would do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ImportReport {
    pub dry_run: bool,
    pub interrupted: bool,
    pub kinds: BTreeMap<String, KindTally>,
    pub added: usize,
    /// Resources that were imported before and written again.
    pub changed: usize,
    /// Resources that were removed because the source no longer has them.
    pub removed: usize,
    /// Resources that were equal already.
    pub unchanged: usize,
    pub reports: usize,
    pub references: usize,
    /// Number of parts of the source that are left out.
    pub refused: usize,
    /// Number of findings by the code of the reason.
    pub findings: BTreeMap<&'static str, usize>,
    /// The first ones of each reason, in the order in which they were found.
    pub listed: Vec<ImportFinding>,
    pub verification: Verification,
}

/// Number of resources of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct KindTally {
    /// In the source.
    pub source: usize,
    /// Imported, by this pass or earlier.
    pub imported: usize,
    /// Refused by this pass.
    pub refused: usize,
}

/// The comparison of both databases by digests. Each database computes one for each resource from its own rows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Verification {
    pub equal: usize,
    pub differing: usize,
    /// Resources that are not compared because some of their reports or references were refused.
    pub incomplete: usize,
    /// The sum of the digests of all compared resources, whatever their order.
    pub source_digest: Uuid,
    pub target_digest: Uuid,
    /// The first differing resources.
    pub differences: Vec<Difference>,
}

/// A resource that differs between the databases, with its digest in each that has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    pub kind: String,
    #[serde(serialize_with = "as_text")]
    pub id: ResourceId,
    pub source: Option<Uuid>,
    pub target: Option<Uuid>,
}

fn as_text<S: Serializer>(id: &ResourceId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(id)
}

impl Verification {
    /// Differing resources that are named at most.
    pub const NAMED_MAX: usize = 100;

    /// Takes the digests of an equal resource.
    pub(super) fn add(&mut self, source: Option<Uuid>, target: Option<Uuid>) {
        self.equal += 1;
        self.sum(source, target);
    }

    pub(super) fn differ(&mut self, difference: Difference) {
        self.differing += 1;
        self.sum(difference.source, difference.target);
        if self.differences.len() < Self::NAMED_MAX {
            self.differences.push(difference);
        }
    }

    fn sum(&mut self, source: Option<Uuid>, target: Option<Uuid>) {
        for (sum, digest) in [
            (&mut self.source_digest, source),
            (&mut self.target_digest, target),
        ] {
            let digest = digest.unwrap_or_default().as_u128();
            *sum = Uuid::from_u128(sum.as_u128().wrapping_add(digest));
        }
    }
}

impl ImportReport {
    /// Findings of one reason that are listed at most.
    pub const LISTED_MAX: usize = 1_000;

    /// The exit code of the program.
    pub fn exit_code(&self) -> u8 {
        match self {
            // As shells report SIGINT.
            _ if self.interrupted => 130,
            _ if self.verification.differing > 0 => 4,
            _ if self.refused > 0 => 3,
            _ => 0,
        }
    }

    pub(super) fn kind(&mut self, kind: &str) -> &mut KindTally {
        self.kinds.entry(kind.to_owned()).or_default()
    }

    /// Takes the finding that a resource is refused.
    pub(super) fn refuse(&mut self, finding: ImportFinding) {
        self.kind(&finding.kind).refused += 1;
        self.push(finding);
    }

    /// Counts a finding, and lists it if it is one of the first of its reason.
    pub(super) fn push(&mut self, finding: ImportFinding) {
        let count = self.findings.entry(finding.reason.code()).or_default();
        *count += 1;
        let is_listed = *count <= Self::LISTED_MAX;
        self.refused += usize::from(finding.refused);
        if is_listed {
            self.listed.push(finding);
        }
    }
}
