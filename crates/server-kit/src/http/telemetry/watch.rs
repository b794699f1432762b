//! Watches a request from its head to its answer: one line in the log at the end, whatever happens,
//! and what is counted.

use std::net::SocketAddr;
use std::time::Instant;

use actix_web::Error;
use actix_web::HttpRequest;
use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::USER_AGENT;
use actix_web::http::{Method, StatusCode};
use actix_web::middleware::Next;
use actix_web::web::Data;
use tracing::Span;
use tracing::level_filters::LevelFilter;

use super::span::{self, shortened};
use super::{Masks, RequestLog, RoutePath, series};

/// What nobody waits for any more has no status: nginx's number for it.
const CLIENT_LEFT: u16 = 499;

/// The middleware right below the span.
pub async fn watch(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let mut watched = Watched::begin(&request);
    let outcome = next.call(request).await;
    let status = match &outcome {
        Ok(response) => {
            watched.take_route(response.request());
            response.status()
        }
        Err(error) => error.as_response_error().status_code(),
    };
    watched.end(status);
    outcome
}

/// A request that is not answered yet. Dropped before its end, its client has left.
struct Watched {
    /// The request's: what is dropped is dropped outside it.
    span: Span,
    log: RequestLog,
    since: Instant,
    method: Method,
    path: String,
    user_agent: Option<String>,
    remote_addr: Option<SocketAddr>,
    is_over: bool,
}

impl Watched {
    fn begin(request: &ServiceRequest) -> Self {
        series::begin();
        if LevelFilter::current() >= LevelFilter::DEBUG {
            tell_head(request);
        }
        let agent = request.headers().get(USER_AGENT);
        Self {
            span: Span::current(),
            log: RequestLog::of(request),
            since: Instant::now(),
            method: request.method().clone(),
            path: shortened(request.path()).into_owned(),
            user_agent: agent
                .map(|agent| shortened(&String::from_utf8_lossy(agent.as_bytes())).into_owned()),
            remote_addr: request.peer_addr(),
            is_over: false,
        }
    }

    /// Where the request was led to, if nobody has said so on the way.
    fn take_route(&self, request: &HttpRequest) {
        if let Some(route) = request.app_data::<RoutePath>() {
            self.log.entry_mut().route = Some(route.clone());
        }
    }

    fn end(&mut self, status: StatusCode) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        let elapsed = self.since.elapsed();
        let entry = self.log.entry();
        let route = entry.route.as_ref();
        series::end(&self.method, route, status, elapsed);
        let template = route.map(|route| &*route.template);
        if entry.is_traced {
            span::end(&self.span, &self.method, template, status);
        }
        let duration_ms = (elapsed.as_secs_f64() * 1e6).round() / 1e3;
        // `tracing` wants the level of each place to be fixed.
        macro_rules! tell {
            ($tell:ident, $message:literal) => {
                tracing::$tell!(
                    method = self.method.as_str(),
                    path = self.path,
                    route = template,
                    status_code = status.as_u16(),
                    duration_ms,
                    user_agent = self.user_agent,
                    remote_addr = self.remote_addr.map(tracing::field::display),
                    caller = entry.caller,
                    tenant = entry.tenant,
                    code = entry.code,
                    reason = entry.reason,
                    error = entry.cause,
                    $message
                )
            };
        }
        if status.as_u16() == CLIENT_LEFT {
            tell!(info, "the client left");
        } else if status.is_server_error() && !entry.is_told_elsewhere {
            tell!(error, "failed");
        } else {
            tell!(info, "answered");
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let left = StatusCode::from_u16(CLIENT_LEFT);
        let span = self.span.clone();
        span.in_scope(|| self.end(left.unwrap_or(StatusCode::BAD_REQUEST)));
    }
}

/// What came, for whoever looks closely.
fn tell_head(request: &ServiceRequest) {
    let masks = request.app_data::<Data<Masks>>();
    let Some(masks) = masks else { return };
    tracing::debug!(
        method = request.method().as_str(),
        path = &*shortened(request.path()),
        query = masks.query(request.query_string()),
        headers = masks.headers(request.headers()),
        "came"
    );
}
