//! Reports of adapters, the hot path: one read, then one guarded write if the report is accepted.

use super::dry_run::TriedChange;
use super::effects::{self, Effects};
use super::resources::{require, still_changing};
use super::unrequired_adapters::UnrequiredReport;
use super::{Error, ResourcePath, Service, UNLOCKED_ATTEMPTS_MAX};
use crate::domain::audit::ChangeOrigin;
use crate::domain::lifecycle::{self, Outcome, ReportDecision};
use crate::domain::page::{Listing, PageRequest};
use crate::domain::{
    ConditionalReport, InvalidReport, Report, ReportOutcome, ResourceSnapshot, ResourceState,
};
use crate::storage::postgres::{ResourceScope, RowAccess, Tx};

/// The adapter's stored report, `None` if the incoming one was discarded; and the effects to emit after commit.
type ReportResult = (Option<Report>, Effects);

/// The stored report, as in [`ReportResult`], and what the report changed.
type TriedReport = (Option<Report>, TriedChange);

/// A decision about a report, not carried out yet.
struct JudgedReport {
    snapshot: ResourceSnapshot,
    /// The owner, its owner and so on. Empty unless the report may complete a deletion.
    ancestors: Vec<ResourceSnapshot>,
    /// Whether any of these resources has a reference, or is the target of one.
    has_links: bool,
    decision: ReportDecision,
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

    /// Judges and stores an adapter's report, updates the conditions, and removes the resource if the report completes
    /// its deletion. Returns the adapter's stored report, or `None` if the incoming one was discarded.
    pub async fn report(
        &self,
        path: ResourcePath<'_>,
        mut sent: ConditionalReport<'_>,
        origin: &ChangeOrigin,
    ) -> Result<Option<Report>, Error> {
        let scope = path.scope().ok_or_else(|| path.not_found())?;
        let mut completes = false;
        for _ in 0..UNLOCKED_ATTEMPTS_MAX {
            let mut access = self.store.row_access().await?;
            let (snapshot, decision) = self.judge(&mut access, path, scope, &mut sent).await?;
            completes = decision.completes;
            if completes {
                break;
            }
            let result = self
                .save_judged(
                    &mut access,
                    path,
                    &snapshot,
                    (&sent.report, origin),
                    decision,
                )
                .await?;
            if let Some((stored, effects)) = result {
                effects.emit();
                return Ok(stored);
            }
        }
        self.in_turns(async |turn| {
            if !completes {
                let mut tx = self.store.begin_change(turn).await?;
                let result = self
                    .report_alone(&mut tx, path, scope, &mut sent, origin)
                    .await;
                match result.transpose() {
                    Some(result) => return effects::commit(tx, result).await,
                    None => tx.roll_back().await,
                }
                completes = true;
            }
            let mut tx = self.store.begin_sets(turn).await?;
            let result = self
                .report_locked(&mut tx, path, scope, &mut sent, origin)
                .await;
            effects::commit(tx, result).await
        })
        .await
    }

    /// Locks the resource, not its owners. Returns `None` if the report completes a deletion, which needs them.
    async fn report_alone(
        &self,
        tx: &mut Tx,
        path: ResourcePath<'_>,
        scope: ResourceScope<'_>,
        sent: &mut ConditionalReport<'_>,
        origin: &ChangeOrigin,
    ) -> Result<Option<ReportResult>, Error> {
        tx.db().lock_resource(scope.tenants, scope.id).await?;
        let mut access = RowAccess::Within(tx.db());
        let (snapshot, decision) = self.judge(&mut access, path, scope, sent).await?;
        if decision.completes {
            return Ok(None);
        }
        let result = self
            .save_judged(
                &mut access,
                path,
                &snapshot,
                (&sent.report, origin),
                decision,
            )
            .await?;
        result.ok_or_else(still_changing).map(Some)
    }

