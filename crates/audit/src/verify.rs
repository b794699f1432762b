//! Compares entries with the links of the chain, line by line. Keeps 32 bytes for each entry of the pass in progress.

use std::mem;

use super::report::UnsealedEntries;
use super::tree::{Tree, root_of_path};
use super::{AuditReport, FaultKind, Hash, Line, Link, Pass, ProvenEntry, Tenancy};

/// A verification in progress.
#[derive(Debug, Default)]
pub struct ChainVerifier {
    /// Hashes of the entries since the last link.
    leaves: Vec<Hash>,
    /// Entries of a tenant's export since the last link.
    proven: Vec<ProvenEntry>,
    /// A hash that was noted earlier, until a link has it.
    noted: Option<Hash>,
    /// Lines that were taken.
    lines: u64,
    report: AuditReport,
}

impl ChainVerifier {
    /// `noted` is the hash of a link, as an earlier report printed it: the chain must include it.
    pub fn new(noted: Option<Hash>) -> Self {
        Self {
            noted,
            ..Self::default()
        }
    }

    /// Takes the next line; `None` for one that cannot be read.
    pub fn take(&mut self, read: Option<Line>) {
        self.lines += 1;
        match read {
            Some(Line::Entry(entry)) => {
                self.leaves.push(entry.hash());
                self.report.unsealed.add(entry.at);
            }
            Some(Line::Proven(proven)) => {
                self.report.unsealed.add(proven.entry.at);
                self.proven.push(proven);
            }
            Some(Line::Link(link)) => self.link(link),
            Some(Line::Tenant { tenancy }) if self.lines == 1 => {
                self.report.tenancy = Some(tenancy);
            }
            Some(Line::Tenant { .. }) | None => {
                let message = format!("line {} is neither an entry nor a pass", self.lines);
                self.report.fault(FaultKind::Unreadable, message, None);
            }
        }
    }

    fn link(&mut self, link: Link) {
        let report = &mut self.report;
        if link.pass.hash() != link.hash {
            let message = "its hash does not match its content";
            report.fault(FaultKind::Hash, message, Some(&link.pass));
        }
        let before = report
            .last
            .as_ref()
            .map(|last| (last.pass.number, last.hash));
        let pass = (link.pass.number, link.pass.previous);
        let follows = |(number, hash): (i64, Hash)| pass == (number.saturating_add(1), hash);
        if let Some((number, _)) = before.filter(|before| !follows(*before)) {
            let message = format!("it does not follow pass {number}, which is before it");
            report.fault(FaultKind::Link, message, Some(&link.pass));
        }
        if before.is_some() || report.unsealed.entries > 0 {
            self.check_entries(&link.pass);
            self.report.first.get_or_insert_with(|| link.clone());
        }
        self.noted.take_if(|noted| *noted == link.hash);
        self.report.unsealed = UnsealedEntries::default();
        // What was stored, so that a fault does not show in every later link.
        self.report.last = Some(link);
    }

    /// Checks the entries since the link before.
    fn check_entries(&mut self, pass: &Pass) {
        let leaves = mem::take(&mut self.leaves);
        let proven = mem::take(&mut self.proven);
        let report = &mut self.report;
        let found = report.unsealed.entries;
        report.entries += found;
        let is_complete = match &report.tenancy {
            Some(tenancy) => leaves.is_empty() && are_proven(&proven, pass, tenancy),
            None => proven.is_empty() && Tree::new(leaves).root() == pass.root,
        };
        let has_count = report.tenancy.is_some() || i64::try_from(found) == Ok(pass.entries.into());
        let message = match (has_count, is_complete) {
            (true, true) => return,
            (true, false) => "its entries are not those that were sealed".to_owned(),
            (false, _) => format!("entries sealed: {}, found: {found}", pass.entries),
        };
        report.fault(FaultKind::Entries, message, Some(pass));
    }

    /// Ends the verification. Entries after the last link are no faults: they wait to be sealed.
    pub fn finish(mut self) -> AuditReport {
        if let Some(noted) = self.noted {
            let message = format!("no pass has the hash {noted}");
            self.report.fault(FaultKind::Missing, message, None);
        }
        self.report
    }
}

/// Whether the paths of these entries lead to the root of the pass.
fn are_proven(entries: &[ProvenEntry], pass: &Pass, tenancy: &Tenancy) -> bool {
    let count = u64::try_from(pass.entries).unwrap_or_default();
    let is_proven = |proven: &ProvenEntry| {
        let root = root_of_path(proven.entry.hash(), proven.index, count, &proven.path);
        proven.entry.tenancy == *tenancy && root == Some(pass.root)
    };
    entries.is_sorted_by(|one, other| one.index < other.index) && entries.iter().all(is_proven)
}
