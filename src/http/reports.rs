//! `…/{id}/statuses`: what adapters report.

use actix_web::web::{Bytes, Data};
use actix_web::{HttpRequest, HttpResponse};

use super::answer::PendingResponse;
use super::problem::Problem;
use super::request::{Caller, Place, params};
use super::telemetry::tell_body;
use crate::app::{ReportOutcome, Service};
use crate::clock::Clock;
use crate::wire::{self, Views};

/// `GET` of the reports.
pub(super) async fn list(
    request: HttpRequest,
    caller: Caller,
    service: Data<Service>,
) -> Result<HttpResponse, Problem> {
    let address = Place::new(&request, &service).address(&caller)?;
    let params = params(&request);
    // Links of reports there are none: the parameters are checked as in every list, and no more.
    let (page, _) = params.page_with_reference()?;
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
    match service.report(address, &report, &origin).await? {
        ReportOutcome::Accepted(stored) => {
            let view = Views::report(&stored);
            PendingResponse::of(&request)?.item(HttpResponse::Created(), &view)
        }
        ReportOutcome::Discarded(why) => {
            tracing::debug!(adapter = report.adapter, ?why, "report discarded");
            Ok(HttpResponse::NoContent().finish())
        }
    }
}
