//! Resources with their reports: read, translated and written batch by batch. The next batch is read while one is
//! written.

use std::collections::{HashMap, HashSet};

use super::{Error, ImportStep, Run, texts};
use crate::domain::ResourceId;
use crate::domain::import::{
    Finding, FindingPart, ImportPlan, ImportReason, ImportedResource, SourceResource, translate,
};
use crate::storage::postgres::{self, ImportSource, Store};

/// A batch that is ready to be written.
#[derive(Default)]
struct Batch {
    sound: Vec<ImportedResource>,
    /// Resources whose older state is here, and whose newer one is refused.
    stale: Vec<ResourceId>,
}

/// A resource whose references are to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unlinked {
    pub(super) id: ResourceId,
    /// Whether all its reports are here.
    pub(super) has_all_reports: bool,
}

impl Run<'_> {
    /// Brings what the plan says. Gives the resources whose references are to be written.
    pub(super) async fn bring(&mut self, plan: &ImportPlan) -> Result<Vec<Unlinked>, Error> {
        let size = self.options.batch;
        let levels = plan.bring.iter();
        let batches = levels.flat_map(|level| level.chunks(size).map(texts));
        let foreign_ids = plan.foreign_ids.chunks(size).map(<[String]>::to_vec);
        let mut batches = batches.chain(foreign_ids);
        let total = plan.bring.iter().map(Vec::len).sum::<usize>() + plan.foreign_ids.len();
        let (mut done, mut unlinked) = (0, Vec::new());
        let mut rows = read(&mut self.source, batches.next()).await?;
        while !self.is_stopped()
            && let Some(read_rows) = rows.take()
        {
            done += read_rows.len();
            let batch = self.check(read_rows).await?;
            let write = write(self.store, &batch, self.options.is_dry_run);
            let (written, next) = tokio::join!(write, read(&mut self.source, batches.next()));
            self.note(batch, &written?, &mut unlinked);
            self.tell(ImportStep::Bring, done, total);
            rows = next?;
        }
        Ok(unlinked)
    }

    /// Translates the rows, and leaves out what is refused.
    async fn check(&mut self, rows: Vec<SourceResource>) -> Result<Batch, Error> {
        let mut batch = Batch::default();
        for row in rows {
            let (kind, id, name) = (row.kind.clone(), row.id.clone(), row.name.clone());
            match translate(self.registry, row, |owner| self.ledger.kind_of(owner)) {
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

    async fn leave_out_conflicts(&mut self, batch: &mut Batch) -> Result<(), Error> {
        let mut session = self.store.session().await?;
        let mut conflicts = session.db().list_conflicts(&batch.sound).await?;
        // A resource that this run leaves as it is here keeps its name.
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
            let imported_before = Some(state.id).filter(|id| self.ledger.has(*id));
            batch.stale.extend(imported_before);
            let name = state.name.as_str().to_owned();
            self.refuse(reason, state.kind.clone(), state.id.to_string(), name);
        }
        Ok(())
    }

    fn refuse(&mut self, reason: ImportReason, kind: String, id: String, name: String) {
        self.report.kind(&kind).refused += 1;
        self.findings().push(Finding {
            reason,
            kind,
            id,
            name,
            part: FindingPart::Resource,
        });
    }

    /// Counts what was written, and what of it is left out.
    fn note(&mut self, batch: Batch, written: &HashSet<ResourceId>, unlinked: &mut Vec<Unlinked>) {
        for id in batch.stale {
            self.ledger.set_complete(id, false);
        }
        for imported in batch.sound {
            let is_complete = imported.is_complete();
            let state = imported.resource.state;
            let (id, kind, name) = (state.id, state.kind, state.name.as_str().to_owned());
            if !written.contains(&id) {
                self.refuse(ImportReason::ChangedHere, kind, id.to_string(), name);
                continue;
            }
            if self.ledger.has(id) {
                self.report.changed += 1;
            } else {
                self.report.added += 1;
            }
            self.report.reports += imported.reports.len();
            // A dry run leaves the resource as it was, so that it cannot be compared.
            self.ledger
                .add(id, &kind, is_complete && !self.options.is_dry_run);
            self.brought.push(id);
            if imported.has_references {
                let has_all_reports = imported.refused_reports.is_empty();
                unlinked.push(Unlinked {
                    id,
                    has_all_reports,
                });
            }
            let reports = imported.refused_reports.into_iter();
            let reports =
                reports.map(|(adapter, reason)| (reason, FindingPart::Report { adapter }));
            let href = imported.href.map(|reason| (reason, FindingPart::Resource));
            for (reason, part) in reports.chain(href) {
                self.findings().push(Finding {
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

/// Reads a batch, if there is one, in the order of the ids.
async fn read(
    source: &mut ImportSource,
    ids: Option<Vec<String>>,
) -> Result<Option<Vec<SourceResource>>, Error> {
    match ids {
        None => Ok(None),
        Some(ids) => {
            let rows = source.resources(&ids).await.map_err(Error::Source)?;
            let rows = rows.into_iter().map(|row| (row.id.clone(), row));
            let mut rows: HashMap<_, _> = rows.collect();
            Ok(Some(ids.iter().filter_map(|id| rows.remove(id)).collect()))
        }
    }
}

/// Writes a batch in one transaction. Gives what was written.
async fn write(
    store: &Store,
    batch: &Batch,
    is_dry_run: bool,
) -> Result<HashSet<ResourceId>, postgres::Error> {
    if is_dry_run || (batch.sound.is_empty() && batch.stale.is_empty()) {
        return Ok(batch.sound.iter().map(|i| i.resource.state.id).collect());
    }
    let mut tx = store.begin().await?;
    let result = async {
        let mut db = tx.db();
        db.save_imported_parts(&batch.stale, false).await?;
        let written = db.save_imported(&batch.sound).await?;
        db.clear_imported_parts(&written).await?;
        let written: HashSet<_> = written.into_iter().collect();
        db.insert_imported_reports(&batch.sound, |id| written.contains(&id))
            .await?;
        Ok(written)
    }
    .await;
    tx.finish(result).await
}
