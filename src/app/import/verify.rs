//! Compares both databases, resource by resource, by digests that each computes from what it keeps.

use super::{Difference, Error, ImportStep, Run, Verification, VerifyScope, texts};
use crate::domain::ResourceId;
use crate::storage::postgres::Session;

impl Run<'_> {
    /// Compares the resources that must be the same. In a dry run these are the ones that a run would leave alone.
    pub(super) async fn verify(&mut self, session: &mut Session) -> Result<(), Error> {
        let ids = match self.options.scope {
            VerifyScope::Nothing => return Ok(()),
            VerifyScope::All => self.ledger.complete(),
            VerifyScope::Changed => {
                let mut brought = std::mem::take(&mut self.brought);
                brought.retain(|id| self.ledger.is_complete(*id));
                brought
            }
        };
        let mut verification = Verification::of(self.options.scope);
        let mut done = 0;
        for batch in ids.chunks(self.options.batch) {
            if self.is_stopped() {
                break;
            }
            self.compare(session, batch, &mut verification).await?;
            done += batch.len();
            self.tell(ImportStep::Verify, done, ids.len());
        }
        self.report.verification = Some(verification);
        Ok(())
    }

    async fn compare(
        &mut self,
        session: &mut Session,
        ids: &[ResourceId],
        verification: &mut Verification,
    ) -> Result<(), Error> {
        let texts = texts(ids);
        let mut db = session.db();
        let (there, here) = tokio::join!(self.source.digests(&texts), db.imported_digests(ids));
        let (there, here) = (there.map_err(Error::Source)?, here?);
        for id in ids {
            match (there.get(id), here.get(id)) {
                (Some(there), Some(here)) if there == here => verification.equal += 1,
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
