//! Reconciles one resource: observe its units, plan, carry out, report.

mod census;
mod observed;
mod write;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::bail;
use hyperfleet_adapter::{Adapter, ReconcileOutcome, Report, Resource, Truth, Work};
use hyperfleet_fleet::Error;
use hyperfleet_fleet::keys::KeyStore;
use serde_json::Value;
use tokio::time::{Instant, timeout};

use crate::domain::{
    Blocker, Brake, DesiredWorkload, FleetHealth, Observation, OwnedUnit, plan, report,
    report_without_etcd, unrendered,
};
use crate::index::Index;
use crate::lease::Tenure;
use crate::running::Running;
use crate::workloads::{RenderInput, Rendered};

/// Member of a report's data that names the reporting replica.
const INSTANCE: &str = "adapter_instance";
/// When a resource is reconciled again while etcd is away or its units are not in their desired state.
const AGAIN: Duration = Duration::from_secs(5);

/// The fleet adapter.
#[derive(Debug)]
pub struct FleetAdapter<S: KeyStore> {
    pub(crate) running: Running<S>,
    pub(crate) index: Arc<Index>,
    tenure: Tenure,
    brake: Mutex<Brake>,
    /// When resources were last checked, by id.
    seen: Mutex<HashMap<String, Instant>>,
    /// The current term of the lease, and its start.
    term: Mutex<(u64, Instant)>,
}

impl<S: KeyStore> Adapter for FleetAdapter<S> {
    async fn reconcile(&self, work: Work) -> anyhow::Result<ReconcileOutcome> {
        let mut outcome = self.reconcile_one(&work).await?;
        let instance = Value::from(self.running.instance.as_str());
        outcome.report.data.insert(INSTANCE.to_owned(), instance);
        Ok(outcome)
    }

    /// Nothing: an error here is that this replica cannot read or change fleet for a moment, which says nothing about the
    /// units of the resource, and another replica may have reported on them. What lasts is in the outcome.
    fn failure_report(&self, _: &Resource, _: &anyhow::Error) -> Option<Report> {
        None
    }
}

impl<S: KeyStore> FleetAdapter<S> {
    pub fn new(running: Running<S>, index: Arc<Index>, tenure: Tenure) -> Self {
        Self {
            brake: Mutex::new(Brake::new(running.settings.removal_limit)),
            running,
            index,
            tenure,
            seen: Mutex::default(),
            term: Mutex::new((0, Instant::now())),
        }
    }

    async fn reconcile_one(&self, work: &Work) -> anyhow::Result<ReconcileOutcome> {
        let resource = &work.resource;
        // After a start fleet is still being read, which does not mean that etcd is away.
        let _ = timeout(AGAIN, self.index.wait_until_read()).await;
        if !self.has_etcd() {
            return self.without_etcd(resource).await;
        }
        self.began();
        self.index.wait_until_read().await;
        let desired = match self.render(work) {
            Ok(desired) => desired,
            Err(unrendered) => {
                // Nothing of it is removed.
                self.record_seen(&resource.id);
                lock(&self.brake).retain(|other| other != resource.id);
                return Ok(ReconcileOutcome::reported(*unrendered));
            }
        };
        match self.converge(resource, &desired).await {
            Ok(outcome) => Ok(outcome),
            // A mirror that lags is tried again.
            Err(error) if is_away(&error) && !self.has_etcd() => self.without_etcd(resource).await,
            Err(error) => Err(error),
        }
    }

    /// Whether this replica can read and change fleet.
    pub(crate) fn has_etcd(&self) -> bool {
        self.running.fleet.is_connected() && self.tenure.is_certain()
    }

    fn render(&self, work: &Work) -> Result<Vec<DesiredWorkload>, Box<Report>> {
        let resource = &work.resource;
        if resource.is_deleted() {
            return Ok(Vec::new());
        }
        let null = Value::Null;
        let subject = RenderInput {
            kind: &resource.kind,
            id: &resource.id,
            path: &resource.href,
            resource: &resource.document,
            owner: work.owner.as_ref().map_or(&null, |owner| &owner.document),
        };
        match self.running.workloads.render(&subject) {
            Ok(Rendered::NotApplicable) => Ok(Vec::new()),
            Ok(Rendered::Units(desired)) => Ok(desired),
            Err(fault) => Err(Box::new(unrendered(
                fault.reason,
                &fault.message,
                self.health(),
            ))),
        }
    }

