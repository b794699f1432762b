//! `?watch=true`: the changes of a list, as an answer that lasts as long as the client reads it.
//!
//! Events are written when the client has taken the previous ones. A client that is slower than the changes costs no more
//! memory: its watcher reads for itself.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use actix_web::http::header::{ACCEPT, CONTENT_ENCODING, HeaderName};
use actix_web::web::{Bytes, Data};
use actix_web::{HttpResponse, HttpResponseBuilder};
use futures_util::stream;
use tokio::time::Instant;

use super::identification::Credentials;
use super::problem::{event_of, watch_ended};
use super::request::Call;
use crate::app::{WatchEnd, WatchEvent, WatchRequest, WatchStep, Watcher};
use crate::wire::{EventForm, Events, Fields, ParamsError, Views};
use hyperfleet_domain::change::ChangePosition;
use hyperfleet_domain::watch::{WatchEventKind, WatchStart};
use hyperfleet_domain::{Constraint, ListFilterKind, StoredResource, Violation, Violations};
use hyperfleet_server_kit::http::{
    self, Admission, Gate, PIECE, PLAIN, Problem, WATCHER_BYTES_MIN, WatcherSlot,
};
use strum::IntoEnumIterator as _;

/// Resume position: a watch from here misses nothing after this response.
pub(super) const POSITION: HeaderName = HeaderName::from_static("hyperfleet-position");
/// Longest time without an event: a bookmark is sent then.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Adds the header with the position, once the instance knows it. The position must be from before anything is read for
/// the answer.
pub(super) fn name_position(position: Option<ChangePosition>, answer: &mut HttpResponseBuilder) {
    if let Some(position) = position {
        answer.insert_header((POSITION, position.to_string()));
    }
}

/// Where the watch begins that a request asks for; `None` if it asks for a list.
pub(super) fn start(call: &Call) -> Result<Option<WatchStart>, Problem> {
    let params = call.params()?;
    if params.watch(None)?.is_none() {
        return Ok(None);
    }
    let resumed = http::last_event_id(&call.request, ChangePosition::parse);
    let resumed = resumed.map_err(|error| {
        let violation = Violation::new("Last-Event-ID", Constraint::Format, error.to_string());
        ParamsError::Invalid(violation.into())
    })?;
    Ok(params.watch(resumed)?)
}

/// Answers with the events of a list.
pub(super) async fn watch(call: Call, start: WatchStart) -> Result<HttpResponse, Problem> {
    let collection = call.collection()?;
    let params = call.params()?;
    if !http::is_chunked(&call.request) {
        let violation = Violation::new("watch", Constraint::Format, "needs HTTP/1.1");
        return Err(ParamsError::Invalid(Violations::from(violation)).into());
    }
    let filters = params.filters(ListFilterKind::iter())?;
    let filters = call.service.filters(collection, filters)?;
    let fields = params.fields()?;
    let accept = call.request.headers().get(ACCEPT);
    let form = EventForm::accepted(accept.and_then(|value| value.to_str().ok()));
    let admission = call.request.app_data::<Data<Admission>>().cloned();
    let admission = admission.ok_or_else(|| Problem::internal("routes without admission"))?;
    let slot = admission.admit_watcher(WATCHER_BYTES_MIN);
    let slot = slot.map_err(Problem::no_watcher)?;
    let credentials = Credentials::of(&call.request);
    let credentials =
        credentials.ok_or_else(|| Problem::internal("an application without authentication"))?;
    let request = WatchRequest {
        start,
        filters,
        has_specs: fields.as_ref().is_none_or(Fields::has_spec),
    };
    let timed = call.timed_service();
    timed.require_collection(call.tenants(), collection).await?;
    let watcher = call
        .service
        .watch(call.tenants(), collection, request)
        .await?;
    let mut answer = http::endless(&call.request, &admission);
    answer.insert_header((CONTENT_ENCODING, PLAIN));
    name_position(watcher.position(), &mut answer);
    let begins_with = watcher.position();
    let events = EventStream {
        call,
        watcher,
        form,
        shared_form: format!("{form:?} {fields:?}").into(),
        fields,
        credentials,
        gate: admission.gate().clone(),
        unwritten: begins_with.map(Unwritten::Bookmark).into_iter().collect(),
        is_over: false,
        _slot: slot,
    };
    let chunks = stream::unfold(events, async |mut events| {
        let chunk = events.next().await?;
        Some((Ok::<_, actix_web::Error>(chunk), events))
    });
    answer.content_type(form.media_type());
    Ok(answer.streaming(chunks))
}

