//! Responses that last until the service stops: clients that watch.

use std::rc::Rc;

use actix_web::http::header::HeaderName;
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};

use super::admission::Admission;
use super::connection::Connection;

const LAST_EVENT_ID: &str = "last-event-id";

/// The `Last-Event-ID` of a request is not one that the service sends, or there are several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid value of Last-Event-ID header")]
pub struct BadLastEventId;

/// Head of a response that lasts until the service stops, with headers that keep proxies from buffering it.
pub fn endless(request: &HttpRequest, admission: &Admission) -> HttpResponseBuilder {
    if let Some(connection) = request.conn_data::<Rc<Connection>>() {
        connection.end_with(admission.gate());
    }
    let mut response = HttpResponse::Ok();
    // Without it nginx buffers the response.
    response.insert_header((HeaderName::from_static("x-accel-buffering"), "no"));
    response
}

/// The `Last-Event-ID` of a request, if it has one.
///
/// # Errors
/// `parse` does not accept it, or there are several.
pub fn last_event_id<T>(
    request: &HttpRequest,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, BadLastEventId> {
    let mut values = request.headers().get_all(LAST_EVENT_ID);
    let (first, second) = (values.next(), values.next());
    let Some(first) = first.filter(|value| !value.is_empty() || second.is_some()) else {
        return Ok(None);
    };
    let id = first.to_str().ok().filter(|_| second.is_none());
    id.and_then(parse).map(Some).ok_or(BadLastEventId)
}
