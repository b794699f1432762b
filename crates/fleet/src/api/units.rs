//! `…/units`

use actix_web::http::header::USER_AGENT;
use actix_web::web::{Bytes, Data, Path};
use actix_web::{HttpRequest, HttpResponse};

use super::body::{check_media_type, query};
use super::follow;
use super::{Fault, PAGE_ITEMS};
use crate::{EtcdFleet, Set, SetUnit, UnitView};
use hyperfleet_fleet_model::wire;
use hyperfleet_server_kit::http::{Admission, PendingResponse};

/// `GET …/units`: a page, or a watch.
pub(super) async fn list(
    request: HttpRequest,
    fleet: Data<EtcdFleet>,
    admission: Data<Admission>,
) -> Result<HttpResponse, Fault> {
    let query = query(&request);
    if query.is_watch()? {
        let follow = async |after| fleet.follow_units(after).await;
        return follow::answer(&request, &query, &admission, follow).await;
    }
    let response = PendingResponse::of_page(&request, PAGE_ITEMS)?;
    let page = fleet.list_units(query.page_token()?).await?;
    let page = wire::UnitPage {
        next: page.token(),
        units: page.items,
    };
    Ok(response.page(&page)?)
}

/// `GET …/units/{unitName}`
pub(super) async fn get(
    request: HttpRequest,
    fleet: Data<EtcdFleet>,
    name: Path<String>,
) -> Result<HttpResponse, Fault> {
    follow::refuse(&query(&request))?;
    let unit = if is_older(&request) {
        fleet.find_unit_for_older(&name).await?
    } else {
        fleet.find_unit(&name).await?
    };
    Ok(PendingResponse::of(&request)?.item(HttpResponse::Ok(), &unit)?)
}

/// `PUT …/units/{unitName}`
pub(super) async fn set(
    request: HttpRequest,
    fleet: Data<EtcdFleet>,
    name: Path<String>,
    body: Bytes,
) -> Result<HttpResponse, Fault> {
    check_media_type(request.headers())?;
    let wanted = wire::unit_request(&body)?;
    wanted.check_name(&name)?;
    let command = SetUnit {
        options: wanted.options,
        desired: wanted.desired,
    };
    let set = if is_older(&request) {
        fleet.set_unit_for_older(&name, command).await?
    } else {
        fleet.set_unit(&name, command).await?
    };
    Ok(match set {
        Set::Created | Set::Replaced => HttpResponse::Created().finish(),
        Set::Updated => HttpResponse::NoContent().finish(),
    })
}

/// `POST …/units/{unitName}/restart`
pub(super) async fn restart(
    fleet: Data<EtcdFleet>,
    name: Path<String>,
) -> Result<HttpResponse, Fault> {
    fleet.restart_unit(&name).await?;
    Ok(HttpResponse::Accepted().finish())
}

/// `POST …/units/{unitName}/stop`
pub(super) async fn stop(
    fleet: Data<EtcdFleet>,
    name: Path<String>,
) -> Result<HttpResponse, Fault> {
    fleet.stop_unit(&name).await?;
    Ok(HttpResponse::Accepted().finish())
}

/// `DELETE …/units/{unitName}`
pub(super) async fn destroy(
    fleet: Data<EtcdFleet>,
    name: Path<String>,
) -> Result<HttpResponse, Fault> {
    fleet.destroy_unit(&name).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// `GET …/units/{unitName}/explain`
pub(super) async fn explain(
    request: HttpRequest,
    fleet: Data<EtcdFleet>,
    name: Path<String>,
) -> Result<HttpResponse, Fault> {
    follow::refuse(&query(&request))?;
    let explanation = fleet.explain(&name).await?;
    Ok(PendingResponse::of(&request)?.item(HttpResponse::Ok(), &explanation)?)
}

/// Whether the client is the older fleetctl, or another one made from the discovery document.
fn is_older(request: &HttpRequest) -> bool {
    let agent = request.headers().get(USER_AGENT);
    agent.is_some_and(|agent| agent.as_bytes().starts_with(b"google-api-go-client/"))
}

impl follow::Watchable for UnitView {
    fn deletion_event(name: &String) -> wire::UnitGone<'_> {
        let machine_id = None;
        wire::UnitGone { machine_id, name }
    }
}
