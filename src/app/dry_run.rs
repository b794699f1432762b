//! Dry runs: the answer that a change would have, and what it would do, without the change.
//!
//! ```text
//! BEGIN ─▶ the change, as with an idempotency key ─▶ plan and answer ─▶ ROLLBACK
//! ```
//!
//! The statements are those of the change itself, so the database refuses what it would refuse. Nothing is
//! committed, and no effect is emitted (`docs/decisions/0075-dry-run.md`).

use std::borrow::Borrow;

use super::deletion::{DecidedFamily, states};
use super::keyed::{Claim, KeyedAnswer, WriteAnswer};
use super::resources::PatchedResource;
use super::{Deleted, Error, ResourcePath, Service};
use crate::domain::audit::{Action, Change, ChangeOrigin};
use crate::domain::dry_run::DryRunPlan;
use crate::domain::idempotency::KeyedRequest;
use crate::domain::lifecycle::Outcome;
use crate::domain::patch::RequestedPatch;
use crate::domain::precondition::Preconditions;
use crate::domain::tenancy::{Tenant, TenantScope};
use crate::domain::{
    ConditionalReport, Entity, Report, RequestedResource, Resource, ResourceState,
};
use crate::storage::postgres::{Turn, Tx};

/// What a dry run takes beside its change.
pub struct DryRun<'a, T> {
    pub origin: &'a ChangeOrigin,
    /// The key of the request. It is judged, but not kept.
    pub key: Option<&'a KeyedRequest>,
    pub write: WriteAnswer<'a, T>,
}

/// What a request would be answered, and what it would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DryRunAnswer {
    pub keyed: KeyedAnswer,
    pub plan: DryRunPlan,
}

/// A change that an open transaction has made: the resources as they were, and what became of them.
#[derive(Default)]
pub(super) struct TriedChange {
    pub(super) before: Vec<ResourceState>,
    pub(super) outcome: Outcome,
}

impl Service {
    /// A dry run of [`Service::create`].
    pub async fn create_dry_run(
        &self,
        entity: &Entity,
        parent: Option<(&Entity, &str)>,
        new: RequestedResource,
        tenant: &Tenant,
        run: DryRun<'_, Resource>,
    ) -> Result<DryRunAnswer, Error> {
        let author = (tenant, run.origin);
        let creation = self.prepare(entity, parent, new, author).await?;
        self.try_in_turns(tenant.tenants(), &run, async |tx| {
            let created = self.create_in(tx, &creation).await;
            let failures = created.and_then(|created| creation.failures(created));
            failures.map(|failures| {
                let resource = &creation.resource;
                let outcome = Outcome {
                    saved: vec![resource.state.clone()],
                    changes: vec![Change::of(Action::Create, None, &resource.state)],
                    failures: failures.to_vec(),
                    ..Outcome::default()
                };
                let before = Vec::new();
                (resource, TriedChange { before, outcome })
            })
        })
        .await
    }

    /// A dry run of [`Service::patch`].
    pub async fn patch_dry_run(
        &self,
        path: ResourcePath<'_>,
        change: &RequestedPatch,
        conditions: &Preconditions,
        run: DryRun<'_, Resource>,
    ) -> Result<DryRunAnswer, Error> {
        let Some(scope) = path.scope() else {
            return Err(self.missing(path).await);
        };
        self.try_in_turns(path.tenants, &run, async |tx| {
            let patched = self
                .patch_locked(tx, path, scope, (change, conditions), run.origin)
                .await;
            patched.map(PatchedResource::tried)
        })
        .await
    }

    /// A dry run of [`Service::delete`].
    pub async fn delete_dry_run(
        &self,
        path: ResourcePath<'_>,
        conditions: &Preconditions,
        run: DryRun<'_, Deleted>,
    ) -> Result<DryRunAnswer, Error> {
        self.try_in_turns(path.tenants, &run, async |tx| {
            let deleted = self.delete_in(tx, path, None, conditions, run.origin).await;
            deleted.map(|(deleted, decided)| (deleted, decided.into()))
        })
        .await
    }

    /// A dry run of [`Service::force_delete`].
    pub async fn force_delete_dry_run(
        &self,
        path: ResourcePath<'_>,
        reason: &str,
        conditions: &Preconditions,
        run: DryRun<'_, ()>,
    ) -> Result<DryRunAnswer, Error> {
        self.try_in_turns(path.tenants, &run, async |tx| {
            let forced = self
                .force_delete_in(tx, path, reason, conditions, run.origin)
                .await;
            forced.map(|decided| ((), decided.into()))
        })
        .await
    }

