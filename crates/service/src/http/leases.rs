//! `/leases/{name}`: which of several copies of an adapter works.

use actix_web::HttpResponse;
use actix_web::web::Bytes;

use super::request::{Call, decoded};
use crate::app::Error;
use crate::wire;
use hyperfleet_domain::lease::{LeaseHolder, LeaseName};
use hyperfleet_domain::{Constraint, Violation};
use hyperfleet_server_kit::http::{PendingResponse, Problem, log_body};

/// `GET`: the lease, if it is held.
pub(super) async fn get(call: Call) -> Result<HttpResponse, Problem> {
    let name = name(&call)?;
    let service = call.timed_service();
    let lease = service.lease(call.tenant.tenancy(), &name).await?;
    PendingResponse::of(&call.request)?.item(HttpResponse::Ok(), &wire::lease(&lease))
}

/// `PUT`: acquires or renews the lease.
pub(super) async fn put(call: Call, body: Bytes) -> Result<HttpResponse, Problem> {
    log_body(&call.request, &body);
    refuse_dry_run(&call)?;
    let name = name(&call)?;
    let claim = wire::lease_claim(&body)?;
    let (service, tenancy) = (call.timed_service(), call.tenant.tenancy());
    let lease = service.acquire_lease(tenancy, &name, &claim).await?;
    PendingResponse::of(&call.request)?.item(HttpResponse::Ok(), &wire::lease(&lease))
}

/// `DELETE`: releases the lease of the `holder` in the query.
pub(super) async fn delete(call: Call) -> Result<HttpResponse, Problem> {
    refuse_dry_run(&call)?;
    let name = name(&call)?;
    let holder = call.params()?.get("holder").unwrap_or_default().to_owned();
    let holder = LeaseHolder::parse(holder).map_err(Error::from)?;
    let (service, tenancy) = (call.timed_service(), call.tenant.tenancy());
    service.release_lease(tenancy, &name, &holder).await?;
    Ok(HttpResponse::NoContent().finish())
}

fn name(call: &Call) -> Result<LeaseName, Problem> {
    Ok(LeaseName::parse(call.segment("name")).map_err(Error::from)?)
}

/// Refuses dry runs: the result of one would be outdated when it arrives.
fn refuse_dry_run(call: &Call) -> Result<(), Problem> {
    if decoded(call.request.query_string()).dry_run() == Ok(false) {
        return Ok(());
    }
    let message = "leases have no dry run";
    let violation = Violation::new("dryRun", Constraint::Enum, message);
    Err(Error::from(violation).into())
}
