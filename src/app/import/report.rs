//! The result of a run.

use std::collections::BTreeMap;

use super::{RunOptions, VerifyScope};
use crate::domain::ResourceId;
use crate::domain::import::{Findings, Ledger};

/// What a run did, or would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportReport {
    pub is_dry_run: bool,
    pub is_interrupted: bool,
    pub kinds: BTreeMap<String, KindTally>,
    pub added: usize,
    /// Resources that were imported before and written again.
    pub changed: usize,
    /// Resources that were removed because the source has removed them.
    pub removed: usize,
    /// Resources that were equal already.
    pub unchanged: usize,
    pub reports: usize,
    pub references: usize,
    /// Where this database differs from the source.
    pub findings: Findings,
    /// The comparison at the end, if there was one.
    pub verification: Option<Verification>,
}

/// Number of resources of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KindTally {
    /// In the source.
    pub source: usize,
    /// Imported, by this run or earlier.
    pub imported: usize,
    /// Refused by this run.
    pub refused: usize,
}

/// The result of comparing both databases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification {
    pub scope: VerifyScope,
    pub equal: usize,
    /// Number of resources that are equal except for refused parts.
    pub equal_in_part: usize,
    /// Number of skipped resources that are here in an older state, because the newer one was refused.
    pub older: usize,
    /// Number of skipped resources that this service has changed or removed since.
    pub changed_here: usize,
    pub differing: usize,
    /// The first differing resources.
    pub first: Vec<Difference>,
}

/// A resource that differs between the databases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    pub id: ResourceId,
    pub kind: String,
}

impl Verification {
    /// Differing resources that are named at most.
    pub const FIRST_MAX: usize = 100;

    pub(super) fn of(scope: VerifyScope) -> Self {
        Self {
            scope,
            equal: 0,
            equal_in_part: 0,
            older: 0,
            changed_here: 0,
            differing: 0,
            first: Vec::new(),
        }
    }
}

impl ImportReport {
    pub(super) fn of(options: RunOptions) -> Self {
        Self {
            is_dry_run: options.is_dry_run,
            is_interrupted: false,
            kinds: BTreeMap::new(),
            added: 0,
            changed: 0,
            removed: 0,
            unchanged: 0,
            reports: 0,
            references: 0,
            findings: Findings::default(),
            verification: None,
        }
    }

    pub(super) fn kind(&mut self, kind: &str) -> &mut KindTally {
        self.kinds.entry(kind.to_owned()).or_default()
    }

    /// Counts what is imported.
    pub(super) fn count(&mut self, ledger: &Ledger) {
        for (kind, count) in ledger.counts() {
            self.kind(kind).imported = count;
        }
    }
}
