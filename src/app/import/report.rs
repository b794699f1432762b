//! What a run did, and what it found.

use std::collections::BTreeMap;

use super::{RunOptions, VerifyScope};
use crate::domain::ResourceId;
use crate::domain::import::{Findings, Ledger};

/// What a run did, or would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportReport {
    /// Whether nothing was written.
    pub is_dry_run: bool,
    /// Whether the run was stopped before its end.
    pub is_interrupted: bool,
    /// By kind.
    pub kinds: BTreeMap<String, KindTally>,
    /// Resources that are new here.
    pub added: usize,
    /// Resources that were imported before and written again.
    pub changed: usize,
    /// Resources that are gone with the source's.
    pub removed: usize,
    /// Resources that were as the source has them.
    pub unchanged: usize,
    /// Reports that were written.
    pub reports: usize,
    /// References that were written.
    pub references: usize,
    /// What is not here as the source has it.
    pub findings: Findings,
    /// The comparison at the end; unset without one.
    pub verification: Option<Verification>,
}

/// Resources of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KindTally {
    /// Those of the source.
    pub source: usize,
    /// Those that are imported.
    pub imported: usize,
    /// Those that the run refused.
    pub refused: usize,
}

/// What the comparison of both databases found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification {
    /// What was compared.
    pub scope: VerifyScope,
    /// How many resources are equal.
    pub equal: usize,
    /// How many are equal but for the parts that were refused.
    pub equal_in_part: usize,
    /// How many were left out, because they are here in an older state: the newer one was refused.
    pub older: usize,
    /// How many were left out, because this service has changed or removed them since.
    pub changed_here: usize,
    /// How many differ.
    pub differing: usize,
    /// The first of them.
    pub first: Vec<Difference>,
}

/// A resource that is not the same in both databases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Which one.
    pub id: ResourceId,
    /// Its kind.
    pub kind: String,
}

impl Verification {
    /// Most differing resources that are named.
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