    async fn report_locked(
        &self,
        tx: &mut Tx,
        path: ResourcePath<'_>,
        scope: ResourceScope<'_>,
        sent: &mut ConditionalReport<'_>,
        origin: &ChangeOrigin,
    ) -> Result<ReportResult, Error> {
        let locked = self.lock_reported(tx, path, scope, sent).await?;
        let JudgedReport {
            snapshot,
            ancestors,
            has_links,
            decision,
        } = locked;
        let completes = decision.completes;
        let mut access = RowAccess::Within(tx.db());
        let result = self
            .save_judged(
                &mut access,
                path,
                &snapshot,
                (&sent.report, origin),
                decision,
            )
            .await?;
        let (stored, effects) = result.ok_or_else(still_changing)?;
        if !completes {
            return Ok((stored, effects));
        }
        let outcome = lifecycle::remove(&snapshot, &ancestors, &self.registry);
        tx.db().carry_out(&outcome, has_links, origin).await?;
        let before = ancestors.iter().map(|ancestor| &ancestor.state);
        let effects = effects.and(Effects::effects_of(before, outcome));
        Ok((stored, effects))
    }

    /// Carries out a report in a transaction that is rolled back, and locks its resource alone, and
    /// only for what is saved. Returns `None` if the report completes a deletion, which needs locks on the owners, too.
    pub(super) async fn try_report_alone(
        &self,
        tx: &mut Tx,
        path: ResourcePath<'_>,
        scope: ResourceScope<'_>,
        sent: &mut ConditionalReport<'_>,
        origin: &ChangeOrigin,
    ) -> Result<Option<TriedReport>, Error> {
        for is_first in [true, false] {
            let mut access = RowAccess::Within(tx.db());
            let (snapshot, decision) = self.judge(&mut access, path, scope, sent).await?;
            if decision.completes {
                return Ok(None);
            }
            if is_first && decision.outcome == ReportOutcome::Accepted {
                // Once a transaction has run a statement that can record a change, watchers wait for its end: no row may
                // be waited for after it.
                tx.db().lock_resource(scope.tenants, scope.id).await?;
            }
            let judged = JudgedReport {
                snapshot,
                ancestors: Vec::new(),
                has_links: false,
                decision,
            };
            let tried = self
                .try_judged(tx, path, judged, (&sent.report, origin))
                .await?;
            if tried.is_some() {
                return Ok(tried);
            }
        }
        Err(still_changing())
    }

    /// The same for a report that completes a deletion.
    pub(super) async fn try_completing_report(
        &self,
        tx: &mut Tx,
        path: ResourcePath<'_>,
        scope: ResourceScope<'_>,
        sent: &mut ConditionalReport<'_>,
        origin: &ChangeOrigin,
    ) -> Result<TriedReport, Error> {
        let judged = self.lock_reported(tx, path, scope, sent).await?;
        let tried = self
            .try_judged(tx, path, judged, (&sent.report, origin))
            .await?;
        tried.ok_or_else(still_changing)
    }

    /// Carries out a decision. Counts nothing. Returns `None` if the row changed since it was read.
    async fn try_judged(
        &self,
        tx: &mut Tx,
        path: ResourcePath<'_>,
        judged: JudgedReport,
        (report, origin): (&Report, &ChangeOrigin),
    ) -> Result<Option<TriedReport>, Error> {
        let JudgedReport {
            snapshot,
            ancestors,
            has_links,
            decision,
        } = judged;
        if let ReportOutcome::Rejected(invalid) = decision.outcome {
            return Err(invalid.into());
        }
        let mut outcome = Outcome::default();
        if decision.completes {
            outcome = lifecycle::remove(&snapshot, &ancestors, &self.registry);
        } else if decision.outcome == ReportOutcome::Accepted {
            outcome.saved.push(ResourceState {
                conditions: decision.conditions.clone(),
                ..snapshot.state.clone()
            });
        }
        outcome.failures.extend(decision.failures.iter().cloned());
        let completes = decision.completes;
        let mut access = RowAccess::Within(tx.db());
        let result = carry_out(&mut access, path, &snapshot, (report, origin), decision).await?;
        let Some((stored, _)) = result else {
            return Ok(None);
        };
        if completes {
            tx.db().carry_out(&outcome, has_links, origin).await?;
        }
        let before = ancestors.into_iter().chain([snapshot]);
        let before = before.map(|snapshot| snapshot.state).collect();
        Ok(Some((stored, TriedChange { before, outcome })))
    }

