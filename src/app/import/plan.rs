//! Compares the keys of the source with those here.

use std::collections::HashSet;

use super::{EVERYTHING, Error, ImportStep, ReadScope, Run};
use crate::domain::import::{
    FindingPart, ImportFinding, ImportPlan, ImportPlanner, ImportReason, SourceKey, SourcePosition,
};
use crate::storage::postgres::ImportSource;

/// Number of transactions after which the source reuses their numbers, so that a position means nothing any more.
const NUMBERS: i64 = 1 << 31;

impl Run<'_> {
    pub(super) async fn plan(
        &mut self,
        source: &mut ImportSource,
        since: Option<i64>,
        position: &SourcePosition,
    ) -> Result<ImportPlan, Error> {
        self.emit(ImportStep::Plan, 0, 0);
        let is_near = |since: &i64| {
            *since != EVERYTHING && (0..NUMBERS).contains(&(position.transaction - since))
        };
        let since = since.filter(is_near);
        let since = since.filter(|_| self.options.read == ReadScope::Changed);
        let changed = match since {
            None => HashSet::new(),
            Some(since) => source.changed_parts(since).await.map_err(Error::Source)?,
        };
        let mut planner = ImportPlanner::new(self.registry, &mut self.ledger);
        let take = |key: SourceKey<'_>| planner.push(key, |id| changed.contains(&id));
        let keys = source.each_key(since, take);
        keys.await.map_err(Error::Source)?;
        let (mut plan, counts) = planner.finish();
        for (kind, count) in counts {
            self.report.kind(&kind).source = count;
        }
        self.report.unchanged = plan.unchanged;
        for finding in std::mem::take(&mut plan.findings) {
            self.findings().push(finding);
        }
        Ok(plan)
    }

    pub(super) async fn find_orphans(&mut self, source: &mut ImportSource) -> Result<(), Error> {
        let findings = &mut self.report.findings;
        let orphans = source.each_orphan(|orphan| {
            findings.push(ImportFinding {
                reason: ImportReason::OrphanReport,
                kind: orphan.kind,
                id: orphan.id,
                name: String::new(),
                part: FindingPart::Report {
                    adapter: orphan.adapter,
                },
            });
        });
        orphans.await.map_err(Error::Source)
    }
}
