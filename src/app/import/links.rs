//! Writes references, once all their targets are imported.

use std::collections::HashSet;

use super::batches::Unlinked;
use super::{Error, ImportStep, Run, texts};
use crate::domain::ResourceId;
use crate::domain::import::{
    FindingPart, ImportFinding, ImportReason, ImportedParts, SourceReference, about,
    check_reference,
};
use crate::domain::tenancy::TenantScope;
use crate::storage::postgres::{self, ImportSource, Session, WrittenReference};

/// References of a batch that pass the rules.
#[derive(Default)]
struct Links {
    sound: Vec<WrittenReference>,
    /// Resources with a refused reference.
    refused: HashSet<ResourceId>,
}

/// The result of writing the references of a batch.
#[derive(Default)]
struct Written {
    references: usize,
    /// Resources that have all their parts.
    complete: Vec<ResourceId>,
    /// Resources that have all parts except refused ones.
    accepted: Vec<ResourceId>,
    /// Resources that requests have changed since they were written.
    changed: Vec<ResourceId>,
    /// References whose targets requests have removed.
    lost: Vec<WrittenReference>,
}

impl Run<'_> {
    /// Writes the references of resources that were written.
    pub(super) async fn link(
        &mut self,
        source: &mut ImportSource,
        unlinked: &[Unlinked],
    ) -> Result<(), Error> {
        let mut done = 0;
        for batch in unlinked.chunks(self.options.batch) {
            if self.is_stopped() {
                break;
            }
            let ids: Vec<_> = batch.iter().map(|one| one.id).collect();
            let rows = source.references(&texts(&ids)).await;
            let links = self.partition(rows.map_err(Error::Source)?);
            if self.options.is_dry_run {
                self.report.references += links.sound.len();
            } else {
                let targets = links.sound.iter().map(|link| link.target.id);
                let order = self.lock_order(ids.into_iter().chain(targets));
                let written = write(&mut self.session, &order, batch, links).await?;
                self.count_links(written);
            }
            done += batch.len();
            self.emit(ImportStep::Link, done, unlinked.len());
        }
        Ok(())
    }

    /// Separates the references that pass the rules from the resources of those that do not.
    fn partition(&mut self, rows: Vec<SourceReference>) -> Links {
        let mut links = Links::default();
        for row in rows {
            let Some(source) = ResourceId::parse(&row.source_id) else {
                continue;
            };
            let kind = self.ledger.kind_of(source).unwrap_or_default();
            let target = self.registry.get(kind).ok_or(ImportReason::UnknownKind);
            let target = target.and_then(|entity| {
                check_reference(entity, &row, |target| self.ledger.kind_of(target))
            });
            match target {
                Ok(target) => links.sound.push(WrittenReference {
                    source,
                    ref_type: row.ref_type,
                    target,
                }),
                Err(reason) => {
                    links.refused.insert(source);
                    self.refuse_reference(reason, source, row.ref_type, row.target_id);
                }
            }
        }
        links
    }

    fn count_links(&mut self, written: Written) {
        self.report.references += written.references;
        for id in written.complete {
            self.ledger.set_parts(id, ImportedParts::All);
        }
        for id in written.accepted {
            self.ledger.set_parts(id, ImportedParts::Accepted);
        }
        for id in written.changed {
            self.ledger.set_parts(id, ImportedParts::Accepted);
            let kind = self.ledger.kind_of(id).unwrap_or_default().to_owned();
            let finding = about(ImportReason::ChangedHere, &kind, id);
            self.findings().push(finding);
        }
        for lost in written.lost {
            let target = lost.target.id.to_string();
            let reason = ImportReason::ReferenceTarget;
            self.refuse_reference(reason, lost.source, lost.ref_type, target);
        }
    }

    fn refuse_reference(
        &mut self,
        reason: ImportReason,
        source: ResourceId,
        ref_type: String,
        target: String,
    ) {
        let kind = self.ledger.kind_of(source).unwrap_or_default().to_owned();
        self.left_out.push_reference(source, &ref_type, &target);
        self.findings().push(ImportFinding {
            part: FindingPart::Reference { ref_type, target },
            ..about(reason, &kind, source)
        });
    }
}

/// Writes references, except those of a resource that was changed here since, and those to a removed resource.
async fn write(
    session: &mut Session,
    order: &[ResourceId],
    batch: &[Unlinked],
    links: Links,
) -> Result<Written, postgres::Error> {
    let mut tx = session.begin().await?;
    let result = async {
        let mut db = tx.db();
        let locked = db.lock_targets(&TenantScope::ALL, order).await?;
        let locked: HashSet<_> = locked.into_iter().map(|target| target.id).collect();
        let ids: Vec<_> = batch.iter().map(|one| one.id).collect();
        let unchanged = db.list_unchanged_here(&ids).await?;
        let unchanged: HashSet<_> = unchanged.into_iter().collect();
        let Links { sound, mut refused } = links;
        let sound = sound
            .into_iter()
            .filter(|one| unchanged.contains(&one.source));
        let (kept, lost): (Vec<_>, Vec<_>) = sound.partition(|one| locked.contains(&one.target.id));
        refused.extend(lost.iter().map(|one| one.source));
        db.insert_imported_references(&kept).await?;
        let (same, changed): (Vec<&Unlinked>, Vec<_>) =
            batch.iter().partition(|one| unchanged.contains(&one.id));
        let is_complete = |one: &&Unlinked| one.has_all_reports && !refused.contains(&one.id);
        let (complete, accepted): (Vec<_>, Vec<_>) = same.into_iter().partition(is_complete);
        let ids = |some: Vec<&Unlinked>| some.into_iter().map(|one| one.id).collect::<Vec<_>>();
        let complete = ids(complete);
        db.save_imported_parts(&complete, true).await?;
        Ok(Written {
            references: kept.len(),
            complete,
            accepted: ids(accepted),
            changed: ids(changed),
            lost,
        })
    }
    .await;
    tx.finish(result).await
}
