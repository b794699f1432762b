//! Translates and writes resources with their reports in batches, while the next ones are read.

use std::collections::{HashMap, HashSet};

use tokio::sync::mpsc;

use super::reading::read;
use super::{Error, ImportStep, Run};
use crate::domain::ResourceId;
use crate::domain::import::{
    FindingPart, ImportFinding, ImportPlan, ImportReason, ImportedParts, ImportedResource,
    SourceResource, translate,
};
use crate::storage::postgres::{self, ImportSource, Session};

/// How often a batch that conflicts with requests is written again.
const WRITE_ATTEMPTS_MAX: usize = 3;

/// A batch that is ready to be written.
#[derive(Default)]
struct Batch {
    sound: Vec<ImportedResource>,
    /// Resources with an older state here, whose newer state is refused.
    stale: Vec<ResourceId>,
    /// Those of them that were changed here.
    changed: Vec<ResourceId>,
}

#[derive(Default)]
struct Written {
    ids: HashSet<ResourceId>,
    /// Resources that requests have removed since the run began.
    removed_here: HashSet<ResourceId>,
}

/// A resource whose references are not yet written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unlinked {
    pub(super) id: ResourceId,
    pub(super) has_all_reports: bool,
}

impl Run<'_> {
    /// Imports the resources of the plan. Returns those whose references are not yet written.
    pub(super) async fn bring(
        &mut self,
        source: &mut ImportSource,
        plan: &ImportPlan,
    ) -> Result<Vec<Unlinked>, Error> {
        let (sender, batches) = mpsc::channel(1);
        let read = read(source, plan, self.options.batch, sender);
        let (read, unlinked) = tokio::join!(read, self.write_all(batches, plan.total()));
        read?;
        unlinked
    }

    async fn write_all(
        &mut self,
        mut batches: mpsc::Receiver<Vec<SourceResource>>,
        total: usize,
    ) -> Result<Vec<Unlinked>, Error> {
        let (mut done, mut unlinked) = (0, Vec::new());
        while !self.is_stopped()
            && let Some(rows) = batches.recv().await
        {
            done += rows.len();
            let mut batch = self.check(rows).await?;
            let written = match self.write(&batch).await {
                Err(error) if error.is_conflict() => self.write_again(&mut batch).await?,
                written => written?,
            };
            self.record(batch, &written, &mut unlinked);
            self.emit(ImportStep::Bring, done, total);
        }
        Ok(unlinked)
    }

    /// Translates the rows, without those that are refused.
    async fn check(&mut self, rows: Vec<SourceResource>) -> Result<Batch, Error> {
        let mut batch = Batch::default();
        for row in rows {
            let (kind, id, name) = (row.kind.clone(), row.id.clone(), row.name.clone());
            let translated = self
                .unless_kind_changed(&row)
                .and_then(|()| translate(self.registry, row, |owner| self.ledger.kind_of(owner)));
            match translated {
                Ok(imported) => batch.sound.push(imported),
                Err(reason) => {
                    let stale = ResourceId::parse(&id).filter(|id| self.ledger.has(*id));
                    batch.stale.extend(stale);
                    self.refuse(reason, kind, id, name);
                }
            }
        }
        if !batch.sound.is_empty() {
            self.leave_out_conflicts(&mut batch).await?;
        }
        Ok(batch)
    }

    async fn write(&mut self, batch: &Batch) -> Result<Written, postgres::Error> {
        let ids = batch.sound.iter().map(|one| one.resource.state.id);
        if self.options.is_dry_run || (batch.sound.is_empty() && batch.stale.is_empty()) {
            return Ok(Written {
                ids: ids.collect(),
                ..Written::default()
            });
        }
        let known = self.lock_order(ids.filter(|id| self.ledger.has(*id)));
        write(&mut self.session, batch, &known).await
    }

    fn unless_kind_changed(&self, row: &SourceResource) -> Result<(), ImportReason> {
        let here = ResourceId::parse(&row.id).and_then(|id| self.ledger.kind_of(id));
        match here.filter(|here| **here != row.kind) {
            None => Ok(()),
            Some(here) => Err(ImportReason::KindChanged {
                here: here.to_owned(),
                there: row.kind.clone(),
            }),
        }
    }

    /// Writes the rest of a batch after a request has taken a name or removed a parent.
    async fn write_again(&mut self, batch: &mut Batch) -> Result<Written, Error> {
        let mut attempts = 1;
        loop {
            self.leave_out_conflicts(batch).await?;
            match self.write(batch).await {
                Err(error) if error.is_conflict() && attempts < WRITE_ATTEMPTS_MAX => attempts += 1,
                written => return Ok(written?),
            }
        }
    }

    async fn leave_out_conflicts(&mut self, batch: &mut Batch) -> Result<(), Error> {
        let has_owners = !self.options.is_dry_run;
        let mut db = self.session.db();
        let mut conflicts = db.list_conflicts(&batch.sound, has_owners).await?;
        // A resource that this run does not change keeps its name.
        let stays = |id| conflicts.iter().any(|conflict| conflict.id == id);
        let states = batch.sound.iter().map(|imported| &imported.resource.state);
        let leaving = states.filter(|state| state.is_finalizing() && self.ledger.has(state.id));
        let leaving = leaving.map(|state| state.id).filter(|id| !stays(*id));
        self.leaving.extend(leaving);
        conflicts.retain(|conflict| !conflict.holder.is_some_and(|id| self.leaving.contains(&id)));
        if conflicts.is_empty() {
            return Ok(());
        }
        let conflicts = conflicts.into_iter().map(|one| (one.id, one.reason));
        let mut conflicts: HashMap<_, _> = conflicts.collect();
        for imported in std::mem::take(&mut batch.sound) {
            let state = &imported.resource.state;
            let Some(reason) = conflicts.remove(&state.id) else {
                batch.sound.push(imported);
                continue;
            };
            if self.ledger.has(state.id) {
                batch.stale.push(state.id);
            }
            if reason == ImportReason::ChangedHere {
                batch.changed.push(state.id);
            }
            let name = state.name.as_str().to_owned();
            self.refuse(reason, state.kind.clone(), state.id.to_string(), name);
        }
        Ok(())
    }

    fn refuse(&mut self, reason: ImportReason, kind: String, id: String, name: String) {
        self.report.kind(&kind).refused += 1;
        self.findings().push(ImportFinding {
            reason,
            kind,
            id,
            name,
            part: FindingPart::Resource,
        });
    }

    /// Counts what was written, and notes the refused parts.
    fn record(&mut self, batch: Batch, written: &Written, unlinked: &mut Vec<Unlinked>) {
        for id in batch.stale {
            self.ledger.set_parts(id, ImportedParts::Older);
        }
        for id in batch.changed {
            self.ledger.set_parts(id, ImportedParts::Accepted);
        }
        for imported in batch.sound {
            // A dry run does not change the resource.
            let parts = if self.options.is_dry_run {
                ImportedParts::Older
            } else {
                imported.parts()
            };
            let state = imported.resource.state;
            let (id, kind, name) = (state.id, state.kind, state.name.as_str().to_owned());
            if written.removed_here.contains(&id) {
                self.ledger.set_removed_here(id);
                self.refuse(ImportReason::RemovedHere, kind, id.to_string(), name);
                continue;
            }
            if !written.ids.contains(&id) {
                self.ledger.set_parts(id, ImportedParts::Accepted);
                self.refuse(ImportReason::ChangedHere, kind, id.to_string(), name);
                continue;
            }
            if self.ledger.has(id) {
                self.report.changed += 1;
            } else {
                self.report.added += 1;
            }
            self.report.reports += imported.reports.len();
            self.ledger.add(id, &kind, parts);
            self.brought.push(id);
            if imported.has_references {
                let has_all_reports = imported.refused_reports.is_empty();
                unlinked.push(Unlinked {
                    id,
                    has_all_reports,
                });
            }
            for (adapter, _) in &imported.refused_reports {
                self.left_out.push_report(id, adapter);
            }
            let reports = imported.refused_reports.into_iter();
            let reports =
                reports.map(|(adapter, reason)| (reason, FindingPart::Report { adapter }));
            let href = imported.href.map(|reason| (reason, FindingPart::Resource));
            for (reason, part) in reports.chain(href) {
                self.findings().push(ImportFinding {
                    reason,
                    kind: kind.clone(),
                    id: id.to_string(),
                    name: name.clone(),
                    part,
                });
            }
        }
    }
}

/// Writes a batch in one transaction. Resources that were imported before are locked first.
async fn write(
    session: &mut Session,
    batch: &Batch,
    known: &[ResourceId],
) -> Result<Written, postgres::Error> {
    let mut tx = session.begin().await?;
    let result = async {
        let mut db = tx.db();
        let locked = db.lock_imported(known).await?;
        let locked: HashSet<_> = locked.into_iter().collect();
        db.save_imported_parts(&batch.stale, false).await?;
        let written = db.save_imported(&batch.sound).await?;
        db.clear_imported_parts(&written).await?;
        let ids: HashSet<_> = written.into_iter().collect();
        db.insert_imported_reports(&batch.sound, |id| ids.contains(&id))
            .await?;
        let removed_here = known.iter().copied().filter(|id| !locked.contains(id));
        Ok(Written {
            removed_here: removed_here.collect(),
            ids,
        })
    }
    .await;
    tx.finish(result).await
}
