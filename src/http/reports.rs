//! `…/{id}/statuses`: the reports of adapters.

use actix_web::http::header::WARNING;
use actix_web::web::Bytes;
use actix_web::{HttpResponse, HttpResponseBuilder};

use super::dry_run::kept_report;
use super::request::Call;
use crate::app::{DryRun, ReportAnswer};
use crate::domain::{ConditionalReport, Report, ReportOutcome};
use crate::wire::{self, Views};
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

/// `PUT`: a report: 201 when it is accepted, 204 when it is discarded. `Warning` says why it was not stored.
pub(super) async fn put(call: Call, body: Bytes) -> Result<HttpResponse, Problem> {
    log_body(&call.request, &body);
    let address = call.resource_path()?;
    let is_dry_run = call.is_dry_run()?;
    let conditions = &call.preconditions()?;
    let origin = call.origin()?;
    let report = wire::report(&body, origin.at);
    let sent = report.map(|report| ConditionalReport { report, conditions });
    let service = call.timed_service();
    if is_dry_run {
        let run = DryRun {
            origin: &origin,
            key: None,
            write: &|stored: &Option<Report>| kept_report(stored.as_ref()),
        };
        let planned = service.report_dry_run(address, sent?, run).await?;
        return call.planned(&planned);
    }
    let sent = sent.inspect_err(|_| service.reject_report(address))?;
    let ReportAnswer { stored, outcome } = service.report(address, sent, &origin).await?;
    match stored {
        Some(stored) => {
            let response = PendingResponse::of(&call.request)?;
            let created = warned(HttpResponse::Created(), outcome);
            response.item(created, &Views::report(&stored))
        }
        None => Ok(warned(HttpResponse::NoContent(), outcome).finish()),
    }
}

/// Says why a report was not stored, in a header (RFC 7234, section 5.5.7) as Kubernetes warns: the answer may have no
/// body, and bodies keep their form.
fn warned(mut response: HttpResponseBuilder, outcome: ReportOutcome) -> HttpResponseBuilder {
    if let Some(reason) = outcome.reason() {
        response.insert_header((WARNING, format!("299 - \"{reason}\"")));
    }
    response
}
