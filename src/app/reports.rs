//! What adapters report, the hot path: one read, and one guarded statement where the report is
//! accepted.

use super::effects::{self, ACCEPTED, Effects, REJECTED, REPEATED};
use super::resources::still_changing;
use super::{Address, Error, Service, UNLOCKED_ATTEMPTS_MAX};
use crate::domain::audit::Origin;
use crate::domain::derivation;
use crate::domain::lifecycle::{self, Reported};
use crate::domain::mapping::Failure;
use crate::domain::page::{Listing, Page};
use crate::domain::{Discard, Report, ReportState, Standing, StoredReport};
use crate::storage::postgres::{Db, NewReport, Place, Tx};

/// What became of a report.
#[derive(Debug, Clone, PartialEq)]
pub enum ReportOutcome {
    /// It was accepted; this is the adapter's stored report now.
    Accepted(Box<StoredReport>),
    /// It was dropped.
    Discarded(Discard),
}

impl Service {
    /// Counts a report that could not even be read.
    pub fn reject_report(&self, address: Address<'_>) {
        let entity = address.collection.entity();
        effects::tell_report(entity.map_or("unknown", |e| &e.kind), REJECTED);
    }

    /// One page of the reports on a resource.
    pub async fn reports(
        &self,
        address: Address<'_>,
        page: Page,
    ) -> Result<Listing<StoredReport>, Error> {
        if let Some(place) = address.place() {
            let mut session = self.store.session().await?;
            let listing = session.db().list_reports(place, page).await?;
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
        for _ in 0..UNLOCKED_ATTEMPTS_MAX {
            let mut session = self.store.session().await?;
            let mut db = session.db();
            let with_rules = self.registry.kinds_with_rules();
            let standing = db.find_snapshot(place, with_rules).await?;
            let standing = standing.ok_or_else(|| address.not_found())?;
            let (reported, failures) = self.decide(&standing, report)?;
            match reported {
                Reported::Discarded(why) => {
                    effects::tell_report(&standing.state.kind, effects::discarded(why));
                    return Ok(ReportOutcome::Discarded(why));
                }
                Reported::Repeated { completes: false } => {
                    let outcome = accepted(&mut db, &standing, report, address).await?;
                    effects::tell_report(&standing.state.kind, REPEATED);
                    return Ok(outcome);
                }
                Reported::Stored {
                    report: state,
                    conditions,
                    completes: false,
                } => {
                    let new = new_report(&state, report);
                    if db.save_report(&standing.state, &conditions, &new).await? {
                        let before = &standing.state;
                        Effects::failed(failures)
                            .moved(before, &before.conditions, &conditions)
                            .reported(before, ACCEPTED)
                            .tell();
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
        effects::keep(tx, result).await
    }

    /// Gives what follows, too.
    async fn report_locked(
        &self,
        tx: &mut Tx,
        address: Address<'_>,
        place: Place<'_>,
        report: &Report,
        origin: &Origin,
    ) -> Result<(ReportOutcome, Effects), Error> {
        let lineage = tx.db().lock_lineage(place).await?;
        let with_rules = self.registry.kinds_with_rules();
        let mut ancestors = tx.db().list_snapshots(&lineage, with_rules).await?;
        let standing = ancestors.pop().ok_or_else(|| address.not_found())?;
        ancestors.reverse();
        let mut db = tx.db();
        let (reported, failures) = self.decide(&standing, report)?;
        let state = &standing.state;
        let effects = Effects::failed(failures);
        match reported {
            Reported::Discarded(why) => {
                let outcome = ReportOutcome::Discarded(why);
                Ok((outcome, effects.reported(state, effects::discarded(why))))
            }
            Reported::Repeated { completes } => {
                let outcome = accepted(&mut db, &standing, report, address).await?;
                let effects = effects.reported(state, REPEATED);
                let effects = if completes {
                    let removed = self.remove(&mut db, &standing, &ancestors, origin);
                    effects.and(removed.await?)
                } else {
                    effects
                };
                Ok((outcome, effects))
            }
            Reported::Stored {
                report: new,
                completes: true,
                ..
            } => {
                let removed = self.remove(&mut db, &standing, &ancestors, origin);
                let effects = effects.reported(state, ACCEPTED).and(removed.await?);
                let stored = stored(new, report);
                Ok((ReportOutcome::Accepted(Box::new(stored)), effects))
            }
            Reported::Stored {
                report: new,
                conditions,
                completes: false,
            } => {
                let saved = new_report(&new, report);
                if !db.save_report(&standing.state, &conditions, &saved).await? {
                    return Err(still_changing());
                }
                let effects = effects
                    .moved(state, &state.conditions, &conditions)
                    .reported(state, ACCEPTED);
                let stored = stored(new, report);
                Ok((ReportOutcome::Accepted(Box::new(stored)), effects))
            }
        }
    }

    async fn remove(
        &self,
        db: &mut Db<'_>,
        standing: &Standing,
        ancestors: &[Standing],
        origin: &Origin,
    ) -> Result<Effects, Error> {
        let outcome = lifecycle::remove(standing, ancestors, &self.registry);
        db.carry_out(&outcome, origin).await?;
        let before = ancestors.iter().map(|ancestor| &ancestor.state);
        Ok(Effects::carried_out(before, outcome))
    }

    fn decide(
        &self,
        standing: &Standing,
        report: &Report,
    ) -> Result<(Reported, Vec<Failure>), Error> {
        let required = self.registry.required_adapters(&standing.state.kind);
        let reported = lifecycle::report(standing, required, report);
        let mut reported = reported.inspect_err(|_| {
            effects::tell_report(&standing.state.kind, REJECTED);
        })?;
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
    let found = db.find_report(&standing.state, &report.adapter).await?;
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
