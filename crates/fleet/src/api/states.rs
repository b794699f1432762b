//! `…/state`

use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};

use super::body::query;
use super::follow;
use super::{Fault, PAGE_ITEMS};
use crate::{EtcdFleet, StateFilter, StateKey, StateView};
use hyperfleet_fleet_model::wire;
use hyperfleet_server_kit::http::{Admission, PendingResponse};

/// `GET …/state`: a page, or a watch.
pub(super) async fn list(
    request: HttpRequest,
    fleet: Data<EtcdFleet>,
    admission: Data<Admission>,
) -> Result<HttpResponse, Fault> {
    let query = query(&request);
    let filter = StateFilter {
        unit: query.filter("unitName").map(str::to_owned),
        machine: query.filter("machineID").map(str::to_owned),
    };
    if query.is_watch()? {
        let follow = async |after| fleet.follow_states(filter, after).await;
        return follow::answer(&request, &query, &admission, follow).await;
    }
    let response = PendingResponse::of_page(&request, PAGE_ITEMS)?;
    let page = fleet.list_states(&filter, query.page_token()?).await?;
    let page = wire::StatePage {
        next: page.token(),
        states: page.items,
    };
    Ok(response.page(&page)?)
}

/// `GET …/state/{unitName}`: of several machines, the one with the lowest id.
pub(super) async fn get(
    request: HttpRequest,
    fleet: Data<EtcdFleet>,
    name: Path<String>,
) -> Result<HttpResponse, Fault> {
    follow::refuse(&query(&request))?;
    let state = fleet.find_state(&name).await?;
    Ok(PendingResponse::of(&request)?.item(HttpResponse::Ok(), &state)?)
}

impl follow::Watchable for StateView {
    fn deletion_event(key: &StateKey) -> wire::UnitGone<'_> {
        wire::UnitGone {
            machine_id: Some(&key.machine),
            name: &key.unit,
        }
    }
}
