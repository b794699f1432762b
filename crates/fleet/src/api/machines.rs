//! `…/machines`

use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::web::{Bytes, Data, Path};
use actix_web::{HttpRequest, HttpResponse};

use super::body::query;
use super::follow;
use super::{Fault, PAGE_ITEMS};
use crate::EtcdFleet;
use hyperfleet_fleet_model::wire;
use hyperfleet_server_kit::http::PendingResponse;

/// Header with the id of the server's own machine, if it runs an agent.
const OWN_MACHINE: HeaderName = HeaderName::from_static("fleet-machine-id");
/// Header that says whether that machine is a member of the cluster. Its id may be in the list all the same: another
/// machine may have it.
const IS_MEMBER: HeaderName = HeaderName::from_static("fleet-machine-member");
/// Default number of planned moves.
const MOVES: usize = 10;

/// `GET …/machines`
pub(super) async fn list(
    request: HttpRequest,
    fleet: Data<EtcdFleet>,
) -> Result<HttpResponse, Fault> {
    let query = query(&request);
    follow::refuse(&query)?;
    let response = PendingResponse::of_page(&request, PAGE_ITEMS)?;
    let page = fleet.list_machines(query.page_token()?).await?;
    let page = wire::MachinePage {
        next: page.token(),
        machines: page.items,
    };
    let mut answer = response.page(&page)?;
    if let Some((id, is_member)) = fleet.own_machine()
        && let Ok(id) = HeaderValue::from_str(id)
    {
        answer.headers_mut().insert(OWN_MACHINE, id);
        let is_member = if is_member { "true" } else { "false" };
        let is_member = HeaderValue::from_static(is_member);
        answer.headers_mut().insert(IS_MEMBER, is_member);
    }
    Ok(answer)
}

/// `PATCH …/machines`, with any `Content-Type`. All changes are checked before the first is made.
pub(super) async fn patch(fleet: Data<EtcdFleet>, body: Bytes) -> Result<HttpResponse, Fault> {
    let changes = wire::metadata_changes(&body)?;
    fleet.set_metadata(&changes).await?;
    let mut answer = HttpResponse::NoContent();
    // As the older server sent it, although the body is empty.
    answer.insert_header(("content-type", "application/json"));
    Ok(answer.finish())
}

/// `PUT …/machines/{machineID}/cordon`
pub(super) async fn cordon(
    fleet: Data<EtcdFleet>,
    machine: Path<String>,
) -> Result<HttpResponse, Fault> {
    fleet.cordon(&machine).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// `DELETE …/machines/{machineID}/cordon`
pub(super) async fn uncordon(
    fleet: Data<EtcdFleet>,
    machine: Path<String>,
) -> Result<HttpResponse, Fault> {
    fleet.uncordon(&machine).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// `GET …/machines/{machineID}/drain`
pub(super) async fn drain_progress(
    request: HttpRequest,
    fleet: Data<EtcdFleet>,
    machine: Path<String>,
) -> Result<HttpResponse, Fault> {
    let response = PendingResponse::of_page(&request, PAGE_ITEMS)?;
    let progress = fleet.drain_progress(&machine).await?;
    Ok(response.page(&progress)?)
}

/// `PUT …/machines/{machineID}/drain`, with any `Content-Type`.
pub(super) async fn drain(
    fleet: Data<EtcdFleet>,
    machine: Path<String>,
    body: Bytes,
) -> Result<HttpResponse, Fault> {
    let deadline = wire::drain_deadline(&body)?;
    fleet.drain(&machine, deadline).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// `DELETE …/machines/{machineID}/drain`
pub(super) async fn end_drain(
    fleet: Data<EtcdFleet>,
    machine: Path<String>,
) -> Result<HttpResponse, Fault> {
    fleet.end_drain(&machine).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// `GET …/rebalance`
pub(super) async fn plan_rebalance(
    request: HttpRequest,
    fleet: Data<EtcdFleet>,
) -> Result<HttpResponse, Fault> {
    let query = query(&request);
    let max = query.filter("max").map_or(Ok(MOVES), |text| {
        let max = text.parse().ok();
        let max = max.filter(|max| (1..=wire::MOVES_MAX).contains(max));
        max.ok_or(wire::InvalidParameter("max"))
    })?;
    let response = PendingResponse::of_page(&request, PAGE_ITEMS)?;
    let plan = fleet.plan_rebalance(max).await?;
    Ok(response.page(&plan)?)
}

/// `POST …/rebalance`, with any `Content-Type`.
pub(super) async fn rebalance(fleet: Data<EtcdFleet>, body: Bytes) -> Result<HttpResponse, Fault> {
    let moves = wire::moves(&body)?;
    fleet.rebalance(&moves).await?;
    Ok(HttpResponse::Accepted().finish())
}

/// `POST …/resume`
pub(super) async fn resume(fleet: Data<EtcdFleet>) -> Result<HttpResponse, Fault> {
    fleet.resume().await?;
    Ok(HttpResponse::NoContent().finish())
}
