//! One request from its head to its response: its span, notes of other parts of the service, and at the end one
//! log line and the metrics, whatever happens.

use std::cell::{Ref, RefCell, RefMut};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Instant;

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{HeaderMap, HeaderName, USER_AGENT};
use actix_web::http::{Method, StatusCode};
use actix_web::middleware::Next;
use actix_web::web::Data;
use actix_web::{Error, HttpMessage, HttpRequest};
use opentelemetry::propagation::{Extractor, TextMapPropagator as _};
use opentelemetry::trace::TraceContextExt as _;
use opentelemetry::{Context, global};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::Span;
use tracing::field::Empty;
use tracing::level_filters::LevelFilter;
use tracing_actix_web::RootSpanBuilder;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use super::redaction::{Redaction, shortened};
use super::{RoutePath, series};
use crate::http::request_id::RequestId;

/// Status of a request whose client has left, as in nginx.
const CLIENT_LEFT: u16 = 499;

/// Most bytes of a path or `User-Agent` in the log. Clients may send 64 KiB of each.
const TEXT_BYTES_MAX: usize = 512;

/// What is known of a request so far. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct RequestLog(Rc<RefCell<RequestEntry>>);

/// Contents of the log line beside the request itself.
#[derive(Debug, Default)]
pub struct RequestEntry {
    pub route: Option<RoutePath>,
    /// Whether its span is exported.
    pub is_traced: bool,
    /// Whether it only asks what a change would do.
    pub is_dry_run: bool,
    /// Name of the authenticated caller. Never a token.
    pub caller: Option<String>,
    /// Tenant of the request.
    pub tenant: Option<String>,
    /// Code of the problem, if the request failed.
    pub code: Option<String>,
    /// Why the caller was refused. The log may say more than the response.
    pub reason: Option<String>,
    /// The cause of a failure, which the client does not see.
    pub cause: Option<String>,
    /// Whether the failure belongs to an outage that is logged separately.
    pub is_logged_elsewhere: bool,
}

impl RequestLog {
    /// The log entry of a request, created on first use.
    pub fn of(request: &impl HttpMessage) -> Self {
        if let Some(log) = request.extensions().get::<Self>() {
            return log.clone();
        }
        let log = Self::default();
        request.extensions_mut().insert(log.clone());
        log
    }

    /// Records a failure. An earlier reason stays, because it says more.
    pub(in crate::http) fn failed(
        &self,
        code: Option<String>,
        cause: Option<String>,
        reason: Option<String>,
    ) {
        let mut entry = self.entry_mut();
        entry.code = code;
        entry.cause = cause;
        entry.reason = entry.reason.take().or(reason);
    }

    fn entry(&self) -> Ref<'_, RequestEntry> {
        self.0.borrow()
    }

    /// The entry, to be completed.
    pub fn entry_mut(&self) -> RefMut<'_, RequestEntry> {
        self.0.borrow_mut()
    }
}

/// Creates the span of a request. It exists at every log level, because log lines show its ids.
pub struct RequestSpan;

impl RootSpanBuilder for RequestSpan {
    fn on_request_start(request: &ServiceRequest) -> Span {
        let id = RequestId::of(request);
        // Names with a dot follow the conventions of traces, and are not logged.
        let span = tracing::error_span!(
            "request",
            request_id = id.0,
            trace_id = Empty,
            span_id = Empty,
            otel.name = Empty,
            otel.kind = Empty,
            otel.status_code = Empty,
            http.request.method = Empty,
            http.route = Empty,
            http.response.status_code = Empty,
            url.path = Empty,
            url.scheme = Empty,
            network.protocol.version = Empty,
            user_agent.original = Empty,
            client.address = Empty,
            error.type = Empty,
        );
        if begin_span(request, &span) {
            RequestLog::of(request).entry_mut().is_traced = true;
        } else if request.headers().contains_key("traceparent") {
            // The caller's context is not propagated, only used to find the trace.
            let context = TraceContextPropagator::new().extract(&Headers(request.headers()));
            record_ids(&span, &context, false);
        }
        span
    }

    /// [`observe`] writes the line and ends the span.
    fn on_request_end<B: MessageBody>(_: Span, _: &Result<ServiceResponse<B>, Error>) {}
}

/// Fills the span if spans are exported; returns whether they are.
fn begin_span(request: &ServiceRequest, span: &Span) -> bool {
    let headers = Headers(request.headers());
    let parent = global::get_text_map_propagator(|propagator| propagator.extract(&headers));
    // Do not ask `tracing` whether it is enabled: with filters per layer, an unused answer is applied to the
    // next span or event of the thread.
    if span.set_parent(parent).is_err() {
        return false;
    }
    span.record("otel.kind", "server");
    span.record("otel.name", request.method().as_str());
    span.record("http.request.method", request.method().as_str());
    span.record("url.path", &*shortened(request.path(), TEXT_BYTES_MAX));
    span.record("url.scheme", request.connection_info().scheme());
    let version = format!("{:?}", request.version());
    span.record(
        "network.protocol.version",
        version.trim_start_matches("HTTP/"),
    );
    let agent = request.headers().get(USER_AGENT);
    if let Some(agent) = agent.and_then(|agent| agent.to_str().ok()) {
        span.record("user_agent.original", &*shortened(agent, TEXT_BYTES_MAX));
    }
    if let Some(peer) = request.peer_addr() {
        span.record("client.address", peer.ip().to_string());
    }
    record_ids(span, &span.context(), true);
    true
}

