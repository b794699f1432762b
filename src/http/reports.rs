//! `…/{id}/statuses`: what adapters report.

use actix_web::web::{Bytes, Data};
use actix_web::{HttpRequest, HttpResponse};

use super::request::{Caller, Place, params};
use crate::app::Service;
use crate::wire::{self, Views};
use hyperfleet_server_kit::clock::Clock;
use hyperfleet_server_kit::http::{PendingResponse, Problem, tell_body};

/// `GET` of the reports.
pub(super) async fn list(
    request: HttpRequest,
    caller: Caller,
    service: Data<Service>,
) -> Result<HttpResponse, Problem> {
    let address = Place::new(&request, &service).address(&caller)?;
    let params = params(&request);
    // Links of reports there are none: the parameters are checked as in every list, and no more.
    let page = params.page_with_reference()?;
    let response = PendingResponse::of_page(&request, page.size)?;
    let listing = service.reports(address, page).await?;
    response.page(&Views::reports(&listing))
}

/// `PUT` of a report: 201 when it is accepted, 204 when it is discarded.
pub(super) async fn put(
    request: HttpRequest,
    caller: Caller,
    service: Data<Service>,
    clock: Data<Clock>,
    body: Bytes,
) -> Result<HttpResponse, Problem> {
    tell_body(&request, &body);
    let address = Place::new(&request, &service).address(&caller)?;
    let origin = caller.origin(&request, &clock)?;
    let report = wire::report(&body, origin.at);
    let report = report.inspect_err(|_| service.reject_report(address))?;
    match service.report(address, report, &origin).await? {
        Some(stored) => {
            PendingResponse::of(&request)?.item(HttpResponse::Created(), &Views::report(&stored))
        }
        None => Ok(HttpResponse::NoContent().finish()),
    }
}