    fn health(&self) -> FleetHealth {
        let condition = self.running.fleet.readiness();
        FleetHealth {
            has_leader: condition.has_leader,
            machines: condition.machines,
        }
    }

    async fn converge(
        &self,
        resource: &Resource,
        desired: &[DesiredWorkload],
    ) -> anyhow::Result<ReconcileOutcome> {
        let units = self.observe(&resource.id, desired).await?;
        let owned = &units.owned;
        let mut plan = plan(desired, owned);
        let (mut blocker, brake_again) = self.brake(&resource.id, &mut plan).await?;
        // After the brake has counted its removals: others wait until every resource was checked.
        self.record_seen(&resource.id);
        if let Some((unit, owner)) = units.foreign_owners.into_iter().next() {
            blocker = Some(Blocker::NameTaken { unit, owner });
        }
        let refused = self
            .carry_out(&resource.id, &mut plan, blocker.as_ref())
            .await?;
        let blocker = blocker.or(refused);
        let explanations = self.explanations(desired, owned).await?;
        let report = report(&Observation {
            desired,
            owned,
            plan: &plan,
            explanations: &explanations,
            health: self.health(),
            blocker: blocker.as_ref(),
            is_deleted: resource.is_deleted(),
        });
        let is_healthy = report.health.truth == Truth::True;
        let is_settled = report.is_settled() && is_healthy && blocker.is_none();
        let again = [
            ready_after(desired, owned),
            brake_again,
            (!is_settled).then_some(AGAIN),
        ];
        Ok(ReconcileOutcome {
            again: again.into_iter().flatten().min(),
            report,
        })
    }

    /// The report while etcd is away. Another replica's report stays: that replica may reach etcd.
    async fn without_etcd(&self, resource: &Resource) -> anyhow::Result<ReconcileOutcome> {
        let stored = self
            .running
            .api
            .stored_report(&self.running.settings.name, resource)
            .await?;
        let reporter = stored
            .as_ref()
            .and_then(|stored| stored.report.data.get(INSTANCE));
        if reporter.is_some_and(|reporter| reporter != self.running.instance.as_str()) {
            bail!("etcd does not answer this replica, and another one has reported");
        }
        let before = stored.filter(|stored| stored.generation == resource.generation);
        let report = report_without_etcd(before.map(|stored| stored.report), resource.is_deleted());
        Ok(ReconcileOutcome::again_after(report, AGAIN))
    }

    /// Removes the units of a resource that no longer exists.
    ///
    /// # Errors
    /// Fleet cannot be read or changed.
    pub(crate) async fn remove_all(&self, id: &str) -> anyhow::Result<()> {
        let units = self.observe(id, &[]).await?;
        let mut plan = plan(&[], &units.owned);
        let (held, _) = self.brake(id, &mut plan).await?;
        if let Some(Blocker::Held {
            pending,
            owned,
            command,
            ..
        }) = held
        {
            tracing::warn!(
                resource = id,
                pending,
                owned,
                command,
                "removal of units held until an operator approves it"
            );
        }
        self.carry_out(id, &mut plan, None).await?;
        Ok(())
    }
}

/// When the first active service becomes ready.
fn ready_after(desired: &[DesiredWorkload], owned: &[OwnedUnit]) -> Option<Duration> {
    let waits = desired.iter().flat_map(|workload| {
        let active = owned
            .iter()
            .filter(|unit| unit.owner.workload == workload.number && unit.is_active());
        let reports = active.filter_map(OwnedUnit::report);
        reports.filter_map(|report| workload.min_ready.checked_sub(report.active_for))
    });
    waits.filter(|wait| !wait.is_zero()).min()
}

fn is_away(error: &anyhow::Error) -> bool {
    let is_unavailable = |cause: &(dyn std::error::Error + 'static)| {
        matches!(cause.downcast_ref(), Some(Error::Unavailable(_)))
    };
    error.chain().any(is_unavailable)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
