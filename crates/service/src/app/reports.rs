//! Reports of adapters, the hot path: one read, then one guarded write if the report is accepted.

use super::command::{Applied, CommandResult};
use super::effects::{self, Effects};
use super::resources::{require, still_changing};
use super::{Error, ResourcePath, Service, UNLOCKED_ATTEMPTS_MAX};
use hyperfleet_domain::audit::ChangeOrigin;
use hyperfleet_domain::lifecycle::{self, Outcome, ReportDecision};
use hyperfleet_domain::page::{Listing, PageRequest};
use hyperfleet_domain::{
    ConditionalReport, InvalidReport, Report, ReportOutcome, ResourceSnapshot, ResourceState,
};
use hyperfleet_storage::{ResourceScope, RowAccess, Tx};

/// A report in progress.
pub(super) struct Reporting<'a> {
    pub(super) path: ResourcePath<'a>,
    pub(super) scope: ResourceScope<'a>,
    pub(super) sent: ConditionalReport<'a>,
    pub(super) origin: &'a ChangeOrigin,
    pub(super) is_dry_run: bool,
    /// Whether the last decision completes a deletion, for which the owners are also locked.
    pub(super) completes: bool,
}

impl Service {
    /// Counts a report whose body is unreadable.
    pub fn reject_report(&self, path: ResourcePath<'_>) {
        let kind = path.collection.entity().map_or("unknown", |e| &e.kind);
        effects::reported(kind, ReportOutcome::Rejected(InvalidReport::Unreadable)).increment(1);
    }

    /// Returns one page of the reports on a resource.
    pub async fn reports(
        &self,
        path: ResourcePath<'_>,
        page: PageRequest,
    ) -> Result<Listing<Report>, Error> {
        if let Some(scope) = path.scope() {
            let mut session = self.store.session().await?;
            let listing = session.db().list_reports(scope, page).await?;
            if let Some(listing) = listing {
                return Ok(listing);
            }
        }
        Err(self.missing(path).await)
    }

    /// Judges a report, and saves it unless it completes a deletion. Returns `None` if it does, or if others change the
    /// resource all the time.
    pub(super) async fn attempt_report(
        &self,
        reporting: &mut Reporting<'_>,
    ) -> Result<Option<Applied>, Error> {
        for _ in 0..UNLOCKED_ATTEMPTS_MAX {
            let mut rows = self.store.row_access();
            let (snapshot, decision) = self.judge(&mut rows, reporting).await?;
            reporting.completes = decision.completes;
            if decision.completes {
                return Ok(None);
            }
            let saved = self.save_judged(&mut rows, reporting, snapshot, decision);
            if let Some(applied) = saved.await? {
                return Ok(Some(applied));
            }
        }
        Ok(None)
    }

    /// Decides on a report, and locks its resource if it is saved. The owners are locked only if the report may
    /// complete a deletion.
    pub(super) async fn report_in(
        &self,
        tx: &mut Tx,
        reporting: &mut Reporting<'_>,
    ) -> Result<Applied, Error> {
        if !reporting.completes {
            let mut rows = RowAccess::Transaction(tx.db());
            let (snapshot, decision) = self.judge(&mut rows, reporting).await?;
            // A concurrent report may complete the deletion.
            let may_complete = decision.outcome == ReportOutcome::Accepted
                && snapshot.state.is_finalizing()
                && !reporting.is_dry_run;
            if !decision.completes && !may_complete {
                return self
                    .report_without_owners_in(tx, reporting, snapshot, decision)
                    .await;
            }
        }
        self.report_with_owners_in(tx, reporting).await
    }

    async fn report_without_owners_in(
        &self,
        tx: &mut Tx,
        reporting: &mut Reporting<'_>,
        snapshot: ResourceSnapshot,
        decision: ReportDecision,
    ) -> Result<Applied, Error> {
        if decision.outcome == ReportOutcome::Accepted {
            // Once a transaction has run a statement that can record a change, watchers wait for its end, so it must
            // not wait for row locks after that statement.
            let scope = reporting.scope;
            tx.db().lock_resource(scope.tenants, scope.id).await?;
        }
        let mut rows = RowAccess::Transaction(tx.db());
        let saved = self.save_judged(&mut rows, reporting, snapshot, decision);
        if let Some(applied) = saved.await? {
            return Ok(applied);
        }
        // It changed before it was locked.
        let (snapshot, decision) = self.judge(&mut rows, reporting).await?;
        reporting.completes = decision.completes;
        if decision.completes {
            return Err(needs_owners());
        }
        let saved = self.save_judged(&mut rows, reporting, snapshot, decision);
        saved.await?.ok_or_else(still_changing)
    }

