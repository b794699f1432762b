//! Removes imported resources that the source has removed.

use std::collections::HashSet;

use super::{Error, ImportStep, Run};
use crate::domain::ResourceId;
use crate::domain::import::{ImportReason, about};
use crate::storage::postgres::{self, Session};

impl Run<'_> {
    /// Removes resources, children first.
    pub(super) async fn remove(&mut self, vanished: &[ResourceId]) -> Result<(), Error> {
        if self.options.is_dry_run {
            let gone = self.session.db().list_removable(vanished).await?;
            self.count_removed(vanished, gone);
            return Ok(());
        }
        let mut done = 0;
        for ids in vanished.chunks(self.options.batch) {
            if self.is_stopped() {
                break;
            }
            let order = self.lock_order(ids.iter().copied());
            let gone = remove(&mut self.session, &order).await?;
            self.count_removed(ids, gone);
            done += ids.len();
            self.emit(ImportStep::Remove, done, vanished.len());
        }
        Ok(())
    }

    fn count_removed(&mut self, ids: &[ResourceId], gone: Vec<ResourceId>) {
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
    }
}

/// Removes, in one transaction, what may be removed. Returns what was removed.
async fn remove(
    session: &mut Session,
    order: &[ResourceId],
) -> Result<Vec<ResourceId>, postgres::Error> {
    let mut tx = session.begin().await?;
    let result = async {
        let mut db = tx.db();
        db.lock_imported(order).await?;
        let free = db.list_removable(order).await?;
        db.delete_imported(&free).await?;
        Ok(free)
    }
    .await;
    tx.finish(result).await
}
