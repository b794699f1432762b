//! Earlier states: one of a resource, its generations, its events, and what is left of a removed one.

use actix_web::HttpResponse;

use super::problem;
use super::request::Call;
use crate::app::{self, ResourcePath, Service};
use crate::wire::Views;
use hyperfleet_domain::history::PastMoment;
use hyperfleet_server_kit::http::{PendingResponse, Problem};

/// `GET` with `at` or `generation`: an earlier state of a resource. It has no tag: no precondition can name it.
pub(super) async fn past(call: &Call, moment: PastMoment) -> Result<HttpResponse, Problem> {
    let service = call.timed_service();
    let found = service.past(call.resource_path()?, moment).await?;
    let fields = call.params()?.fields()?;
    let response = PendingResponse::of(&call.request)?;
    let views = Views(call.service.registry());
    match fields {
        None => response.item(HttpResponse::Ok(), &views.resource(&found)),
        Some(fields) => response.item(HttpResponse::Ok(), &views.sparse(&found, &fields)),
    }
}

/// The problem of a resource that is not there: it is removed, or `missing`.
pub(super) async fn removed(
    service: &Service,
    path: ResourcePath<'_>,
    missing: app::Error,
) -> Problem {
    match service.tombstone(path).await {
        Ok(None) => missing.into(),
        Err(error) => error.into(),
        Ok(Some(tombstone)) => match Views(service.registry()).tombstone(&tombstone) {
            Ok(removal) => problem::removed(&tombstone, removal),
            Err(error) => Problem::internal(error.to_string()),
        },
    }
}

/// `GET …/history`: the generations of a resource.
pub(super) async fn generations(call: Call) -> Result<HttpResponse, Problem> {
    let page = call.params()?.page()?;
    let response = PendingResponse::of_page(&call.request, page.size)?;
    let service = call.timed_service();
    let found = service.generations(call.resource_path()?, page).await?;
    response.page(&Views(call.service.registry()).generations(&found))
}

/// `GET …/events`: what happened to a resource.
pub(super) async fn events(call: Call) -> Result<HttpResponse, Problem> {
    let page = call.params()?.page()?;
    let response = PendingResponse::of_page(&call.request, page.size)?;
    let service = call.timed_service();
    let found = service.timeline(call.resource_path()?, page).await?;
    response.page(&Views::timeline(&found))
}
