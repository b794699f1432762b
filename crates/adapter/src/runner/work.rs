use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::time::Instant;

use super::Shared;
use crate::api::Reported;
use crate::report::Report;
use crate::resource::Resource;

/// The work of an adapter.
pub trait Adapter: Send + Sync + 'static {
    /// Brings the current state of a resource closer to its desired state, and returns the report.
    ///
    /// The library calls it for each new resource, after each change, when an earlier [`ReconcileOutcome`] asks for it,
    /// after errors, and at every sweep. It therefore compares both states and changes only the difference. Two
    /// calls for one resource never overlap. A call can be cancelled at any await, when the process stops or
    /// another replica takes over.
    ///
    /// # Errors
    /// Any error that prevents a report. Nothing is reported then, and the resource is retried with back-off.
    fn reconcile(
        &self,
        work: Work,
    ) -> impl Future<Output = anyhow::Result<ReconcileOutcome>> + Send;
}

/// An adapter that other code shares.
impl<T: Adapter> Adapter for Arc<T> {
    fn reconcile(
        &self,
        work: Work,
    ) -> impl Future<Output = anyhow::Result<ReconcileOutcome>> + Send {
        self.as_ref().reconcile(work)
    }
}

/// A resource to reconcile.
#[derive(Debug, Clone)]
pub struct Work {
    pub resource: Resource,
    pub owner: Option<Resource>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ReconcileOutcome {
    pub report: Report,
    /// When to reconcile it again, if nothing changes before.
    pub again: Option<Duration>,
}

impl ReconcileOutcome {
    /// The work is complete.
    pub fn reported(report: Report) -> Self {
        Self {
            report,
            again: None,
        }
    }

    /// Work is in progress: reconcile again after this time.
    pub fn again_after(report: Report, again: Duration) -> Self {
        Self {
            report,
            again: Some(again),
        }
    }
}

/// A stored report.
#[derive(Debug, Clone)]
pub(super) struct LastReport {
    /// The resource's. Its deletion adds one, too.
    pub(super) generation: i64,
    pub(super) report: Report,
    pub(super) at: Instant,
}

/// How work on a resource ended.
pub(super) enum Done {
    Reported(Box<LastReport>, Option<Duration>),
    /// The report equals the previous one.
    Unchanged(Option<Duration>),
    /// The resource has changed meanwhile.
    Discarded,
    /// The resource is gone.
    Gone,
}

/// When something was observed.
#[allow(
    clippy::disallowed_methods,
    reason = "adapters do not depend on what servers are made of"
)]
fn now() -> DateTime<Utc> {
    Utc::now()
}

pub(super) async fn work_on<A: Adapter>(
    shared: &Shared<A>,
    href: &str,
    last: Option<LastReport>,
) -> anyhow::Result<Done> {
    let (api, settings) = (&shared.api, &shared.settings);
    let Some(resource) = api.get(href).await? else {
        return Ok(Done::Gone);
    };
    let owner = match &resource.owner {
        Some(owner) => api.get(&owner.href).await?,
        None => None,
    };
    let work = Work {
        resource: resource.clone(),
        owner,
    };
    let ReconcileOutcome { report, again } = shared.adapter.reconcile(work).await?;
    let is_known = last.is_some_and(|last| {
        last.generation == resource.generation
            && last.report == report
            && last.at.elapsed() < settings.report_interval
    });
    if is_known {
        return Ok(Done::Unchanged(again));
    }
    let at = Instant::now();
    let reported = api.report(&settings.name, &resource, &report, now());
    Ok(match reported.await? {
        Reported::Stored => {
            let last = LastReport {
                generation: resource.generation,
                report,
                at,
            };
            Done::Reported(Box::new(last), again)
        }
        Reported::Discarded => Done::Discarded,
        Reported::Gone => Done::Gone,
    })
}
