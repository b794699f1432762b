//! What adapters report, the hot path: one read, and one guarded statement where the report is
//! accepted.

use super::address::Place;
use super::resources::still_changing;
use super::{Address, Error, Service, UNLOCKED_ATTEMPTS_MAX, rules};
use crate::domain::audit::Origin;
use crate::domain::derivation;
use crate::domain::lifecycle::{self, Reported};
use crate::domain::mapping::Failure;
use crate::domain::page::{Listing, Page};
use crate::domain::{Discard, Report, ReportState, Standing, StoredReport};
use crate::storage::postgres::{Db, NewReport, Tx};

/// What became of a report.
#[derive(Debug, Clone, PartialEq)]
pub enum ReportOutcome {
    /// It was accepted; this is the adapter's stored report now.
    Accepted(Box<StoredReport>),
    /// It was dropped.
    Discarded(Discard),
}

impl Service {
    /// One page of the reports on a resource.
    pub async fn reports(
        &self,
        address: Address<'_>,
        page: Page,
    ) -> Result<Listing<StoredReport>, Error> {
        if let Some(Place { kind, owner, id }) = address.place() {
            let mut session = self.store.session().await?;
            let listing = session.db().list_reports(kind, owner, id, page).await?;
            if let Some(listing) = listing {
                return Ok(listing);
            }
        }
        Err(self.missing(address).await)
    }

    /// Takes in what an adapter says, brings the conditions up to date, and removes the resource
    /// if this was the last word its deletion waited for.
    pub async fn report(
        &self,
        address: Address<'_>,
        report: &Report,
        origin: &Origin,
    ) -> Result<ReportOutcome, Error> {
        let place = address.place().ok_or_else(|| address.not_found())?;
        let Place { kind, owner, id } = place;
        for _ in 0..UNLOCKED_ATTEMPTS_MAX {
            let mut session = self.store.session().await?;
            let mut db = session.db();
            let with_rules = self.with_rules(kind);
            let standing = db.find_standing(kind, owner, id, with_rules).await?;
            let standing = standing.ok_or_else(|| address.not_found())?;
            let (reported, failures) = self.decide(&standing, report)?;
            match reported {
                Reported::Discarded(why) => return Ok(ReportOutcome::Discarded(why)),
                Reported::Repeated { completes: false } => {
                    return accepted(&mut db, &standing, report, address).await;
                }
                Reported::Stored {
                    report: state,
                    conditions,
                    completes: false,
                } => {
                    let new = new_report(&state, report);
                    let revision = standing.state.revision;
                    if db.save_report(id, revision, &conditions, &new).await? {
                        rules::tell(&failures);
                        return Ok(ReportOutcome::Accepted(Box::new(stored(state, report))));
                    }
                }
                Reported::Repeated { completes: true }
                | Reported::Stored {
                    completes: true, ..
                } => {
                    break;
                }
            }
        }
        let mut tx = self.store.begin().await?;
        let result = self
            .report_locked(&mut tx, address, place, report, origin)
            .await;
        let (outcome, failures) = tx.finish(result).await?;
        rules::tell(&failures);
        Ok(outcome)
    }

    /// Gives the rules that failed, too.
    async fn report_locked(
        &self,
        tx: &mut Tx,
        address: Address<'_>,
        place: Place<'_>,
        report: &Report,
        origin: &Origin,
    ) -> Result<(ReportOutcome, Vec<Failure>), Error> {
        let Place { kind, owner, id } = place;
        let lineage = tx.db().lock_lineage(kind, owner, id).await?;
        let with_rules = self.family_with_rules(kind);
        let mut ancestors = tx.db().standings(&lineage, with_rules).await?;
        let standing = ancestors.pop().ok_or_else(|| address.not_found())?;
        ancestors.reverse();
        let mut db = tx.db();
        let (reported, failures) = self.decide(&standing, report)?;
        match reported {
            Reported::Discarded(why) => Ok((ReportOutcome::Discarded(why), failures)),
            Reported::Repeated { completes } => {
                let outcome = accepted(&mut db, &standing, report, address).await?;
                let failures = if completes {
                    self.remove(&mut db, &standing, &ancestors, origin).await?
                } else {
                    failures
                };
                Ok((outcome, failures))
            }
            Reported::Stored {
                report: state,
                completes: true,
                ..
            } => {
                let failures = self.remove(&mut db, &standing, &ancestors, origin).await?;
                let stored = stored(state, report);
                Ok((ReportOutcome::Accepted(Box::new(stored)), failures))
            }
            Reported::Stored {
                report: state,
                conditions,
                completes: false,
            } => {
                let new = new_report(&state, report);
                if !db
                    .save_report(id, standing.state.revision, &conditions, &new)
                    .await?
                {
                    return Err(still_changing());
                }
                let stored = stored(state, report);
                Ok((ReportOutcome::Accepted(Box::new(stored)), failures))
            }
        }
    }

    async fn remove(
        &self,
        db: &mut Db<'_>,
        standing: &Standing,
        ancestors: &[Standing],
        origin: &Origin,
    ) -> Result<Vec<Failure>, Error> {
        let outcome = lifecycle::remove(standing, ancestors, &self.registry);
        db.carry_out(&outcome, origin).await?;
        Ok(outcome.failures)
    }

    fn decide(
        &self,
        standing: &Standing,
        report: &Report,
    ) -> Result<(Reported, Vec<Failure>), Error> {
        let required = self.registry.required_adapters(&standing.state.kind);
        let mut reported = lifecycle::report(standing, required, report)?;
        let failures = derivation::reported(&self.registry, standing, report, &mut reported);
        Ok((reported, failures))
    }
}

/// The stored report that a repeated one leaves as it is.
async fn accepted(
    db: &mut Db<'_>,
    standing: &Standing,
    report: &Report,
    address: Address<'_>,
) -> Result<ReportOutcome, Error> {
    let found = db.find_report(standing.state.id, &report.adapter).await?;
    let found = found.ok_or_else(|| address.not_found())?;
    Ok(ReportOutcome::Accepted(Box::new(found)))
}

fn new_report<'a>(state: &'a ReportState, report: &'a Report) -> NewReport<'a> {
    NewReport {
        state,
        data: &report.data,
        metadata: report.metadata.as_ref(),
    }
}

fn stored(state: ReportState, report: &Report) -> StoredReport {
    StoredReport {
        state,
        data: report.data.clone(),
        metadata: report.metadata.clone(),
    }
}
