//! Compares both databases by a digest of each resource, which each database computes.

use super::{Difference, Error, ImportStep, Run, Verification, VerifyScope, texts};
use crate::domain::ResourceId;
use crate::domain::import::ImportedParts;
use crate::storage::postgres::ImportSource;

impl Run<'_> {
    /// Compares the resources that must be equal, except for refused parts. A dry run compares those that a run would
    /// not change.
    pub(super) async fn verify(&mut self, source: &mut ImportSource) -> Result<(), Error> {
        let mut verification = Verification::of(self.options.scope);
        let ids = match self.options.scope {
            VerifyScope::Nothing => return Ok(()),
            VerifyScope::All => {
                verification.changed_here = self.ledger.removed_here();
                if !self.options.is_dry_run {
                    verification.older = self.ledger.older();
                }
                self.ledger.comparable()
            }
            VerifyScope::Changed => {
                let mut brought = std::mem::take(&mut self.brought);
                brought.retain(|id| self.ledger.is_comparable(*id));
                brought
            }
        };
        let mut done = 0;
        for batch in ids.chunks(self.options.batch) {
            if self.is_stopped() {
                break;
            }
            self.compare(source, batch, &mut verification).await?;
            done += batch.len();
            self.emit(ImportStep::Verify, done, ids.len());
        }
        self.report.verification = Some(verification);
        Ok(())
    }

    async fn compare(
        &mut self,
        source: &mut ImportSource,
        ids: &[ResourceId],
        verification: &mut Verification,
    ) -> Result<(), Error> {
        let texts = texts(ids);
        let mut db = self.session.db();
        let there = source.digests(&texts, self.left_out.take(ids));
        let (there, here) = tokio::join!(there, db.imported_digests(ids));
        let (there, here) = (there.map_err(Error::Source)?, here?);
        for id in ids {
            match (there.get(id), here.get(id)) {
                (Some(there), Some(here)) if there == here => match self.ledger.parts(*id) {
                    Some(ImportedParts::Accepted) => verification.equal_in_part += 1,
                    _ => verification.equal += 1,
                },
                (Some(_), None) => verification.changed_here += 1,
                _ => {
                    verification.differing += 1;
                    if verification.first.len() < Verification::FIRST_MAX {
                        let kind = self.ledger.kind_of(*id).unwrap_or_default().to_owned();
                        verification.first.push(Difference { id: *id, kind });
                    }
                }
            }
        }
        Ok(())
    }
}