    /// Locks a resource and its owners, and decides about a report on it.
    async fn lock_reported(
        &self,
        tx: &mut Tx,
        path: ResourcePath<'_>,
        scope: ResourceScope<'_>,
        sent: &mut ConditionalReport<'_>,
    ) -> Result<JudgedReport, Error> {
        let mut db = tx.db();
        let lineage = db.lock_lineage(scope).await?;
        let lineage = lineage.ok_or_else(|| path.not_found())?;
        let with_rules = self.registry.kinds_with_rules();
        let locked = db.list_snapshots(&lineage.rows, with_rules).await?;
        let mut ancestors = locked.snapshots;
        let snapshot = ancestors.pop().ok_or_else(|| path.not_found())?;
        ancestors.reverse();
        let decision = self.decide(&snapshot, sent)?;
        Ok(JudgedReport {
            snapshot,
            ancestors,
            has_links: locked.has_links,
            decision,
        })
    }

    /// Reads a resource, and decides about a report on it.
    async fn judge(
        &self,
        access: &mut RowAccess<'_>,
        path: ResourcePath<'_>,
        scope: ResourceScope<'_>,
        sent: &mut ConditionalReport<'_>,
    ) -> Result<(ResourceSnapshot, ReportDecision), Error> {
        let with_rules = self.registry.kinds_with_rules();
        let snapshot = access.find_snapshot(scope, with_rules).await?;
        let snapshot = snapshot.ok_or_else(|| path.not_found())?;
        let decision = self.decide(&snapshot, sent)?;
        Ok((snapshot, decision))
    }

    /// As [`carry_out`], and notes a stored report that the kind does not require.
    async fn save_judged(
        &self,
        access: &mut RowAccess<'_>,
        path: ResourcePath<'_>,
        snapshot: &ResourceSnapshot,
        report: (&Report, &ChangeOrigin),
        decision: ReportDecision,
    ) -> Result<Option<ReportResult>, Error> {
        let result = carry_out(access, path, snapshot, report, decision).await?;
        Ok(result.map(|(stored, effects)| {
            let unrequired = self.unrequired(snapshot, stored.as_ref());
            (stored, effects.stored(unrequired))
        }))
    }

    /// Returns the stored report if the kind does not require its adapter.
    fn unrequired(
        &self,
        snapshot: &ResourceSnapshot,
        stored: Option<&Report>,
    ) -> Option<UnrequiredReport> {
        let kind = self.registry.get(&snapshot.state.kind)?;
        self.unrequired_adapters
            .report(kind, &stored?.state.adapter)
    }

    fn decide(
        &self,
        snapshot: &ResourceSnapshot,
        sent: &mut ConditionalReport<'_>,
    ) -> Result<ReportDecision, Error> {
        require(sent.conditions, &snapshot.state)?;
        let entity = self.registry.get(&snapshot.state.kind);
        Ok(lifecycle::report(snapshot, entity, &mut sent.report))
    }
}

/// Carries out a decision, except for a removal. Returns `None` if the row changed since it was read.
async fn carry_out(
    access: &mut RowAccess<'_>,
    path: ResourcePath<'_>,
    snapshot: &ResourceSnapshot,
    (report, origin): (&Report, &ChangeOrigin),
    decision: ReportDecision,
) -> Result<Option<ReportResult>, Error> {
    let state = &snapshot.state;
    let mut effects = Effects::failed(decision.failures).reported(state, decision.outcome);
    let stored = match decision.outcome {
        ReportOutcome::Accepted if decision.completes => Some(report.clone()),
        ReportOutcome::Accepted => {
            let conditions = &decision.conditions;
            if !access
                .save_report(state, conditions, report, origin)
                .await?
            {
                return Ok(None);
            }
            effects = effects.moved(state, &state.conditions, &decision.conditions);
            Some(report.clone())
        }
        ReportOutcome::Repeated | ReportOutcome::SameTime => {
            if decision.outcome == ReportOutcome::SameTime {
                let adapter = &report.state.adapter;
                tracing::info!(
                    kind = state.kind,
                    id = %state.id,
                    adapter,
                    "report not stored: it has the time of the stored one, and other conditions"
                );
            }
            let found = access.find_report(state, &report.state.adapter).await?;
            Some(found.ok_or_else(|| path.not_found())?)
        }
        ReportOutcome::Discarded(why) => {
            tracing::debug!(adapter = report.state.adapter, ?why, "report discarded");
            None
        }
        ReportOutcome::Rejected(invalid) => {
            effects.emit();
            return Err(invalid.into());
        }
    };
    Ok(Some((stored, effects)))
}
