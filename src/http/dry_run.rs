//! Dry runs (`?dryRun=true`): the answer that a change would have, and what it would do
//! (`docs/decisions/0075-dry-run.md`).

use actix_web::HttpResponse;
use actix_web::http::StatusCode;

use super::conditional::replayed;
use super::request::{Call, decoded};
use crate::app::DryRunAnswer;
use crate::domain::Report;
use crate::domain::idempotency::KeptAnswer;
use crate::wire::{self, Views};
use hyperfleet_server_kit::http::{PendingResponse, Problem, RequestLog};
use hyperfleet_server_kit::json;

impl Call {
    /// Whether the request is a dry run. The log line of the request says so.
    ///
    /// # Errors
    ///
    /// The parameter is misspelled, or has another value than `true`.
    pub(super) fn is_dry_run(&self) -> Result<bool, Problem> {
        let is_dry_run = decoded(self.request.query_string()).dry_run();
        if is_dry_run != Ok(false) {
            RequestLog::of(&self.request).entry_mut().is_dry_run = true;
        }
        Ok(is_dry_run?)
    }

    /// The path and query of the request; those of the change itself if it is a dry run.
    pub(super) fn real_target(&self) -> String {
        let target = self.request.uri().path_and_query();
        wire::real_target(target.map_or("", |target| target.as_str()), decoded)
    }

    /// The answer to a dry run: that of the change with its plan, but without the tag of a state that does not exist.
    /// An answer without a body becomes 200, because 204 cannot have the plan.
    pub(super) fn planned(&self, planned: &DryRunAnswer) -> Result<HttpResponse, Problem> {
        let KeptAnswer { status, body, .. } = &planned.keyed.answer;
        let written = wire::dry_run(body.as_deref(), *status, &planned.plan);
        let written = written.map_err(|error| Problem::internal(error.to_string()))?;
        let status = match body {
            None => StatusCode::OK,
            Some(_) => StatusCode::from_u16(*status)
                .map_err(|error| Problem::internal(error.to_string()))?,
        };
        let mut response = HttpResponse::build(status);
        replayed(&mut response, &planned.keyed);
        PendingResponse::of_unchanged(&self.request)?.bytes(response, written)
    }
}

/// The answer to a report, as [`super::reports::put`] gives it.
pub(super) fn kept_report(stored: Option<&Report>) -> Result<KeptAnswer, serde_json::Error> {
    let body = stored.map(|stored| json::to_vec(&Views::report(stored), 0));
    let status = match &body {
        Some(_) => StatusCode::CREATED,
        None => StatusCode::NO_CONTENT,
    };
    Ok(KeptAnswer {
        status: status.as_u16(),
        tag: None,
        body: body.transpose()?,
    })
}
