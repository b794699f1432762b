use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::time::Instant;

use super::Shared;
use crate::api::Reported;
use crate::error::Error;
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
    /// Any error that prevents a report. The library reports it instead ([`Adapter::failure_report`]), and retries the
    /// resource with back-off.
    fn reconcile(
        &self,
        work: Work,
    ) -> impl Future<Output = anyhow::Result<ReconcileOutcome>> + Send;

    /// The report on a resource whose reconciliation has returned an error; `None` to report nothing, which leaves the
    /// previous report in place. The library sends it once, and again only if it changes.
    ///
    /// By default [`Report::failed`] with the text of the error, except for errors of the API itself: those say nothing
    /// about the resource.
    fn failure_report(&self, resource: &Resource, error: &anyhow::Error) -> Option<Report> {
        let is_of_resource = error.downcast_ref::<Error>().is_none();
        is_of_resource.then(|| Report::failed(format!("{error:#}"), resource.is_deleted()))
    }
}

/// An adapter that other code shares.
impl<T: Adapter> Adapter for Arc<T> {
    fn reconcile(
        &self,
        work: Work,
    ) -> impl Future<Output = anyhow::Result<ReconcileOutcome>> + Send {
        self.as_ref().reconcile(work)
    }

    fn failure_report(&self, resource: &Resource, error: &anyhow::Error) -> Option<Report> {
        self.as_ref().failure_report(resource, error)
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
    /// The adapter returned an error. With the report of it, if that is new.
    Failed(Option<Box<LastReport>>, anyhow::Error),
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
    let api = &shared.api;
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
    let ReconcileOutcome { report, again } = match shared.adapter.reconcile(work).await {
        Ok(outcome) => outcome,
        Err(error) => return Ok(report_failure(shared, &resource, last.as_ref(), error).await),
    };
    let is_known = is_known(shared, &resource, last.as_ref(), &report);
    if is_known {
        return Ok(Done::Unchanged(again));
    }
    Ok(match send(shared, &resource, report).await? {
        Sent::Stored(last) => Done::Reported(last, again),
        Sent::Discarded => Done::Discarded,
        Sent::Gone => Done::Gone,
    })
}

/// The result of a report.
enum Sent {
    Stored(Box<LastReport>),
    Discarded,
    Gone,
}

/// Whether the service has this report, and not only for long.
fn is_known<A>(
    shared: &Shared<A>,
    resource: &Resource,
    last: Option<&LastReport>,
    report: &Report,
) -> bool {
    last.is_some_and(|last| {
        last.generation == resource.generation
            && last.report == *report
            && last.at.elapsed() < shared.settings.report_interval
    })
}

async fn send<A>(shared: &Shared<A>, resource: &Resource, report: Report) -> Result<Sent, Error> {
    let at = Instant::now();
    let name = &shared.settings.name;
    let reported = shared.api.report(name, resource, &report, now());
    Ok(match reported.await? {
        Reported::Stored => Sent::Stored(Box::new(LastReport {
            generation: resource.generation,
            report,
            at,
        })),
        Reported::Discarded => Sent::Discarded,
        Reported::Gone => Sent::Gone,
    })
}

/// Reports an error of the adapter, unless the service has that report. The error counts, whatever becomes of the report.
async fn report_failure<A: Adapter>(
    shared: &Shared<A>,
    resource: &Resource,
    last: Option<&LastReport>,
    error: anyhow::Error,
) -> Done {
    let report = shared.adapter.failure_report(resource, &error);
    let Some(report) = report.filter(|report| !is_known(shared, resource, last, report)) else {
        return Done::Failed(None, error);
    };
    match send(shared, resource, report).await {
        Ok(Sent::Stored(last)) => Done::Failed(Some(last), error),
        Ok(Sent::Gone) => Done::Gone,
        Ok(Sent::Discarded) => Done::Failed(None, error),
        Err(unreported) => {
            let (resource, unreported) = (&resource.href, &unreported as &dyn std::error::Error);
            tracing::debug!(resource, error = unreported, "reporting a failure failed");
            Done::Failed(None, error)
        }
    }
}
