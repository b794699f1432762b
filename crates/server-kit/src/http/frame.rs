//! The middleware around all routes, inside span and log: normalizes the path, adds the request id to answers, and
//! writes error responses.
//!
//! Errors of handlers and of the server library do not know their path. The frame does, and writes every error
//! in the wording of its path.

use std::panic::AssertUnwindSafe;
use std::rc::Rc;

use actix_web::body::{BoxBody, EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::error::InternalError;
use actix_web::http::ConnectionType;
use actix_web::http::header::HeaderValue;
use actix_web::http::uri::PathAndQuery;
use actix_web::middleware::Next;
use actix_web::web::Data;
use actix_web::{Error, HttpResponse};
use chrono::{DateTime, Utc};
use futures_util::FutureExt as _;

use super::admission;
use super::body;
use super::body_length;
use super::caching;
use super::connection::{Connection, UnderWay};
use super::headers::ResponseHeaders;
use super::problem::Problem;
use super::request_id::{RequestId, X_REQUEST_ID};
use super::telemetry::RequestLog;
use crate::clock::Clock;

#[derive(Debug, Clone, Default)]
pub struct Arrival {
    /// Without a trailing slash.
    pub path: String,
    pub request_id: String,
    pub at: DateTime<Utc>,
}

/// An error for the client and for the log.
pub struct ErrorResponse {
    pub response: HttpResponse,
    /// Code of the problem, if it has one.
    pub code: Option<String>,
    /// Cause that the client does not see.
    pub cause: Option<String>,
    /// Why the caller was refused.
    pub reason: Option<String>,
}

/// How the errors of some paths are written.
#[derive(Clone, Copy)]
pub struct Wording {
    /// Whether one trailing slash of these paths is ignored.
    pub trims_slash: bool,
    /// Writes an error response.
    pub write: fn(&Error, &Arrival) -> ErrorResponse,
}

/// Chooses the wording of a path.
pub type ChooseWording = fn(&ServiceRequest) -> Wording;

/// The outermost middleware. `wording` chooses the wording of errors by path.
pub async fn frame(
    wording: ChooseWording,
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<EitherBody<impl MessageBody, BoxBody>>, Error> {
    let wording = wording(&request);
    if wording.trims_slash {
        trim_one_slash(&mut request);
    }
    let RequestId(id) = RequestId::of(&request);
    let log = RequestLog::of(&request);
    let connection = request.conn_data::<Rc<Connection>>();
    let under_way = connection.map(UnderWay::begin);
    body::leave_unless_read(&mut request);
    let clock = request.app_data::<Data<Clock>>().cloned();
    let arrival = Arrival {
        path: request.path().to_owned(),
        request_id: id,
        at: clock.map_or(DateTime::UNIX_EPOCH, |clock| clock.now()),
    };
    let id = HeaderValue::try_from(&arrival.request_id).ok();
    let written = |error: &Error| {
        let mut written = (wording.write)(error, &arrival);
        log.failed(written.code, written.cause, written.reason);
        if let Some(id) = &id {
            let headers = written.response.headers_mut();
            headers.insert(X_REQUEST_ID, id.clone());
        }
        written.response
    };
    // Nothing of a request outlives it: a panic drops its unfinished work, and its transaction rolls back.
    let outcome = AssertUnwindSafe(next.call(request)).catch_unwind().await;
    let mut response = match outcome {
        Ok(Ok(response)) => rewritten(response, written),
        Ok(Err(error)) => return Err(InternalError::from_response("", written(&error)).into()),
        Err(_) => {
            let response = written(&Problem::panicked().into());
            return Err(InternalError::from_response("", response).into());
        }
    };
    caching::set_cache_headers(&mut response);
    if let Some(id) = id {
        response.headers_mut().insert(X_REQUEST_ID, id);
    }
    ResponseHeaders::write(&mut response);
    admission::end_when_stopping(&mut response);
    let is_last = under_way.as_ref().is_some_and(UnderWay::is_last);
    if is_last || response.request().head().upgrade() {
        let head = response.response_mut().head_mut();
        // Upgrades are ignored (RFC 9110 §7.8). actix would answer `connection: upgrade` like the request, and
        // close it.
        head.set_connection_type(ConnectionType::Close);
    }
    let response = body_length::without_body_if_head(response);
    Ok(body::attended(response, under_way))
}

/// Writes the response of an error, if it is one.
fn rewritten<B: MessageBody>(
    response: ServiceResponse<B>,
    written: impl FnOnce(&Error) -> HttpResponse,
) -> ServiceResponse<EitherBody<B, BoxBody>> {
    let Some(error) = response.response().error() else {
        return response.map_into_left_body();
    };
    let written = written(error);
    let (request, _) = response.into_parts();
    ServiceResponse::new(request, written).map_into_right_body()
}

/// `/clusters/` becomes `/clusters`. Only one slash is removed.
fn trim_one_slash(request: &mut ServiceRequest) {
    let uri = request.uri();
    let Some(path) = uri.path().strip_suffix('/').filter(|path| !path.is_empty()) else {
        return;
    };
    let trimmed = match uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = PathAndQuery::try_from(trimmed).ok();
    if let Ok(uri) = actix_web::http::Uri::from_parts(parts) {
        request.match_info_mut().get_mut().update(&uri);
        request.head_mut().uri = uri;
    }
}