/// Completes the span of an answered request, if spans are exported. The route is known only now.
fn end_span(span: &Span, method: &Method, route: Option<&str>, status: StatusCode) {
    if let Some(route) = route {
        span.record("http.route", route);
        // The span has started, and cannot be renamed by a field.
        let context = span.context();
        context.span().update_name(format!("{method} {route}"));
    }
    span.record("http.response.status_code", status.as_u16());
    if status.is_server_error() {
        span.record("error.type", status.as_str());
        span.record("otel.status_code", "error");
    }
}

fn record_ids(span: &Span, context: &Context, with_span: bool) {
    let otel = context.span();
    let context = otel.span_context();
    if context.is_valid() {
        span.record("trace_id", context.trace_id().to_string());
        if with_span {
            span.record("span_id", context.span_id().to_string());
        }
    }
}

struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}

/// The middleware directly inside the span.
pub async fn observe(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let mut observed = ObservedRequest::begin(&request);
    let outcome = next.call(request).await;
    let status = match &outcome {
        Ok(response) => {
            observed.take_route(response.request());
            response.status()
        }
        Err(error) => error.as_response_error().status_code(),
    };
    observed.end(status);
    outcome
}

/// The `User-Agent` of a client whose requests are logged at level `debug`, such as one that this program itself runs.
#[derive(Debug, Clone, Copy)]
pub struct QuietClient(pub &'static str);

/// A request in progress. Dropped early, its client has left.
struct ObservedRequest {
    /// The request's: drops happen outside it.
    span: Span,
    log: RequestLog,
    since: Instant,
    method: Method,
    path: String,
    user_agent: Option<String>,
    remote_addr: Option<SocketAddr>,
    is_quiet: bool,
    is_over: bool,
}

impl ObservedRequest {
    fn begin(request: &ServiceRequest) -> Self {
        series::begin();
        if LevelFilter::current() >= LevelFilter::DEBUG {
            log_head(request);
        }
        let agent = request.headers().get(USER_AGENT);
        let quiet = request.app_data::<QuietClient>();
        Self {
            is_quiet: quiet.is_some_and(|quiet| agent.is_some_and(|agent| agent == quiet.0)),
            span: Span::current(),
            log: RequestLog::of(request),
            since: Instant::now(),
            method: request.method().clone(),
            path: shortened(request.path(), TEXT_BYTES_MAX).into_owned(),
            user_agent: agent.map(|agent| {
                shortened(&String::from_utf8_lossy(agent.as_bytes()), TEXT_BYTES_MAX).into_owned()
            }),
            remote_addr: request.peer_addr(),
            is_over: false,
        }
    }

    /// Takes the route, if no middleware has recorded it.
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
            end_span(&self.span, &self.method, template, status);
        }
        let duration_ms = (elapsed.as_secs_f64() * 1e6).round() / 1e3;
        // `tracing` requires a constant level.
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
                    dry_run = entry.is_dry_run.then_some(true),
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
        } else if status.is_server_error() && !entry.is_logged_elsewhere {
            tell!(error, "failed");
        } else if self.is_quiet {
            tell!(debug, "answered");
        } else {
            tell!(info, "answered");
        }
    }
}

impl Drop for ObservedRequest {
    fn drop(&mut self) {
        let left = StatusCode::from_u16(CLIENT_LEFT);
        let span = self.span.clone();
        span.in_scope(|| self.end(left.unwrap_or(StatusCode::BAD_REQUEST)));
    }
}

/// Logs the request's head at level `debug`.
fn log_head(request: &ServiceRequest) {
    let redaction = request.app_data::<Data<Redaction>>();
    let Some(redaction) = redaction else { return };
    tracing::debug!(
        method = request.method().as_str(),
        path = &*shortened(request.path(), TEXT_BYTES_MAX),
        query = redaction.query(request.query_string()),
        headers = redaction.headers(request.headers()),
        "came"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters() {
        let fits = "a".repeat(TEXT_BYTES_MAX);
        assert_eq!(shortened(&fits, TEXT_BYTES_MAX), fits);
        let long = format!("a{}", "é".repeat(TEXT_BYTES_MAX));
        let cut = shortened(&long, TEXT_BYTES_MAX);
        assert_eq!(cut.len(), TEXT_BYTES_MAX - 1 + "…".len());
        assert!(cut.ends_with("é…"), "{cut}");
    }
}
