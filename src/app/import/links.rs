//! References: written when every target is here.

use std::collections::HashSet;

use super::batches::Unlinked;
use super::{Error, ImportStep, Run, texts};
use crate::domain::ResourceId;
use crate::domain::import::{Finding, FindingPart, ImportReason, SourceReference, check_reference};
use crate::storage::postgres::{self, Store, WrittenReference};

impl Run<'_> {
    /// Writes the references of resources that were written.
    pub(super) async fn link(&mut self, unlinked: &[Unlinked]) -> Result<(), Error> {
        let mut done = 0;
        for batch in unlinked.chunks(self.options.batch) {
            if self.is_stopped() {
                break;
            }
            let ids: Vec<_> = batch.iter().map(|one| one.id).collect();
            let rows = self.source.references(&texts(&ids)).await;
            let (sound, refused) = self.sort(rows.map_err(Error::Source)?);
            let complete = batch.iter().filter(|one| one.has_all_reports);
            let complete = complete
                .map(|one| one.id)
                .filter(|id| !refused.contains(id));
            let complete: Vec<_> = complete.collect();
            self.report.references += sound.len();
            if !self.options.is_dry_run {
                write(self.store, &sound, &complete).await?;
                for id in complete {
                    self.ledger.set_complete(id, true);
                }
            }
            done += batch.len();
            self.tell(ImportStep::Link, done, unlinked.len());
        }
        Ok(())
    }

    /// The references that pass the rules, and the resources of which one does not.
    fn sort(&mut self, rows: Vec<SourceReference>) -> (Vec<WrittenReference>, HashSet<ResourceId>) {
        let (mut sound, mut refused) = (Vec::new(), HashSet::new());
        for row in rows {
            let Some(source) = ResourceId::parse(&row.source_id) else {
                continue;
            };
            let kind = self.ledger.kind_of(source).unwrap_or_default().to_owned();
            let target = self.registry.get(&kind).ok_or(ImportReason::UnknownKind);
            let target = target.and_then(|entity| {
                check_reference(entity, &row, |target| self.ledger.kind_of(target))
            });
            match target {
                Ok(target) => sound.push(WrittenReference {
                    source,
                    ref_type: row.ref_type,
                    target,
                }),
                Err(reason) => {
                    refused.insert(source);
                    self.findings().push(Finding {
                        reason,
                        kind,
                        id: row.source_id,
                        name: String::new(),
                        part: FindingPart::Reference {
                            ref_type: row.ref_type,
                            target: row.target_id,
                        },
                    });
                }
            }
        }
        (sound, refused)
    }
}

async fn write(
    store: &Store,
    references: &[WrittenReference],
    complete: &[ResourceId],
) -> Result<(), postgres::Error> {
    let mut tx = store.begin().await?;
    let result = async {
        let mut db = tx.db();
        db.insert_imported_references(references).await?;
        db.save_imported_parts(complete, true).await
    }
    .await;
    tx.finish(result).await
}
