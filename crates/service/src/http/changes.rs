//! Commands that change resources, and their answers: the same way for all of them, plain, with an idempotency key, and as
//! dry runs (`?dryRun=true`, `docs/decisions/0075-dry-run.md`).

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{ETAG, HeaderName, WARNING};
use serde::Serialize;

use super::request::{Call, decoded};
use crate::app::{Author, ChangeAnswer, Command, CommandResult, Mode};
use crate::wire::{self, Views};
use hyperfleet_domain::audit::ChangeOrigin;
use hyperfleet_domain::idempotency::{KeyedRequest, StoredAnswer};
use hyperfleet_domain::{Resource, ResourceState};
use hyperfleet_server_kit::http::{PendingResponse, Problem, RequestLog};

/// Marks a response as the response to an earlier request.
const IDEMPOTENCY_REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

impl Call {
    /// Carries out a command, and answers.
    pub(super) async fn change(
        &self,
        command: Command<'_>,
        origin: &ChangeOrigin,
        key: Option<&KeyedRequest>,
        is_dry_run: bool,
    ) -> Result<HttpResponse, Problem> {
        let tenant = &self.tenant;
        let mode = match (is_dry_run, key) {
            (true, key) => Mode::DryRun(key),
            (false, Some(key)) => Mode::Keyed(key),
            (false, None) => Mode::Plain,
        };
        let author = Author { tenant, origin };
        let write = |result: &CommandResult| self.written(result);
        let service = self.timed_service();
        let answer = service.change(command, author, mode, &write).await?;
        self.respond_with(answer)
    }

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

    /// The path and query of the request. For a dry run, the path and query of the change itself.
    pub(super) fn real_target(&self) -> String {
        let target = self.request.uri().path_and_query();
        wire::real_target(target.map_or("", |target| target.as_str()), decoded)
    }

    /// The answer to a change. What is gone has no tag.
    fn written(&self, result: &CommandResult) -> Result<StoredAnswer, serde_json::Error> {
        match result {
            CommandResult::Created(resource) => self.resource(StatusCode::CREATED, resource, true),
            CommandResult::Patched(resource) => self.resource(StatusCode::OK, resource, true),
            CommandResult::Deleted(deleted) => {
                self.resource(StatusCode::ACCEPTED, &deleted.resource, !deleted.is_removed)
            }
            CommandResult::ForceDeleted | CommandResult::Reported { stored: None, .. } => {
                Ok(StoredAnswer {
                    status: StatusCode::NO_CONTENT.as_u16(),
                    tag: None,
                    body: None,
                })
            }
            CommandResult::Reported {
                stored: Some(report),
                ..
            } => answer(StatusCode::CREATED, None, &Views::report(report)),
        }
    }

    fn resource(
        &self,
        status: StatusCode,
        resource: &Resource,
        has_tag: bool,
    ) -> Result<StoredAnswer, serde_json::Error> {
        let tag = has_tag.then_some(&resource.state);
        let resource = resource.into();
        let view = Views(self.service.registry()).resource(&resource);
        answer(status, tag, &view)
    }

    fn respond_with(&self, changed: ChangeAnswer) -> Result<HttpResponse, Problem> {
        let StoredAnswer { status, tag, body } = changed.answer;
        let (status, tag, body) = match &changed.plan {
            None => (status, tag, body),
            // Without the tag of a state that does not exist. 204 cannot have the plan.
            Some(plan) => {
                let written = wire::dry_run(body.as_deref(), status, plan);
                let written = written.map_err(|error| Problem::internal(error.to_string()))?;
                let status = body.map_or(StatusCode::OK.as_u16(), |_| status);
                (status, None, Some(written))
            }
        };
        let status = StatusCode::from_u16(status);
        let status = status.map_err(|error| Problem::internal(error.to_string()))?;
        let mut response = HttpResponse::build(status);
        if changed.is_replayed {
            response.insert_header((IDEMPOTENCY_REPLAYED, "true"));
        }
        if let Some(reason) = changed.warning {
            // As Kubernetes warns (RFC 7234, section 5.5.7): the answer may have no body, and bodies keep their form.
            response.insert_header((WARNING, format!("299 - \"{reason}\"")));
        }
        if let Some(tag) = tag {
            response.insert_header((ETAG, tag));
        }
        let Some(body) = body else {
            return Ok(response.finish());
        };
        let pending = match changed.plan {
            None => PendingResponse::of(&self.request)?,
            Some(_) => PendingResponse::of_unchanged(&self.request)?,
        };
        pending.bytes(response, body)
    }
}

fn answer(
    status: StatusCode,
    tagged: Option<&ResourceState>,
    view: &impl Serialize,
) -> Result<StoredAnswer, serde_json::Error> {
    Ok(StoredAnswer {
        status: status.as_u16(),
        tag: tagged.map(|state| state.tag().to_string()),
        body: Some(serde_json::to_vec(view)?),
    })
}
