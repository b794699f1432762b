//! What the source has against what is here.

use std::collections::HashSet;

use super::{Error, ImportStep, Run};
use crate::domain::import::{Finding, FindingPart, ImportPlan, ImportPlanner, ImportReason};
use crate::storage::postgres::SourcePosition;

/// Transactions after which numbers of the source are used again, and a position means nothing any more.
const NUMBERS: i64 = 1 << 31;

impl Run<'_> {
    pub(super) async fn plan(
        &mut self,
        since: Option<i64>,
        position: &SourcePosition,
    ) -> Result<ImportPlan, Error> {
        self.tell(ImportStep::Plan, 0, 0);
        let is_near = |since: &i64| (0..NUMBERS).contains(&(position.transaction - since));
        let since = since.filter(is_near).filter(|_| !self.options.is_full);
        let changed = match since {
            None => HashSet::new(),
            Some(since) => self
                .source
                .changed_parts(since)
                .await
                .map_err(Error::Source)?,
        };
        let mut planner = ImportPlanner::new(self.registry, &mut self.ledger);
        let keys = self
            .source
            .each_key(since, |key| planner.push(key, |id| changed.contains(&id)));
        keys.await.map_err(Error::Source)?;
        let (mut plan, counts) = planner.finish();
        for (kind, count) in counts {
            self.report.kind(&kind).source = count;
        }
        self.report.unchanged = plan.unchanged;
        for finding in std::mem::take(&mut plan.findings) {
            self.findings().push(finding);
        }
        self.find_orphans().await?;
        Ok(plan)
    }

    async fn find_orphans(&mut self) -> Result<(), Error> {
        let findings = &mut self.report.findings;
        let orphans = self.source.each_orphan(|orphan| {
            findings.push(Finding {
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
