//! What the source no longer has.

use std::collections::HashSet;

use super::{Error, ImportStep, Run};
use crate::domain::ResourceId;
use crate::domain::import::{ImportReason, about};

impl Run<'_> {
    /// Removes resources, children first.
    pub(super) async fn remove(&mut self, vanished: &[ResourceId]) -> Result<(), Error> {
        let mut done = 0;
        for ids in vanished.chunks(self.options.batch) {
            if self.is_stopped() {
                break;
            }
            let gone = if self.options.is_dry_run {
                ids.to_vec()
            } else {
                let mut tx = self.store.begin().await?;
                let result = tx.db().delete_imported(ids).await;
                tx.finish(result).await?
            };
            self.report.removed += gone.len();
            let gone: HashSet<_> = gone.into_iter().collect();
            for id in ids {
                if gone.contains(id) {
                    self.leaving.insert(*id);
                    self.ledger.remove(*id);
                } else {
                    let kind = self.ledger.kind_of(*id).unwrap_or_default().to_owned();
                    self.findings()
                        .push(about(ImportReason::NeededHere, &kind, *id));
                }
            }
            done += ids.len();
            self.tell(ImportStep::Remove, done, vanished.len());
        }
        Ok(())
    }
}
