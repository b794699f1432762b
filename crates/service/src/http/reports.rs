//! `…/{id}/statuses`: the reports of adapters.

use actix_web::HttpResponse;
use actix_web::web::Bytes;

use super::request::Call;
use crate::app::Command;
use crate::wire::{self, Views};
use hyperfleet_domain::ConditionalReport;
use hyperfleet_server_kit::http::{PendingResponse, Problem, log_body};

/// `GET`: the reports.
pub(super) async fn list(call: Call) -> Result<HttpResponse, Problem> {
    let address = call.resource_path()?;
    // Reports have no references: the parameters are checked as in every list, without an effect.
    let page = call.params()?.page_with_reference()?;
    let response = PendingResponse::of_page(&call.request, page.size)?;
    let listing = call.timed_service().reports(address, page).await?;
    response.page(&Views::reports(&listing))
}

/// `PUT`: a report: 201 when it is accepted, 204 when it is discarded.
pub(super) async fn put(call: Call, body: Bytes) -> Result<HttpResponse, Problem> {
    log_body(&call.request, &body);
    let path = call.resource_path()?;
    let is_dry_run = call.is_dry_run()?;
    let conditions = &call.preconditions()?;
    let origin = call.origin()?;
    let report = wire::report(&body, origin.at);
    let report = report.inspect_err(|_| {
        if !is_dry_run {
            call.service.reject_report(path);
        }
    })?;
    let report = ConditionalReport { report, conditions };
    let command = Command::Report { path, report };
    call.change(command, &origin, None, is_dry_run).await
}