/// One watching client.
struct EventStream {
    call: Call,
    watcher: Watcher,
    form: EventForm,
    fields: Option<Fields>,
    /// Names how events are written: watches with the same one share their texts.
    shared_form: Arc<str>,
    credentials: Credentials,
    gate: Gate,
    unwritten: VecDeque<Unwritten>,
    is_over: bool,
    _slot: WatcherSlot,
}

/// Something that is not written yet.
enum Unwritten {
    Listed(Box<StoredResource>),
    Event(WatchEvent),
    Bookmark(ChangePosition),
    Nothing,
}

impl EventStream {
    /// The next bytes to write; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        if self.unwritten.is_empty() {
            let gate = self.gate.clone();
            let step = tokio::select! {
                biased;
                () = gate.stopped() => return None,
                step = self.watcher.next(Instant::now() + HEARTBEAT) => step,
            };
            match step {
                Ok(step) => self.unwritten.extend(unwritten(step, &self.watcher)),
                Err(end) => return self.end(end, &watch_ended(end)),
            }
        }
        // Whatever is written now, the caller may still see.
        if let Err(problem) = self.credentials.check().await {
            return self.end(WatchEnd::Unauthorized, &problem);
        }
        let mut piece = String::new();
        while piece.len() < PIECE {
            let Some(next) = self.unwritten.pop_front() else {
                break;
            };
            if self.write(&next, &mut piece).is_none() {
                let end = WatchEnd::Failed;
                return self.end(end, &watch_ended(end));
            }
        }
        Some(piece.into())
    }

    fn events(&self) -> Events<'_> {
        Events {
            views: Views(self.call.service.registry()),
            form: self.form,
            fields: self.fields.as_ref(),
        }
    }

    /// `None` if it cannot be written.
    fn write(&self, next: &Unwritten, piece: &mut String) -> Option<()> {
        let events = self.events();
        match next {
            Unwritten::Listed(resource) => {
                piece.push_str(&events.change(WatchEventKind::Added, resource, None)?);
            }
            Unwritten::Event(event) => {
                let write = || events.change(event.kind, event.resource()?, Some(event.position()));
                piece.push_str(&event.text(&self.shared_form, write)?);
            }
            Unwritten::Bookmark(position) => piece.push_str(&events.bookmark(*position)?),
            Unwritten::Nothing => piece.push_str(events.nothing()),
        }
        Some(())
    }

    /// Ends the watch with an event that says why.
    fn end(&mut self, end: WatchEnd, problem: &Problem) -> Option<Bytes> {
        end.count();
        self.is_over = true;
        self.unwritten.clear();
        self.events().error(event_of(problem)).map(Bytes::from)
    }
}

fn unwritten(step: WatchStep, watcher: &Watcher) -> Vec<Unwritten> {
    match step {
        WatchStep::Listed(resources) => resources
            .into_iter()
            .map(|resource| Unwritten::Listed(Box::new(resource)))
            .collect(),
        WatchStep::Events(events) => events.into_iter().map(Unwritten::Event).collect(),
        WatchStep::Complete(position) => vec![Unwritten::Bookmark(position)],
        WatchStep::Nothing => {
            let position = watcher.position();
            vec![position.map_or(Unwritten::Nothing, Unwritten::Bookmark)]
        }
    }
}