    /// Reads a resource, and decides about a report on it.
    async fn judge(
        &self,
        rows: &mut RowAccess<'_>,
        reporting: &mut Reporting<'_>,
    ) -> Result<(ResourceSnapshot, ReportDecision), Error> {
        let with_rules = self.registry.kinds_with_rules();
        let snapshot = rows.find_snapshot(reporting.scope, with_rules).await?;
        let snapshot = snapshot.ok_or_else(|| reporting.path.not_found())?;
        let decision = self.decide(&snapshot, reporting)?;
        Ok((snapshot, decision))
    }

    /// Judges a report on a resource that is locked with its owners, and removes the resource if the report completes its
    /// deletion.
    async fn report_with_owners_in(
        &self,
        tx: &mut Tx,
        reporting: &mut Reporting<'_>,
    ) -> Result<Applied, Error> {
        let path = reporting.path;
        let mut db = tx.db();
        let lineage = db.lock_lineage(reporting.scope).await?;
        let lineage = lineage.ok_or_else(|| path.not_found())?;
        let with_rules = self.registry.kinds_with_rules();
        let locked = db.list_snapshots(&lineage.rows, with_rules).await?;
        let mut ancestors = locked.snapshots;
        let snapshot = ancestors.pop().ok_or_else(|| path.not_found())?;
        ancestors.reverse();
        let decision = self.decide(&snapshot, reporting)?;
        let removal = decision
            .completes
            .then(|| lifecycle::remove(&snapshot, &ancestors, &self.registry));
        let mut rows = RowAccess::Transaction(db);
        let saved = self.save_judged(&mut rows, reporting, snapshot, decision);
        let mut applied = saved.await?.ok_or_else(still_changing)?;
        if let Some(mut removal) = removal {
            tx.db()
                .carry_out(&removal, locked.has_links, reporting.origin)
                .await?;
            removal.failures.append(&mut applied.outcome.failures);
            applied.outcome = removal;
            let above = ancestors.into_iter().map(|ancestor| ancestor.state);
            applied.before.extend(above);
        }
        Ok(applied)
    }

    /// Decides about a report. A rejected one is counted, although nothing is written.
    fn decide(
        &self,
        snapshot: &ResourceSnapshot,
        reporting: &mut Reporting<'_>,
    ) -> Result<ReportDecision, Error> {
        let state = &snapshot.state;
        require(reporting.sent.conditions, state)?;
        let entity = self.registry.get(&state.kind);
        let decision = lifecycle::report(snapshot, entity, &mut reporting.sent.report);
        if let ReportOutcome::Rejected(invalid) = decision.outcome {
            if !reporting.is_dry_run {
                Effects::reported(state, decision.outcome).emit();
            }
            return Err(invalid.into());
        }
        Ok(decision)
    }

    /// Saves what was decided, except for a removal. Returns `None` if the row changed since it was read.
    async fn save_judged(
        &self,
        rows: &mut RowAccess<'_>,
        reporting: &Reporting<'_>,
        snapshot: ResourceSnapshot,
        decision: ReportDecision,
    ) -> Result<Option<Applied>, Error> {
        let (state, report) = (snapshot.state, &reporting.sent.report);
        let judged = decision.outcome;
        let mut outcome = Outcome {
            failures: decision.failures,
            ..Outcome::default()
        };
        let stored = match judged {
            ReportOutcome::Accepted if decision.completes => Some(report.clone()),
            ReportOutcome::Accepted => {
                let saved =
                    rows.save_report(&state, &decision.conditions, report, reporting.origin);
                if !saved.await? {
                    return Ok(None);
                }
                let saved = state.with_conditions(decision.conditions);
                outcome.saved.push(saved);
                Some(report.clone())
            }
            ReportOutcome::Repeated | ReportOutcome::SameTime => {
                if judged == ReportOutcome::SameTime {
                    log_same_time(&state, report);
                }
                let found = rows.find_report(&state, &report.state.adapter).await?;
                Some(found.ok_or_else(|| reporting.path.not_found())?)
            }
            ReportOutcome::Discarded(why) => {
                tracing::debug!(adapter = report.state.adapter, ?why, "report discarded");
                None
            }
            ReportOutcome::Rejected(invalid) => return Err(invalid.into()),
        };
        let mut effects = Effects::reported(&state, judged);
        if let Some((kind, stored)) = self.registry.get(&state.kind).zip(stored.as_ref()) {
            let unrequired = &self.unrequired_adapters;
            effects = effects.stored(unrequired.report(kind, &stored.state.adapter));
        }
        Ok(Some(Applied {
            result: CommandResult::Reported { stored, judged },
            before: vec![state],
            outcome,
            more: effects,
        }))
    }
}

/// Owners are locked before their children, and this transaction has locked the child. A new attempt locks the owners first.
fn needs_owners() -> Error {
    Error::Contended(hyperfleet_storage::Error::Contended {
        doing: "lock the owners of a resource",
        source: "a report came to complete its deletion".into(),
    })
}

fn log_same_time(state: &ResourceState, report: &Report) {
    tracing::info!(
        kind = state.kind,
        id = %state.id,
        adapter = report.state.adapter,
        "report not stored: it has the time of the stored one, and other conditions"
    );
}