    /// A dry run of [`Service::report`].
    pub async fn report_dry_run(
        &self,
        path: ResourcePath<'_>,
        mut sent: ConditionalReport<'_>,
        run: DryRun<'_, Option<Report>>,
    ) -> Result<DryRunAnswer, Error> {
        let scope = path.scope().ok_or_else(|| path.not_found())?;
        self.in_turns(async |turn| {
            let mut tx = match self.begin_dry_run(run.key, turn).await? {
                Claim::Fresh(tx) => tx,
                Claim::Kept(answer) => return Ok(answer.into()),
            };
            let alone = self
                .try_report_alone(&mut tx, path, scope, &mut sent, run.origin)
                .await;
            let tried = if let Some(tried) = alone.transpose() {
                tried
            } else {
                // Owners are locked before their children: this transaction may have locked the child.
                tx.roll_back().await;
                tx = match self.begin_dry_run(run.key, turn).await? {
                    Claim::Fresh(tx) => tx,
                    Claim::Kept(answer) => return Ok(answer.into()),
                };
                self.try_completing_report(&mut tx, path, scope, &mut sent, run.origin)
                    .await
            };
            self.end_dry_run(tx, path.tenants, &run, tried).await
        })
        .await
    }

    /// Tries a change in a transaction that is rolled back.
    async fn try_in_turns<T, C: Borrow<T>>(
        &self,
        tenants: &TenantScope,
        run: &DryRun<'_, T>,
        mut change: impl AsyncFnMut(&mut Tx) -> Result<(C, TriedChange), Error>,
    ) -> Result<DryRunAnswer, Error> {
        self.in_turns(async |turn| {
            let mut tx = match self.begin_dry_run(run.key, turn).await? {
                Claim::Fresh(tx) => tx,
                Claim::Kept(answer) => return Ok(answer.into()),
            };
            let tried = change(&mut tx).await;
            self.end_dry_run(tx, tenants, run, tried).await
        })
        .await
    }

    /// Begins the transaction that is rolled back. If the request has a key, it is claimed as by the request itself:
    /// the answer may be that of an earlier request.
    async fn begin_dry_run(&self, key: Option<&KeyedRequest>, turn: Turn) -> Result<Claim, Error> {
        match key {
            Some(key) => self.claim(key, turn).await,
            None => Ok(Claim::Fresh(self.store.begin_sets(turn).await?)),
        }
    }

    /// Writes the answer and the plan, and rolls back.
    async fn end_dry_run<T>(
        &self,
        mut tx: Tx,
        tenants: &TenantScope,
        run: &DryRun<'_, T>,
        tried: Result<(impl Borrow<T>, TriedChange), Error>,
    ) -> Result<DryRunAnswer, Error> {
        let answer = match tried {
            Ok(tried) => self.planned(&mut tx, tenants, run, tried).await,
            Err(error) => Err(error),
        };
        tx.roll_back().await;
        answer
    }

    async fn planned<T>(
        &self,
        tx: &mut Tx,
        tenants: &TenantScope,
        run: &DryRun<'_, T>,
        (changed, tried): (impl Borrow<T>, TriedChange),
    ) -> Result<DryRunAnswer, Error> {
        let answer = (run.write)(changed.borrow()).map_err(Error::Answer)?;
        let mut plan = DryRunPlan::of(&tried.before, &tried.outcome, &self.registry);
        if *tenants != TenantScope::ALL {
            let ids: Vec<_> = plan.ids().into_iter().collect();
            let seen = tx.db().list_seen(tenants, &ids, run.origin).await?;
            plan.limit_to(&seen);
        }
        let is_replayed = false;
        Ok(DryRunAnswer {
            keyed: KeyedAnswer {
                answer,
                is_replayed,
            },
            plan,
        })
    }
}

impl From<KeyedAnswer> for DryRunAnswer {
    /// The request was carried out before, so it would do nothing.
    fn from(keyed: KeyedAnswer) -> Self {
        Self {
            keyed,
            plan: DryRunPlan::default(),
        }
    }
}

impl From<DecidedFamily> for TriedChange {
    fn from((family, outcome): DecidedFamily) -> Self {
        Self {
            before: states(&family).cloned().collect(),
            outcome,
        }
    }
}

impl PatchedResource {
    fn tried(self) -> (Resource, TriedChange) {
        let Some((after, failures)) = self.after else {
            return (self.before, TriedChange::default());
        };
        let before = self.before.state;
        let outcome = Outcome {
            saved: vec![after.state.clone()],
            changes: vec![Change::of(
                Action::Patch,
                Some(before.generation),
                &after.state,
            )],
            failures,
            ..Outcome::default()
        };
        let before = vec![before];
        (after, TriedChange { before, outcome })
    }
}
