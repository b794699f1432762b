//! The span of a request: below it stands every line of the log, and every span, that it leads to.

use std::borrow::Cow;

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::http::header::{HeaderMap, HeaderName, USER_AGENT};
use actix_web::{Error, http::StatusCode};
use opentelemetry::propagation::{Extractor, TextMapPropagator as _};
use opentelemetry::trace::TraceContextExt as _;
use opentelemetry::{Context, global};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::Span;
use tracing::field::Empty;
use tracing_actix_web::RootSpanBuilder;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use super::RequestLog;
use crate::http::request_id::RequestId;

/// What the log repeats of a path or a `User-Agent` at most, in bytes: clients may send 64 KiB of each.
const TEXT_BYTES_MAX: usize = 512;

/// Makes the span of a request. It is there at every level of the log, for the ids in its lines.
pub struct RequestSpan;

impl RootSpanBuilder for RequestSpan {
    fn on_request_start(request: &ServiceRequest) -> Span {
        let id = RequestId::of(request);
        // Names with a dot are those of the conventions for traces, and are not logged.
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
        if begin(request, &span) {
            RequestLog::of(request).entry_mut().is_traced = true;
        } else if request.headers().contains_key("traceparent") {
            // Not ours to tell further, but to be found by.
            let context = TraceContextPropagator::new().extract(&Headers(request.headers()));
            record_ids(&span, &context, false);
        }
        span
    }

    /// What there is to tell, [`super::watch()`] tells.
    fn on_request_end<B: MessageBody>(_: Span, _: &Result<ServiceResponse<B>, Error>) {}
}

/// Fills the span where spans are kept; gives whether they are.
fn begin(request: &ServiceRequest, span: &Span) -> bool {
    let headers = Headers(request.headers());
    let parent = global::get_text_map_propagator(|propagator| propagator.extract(&headers));
    // Asking `tracing` whether it is enabled would do harm: with filters per layer the answer to a
    // question that nothing follows is taken for that to the next one.
    if span.set_parent(parent).is_err() {
        return false;
    }
    span.record("otel.kind", "server");
    span.record("otel.name", request.method().as_str());
    span.record("http.request.method", request.method().as_str());
    span.record("url.path", &*shortened(request.path()));
    span.record("url.scheme", request.connection_info().scheme());
    let version = format!("{:?}", request.version());
    span.record(
        "network.protocol.version",
        version.trim_start_matches("HTTP/"),
    );
    let agent = request.headers().get(USER_AGENT);
    if let Some(agent) = agent.and_then(|agent| agent.to_str().ok()) {
        span.record("user_agent.original", &*shortened(agent));
    }
    if let Some(peer) = request.peer_addr() {
        span.record("client.address", peer.ip().to_string());
    }
    record_ids(span, &span.context(), true);
    true
}

/// Completes the span of a request that is answered, where spans are kept: what it was about is
/// known only now.
pub(super) fn end(span: &Span, method: &Method, route: Option<&str>, status: StatusCode) {
    if let Some(route) = route {
        span.record("http.route", route);
        // It is under way already, and takes no other name from a field.
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

/// A text of a client's as the log repeats it: no longer than [`TEXT_BYTES_MAX`], and a sign where it was cut.
pub(super) fn shortened(text: &str) -> Cow<'_, str> {
    if text.len() <= TEXT_BYTES_MAX {
        return Cow::Borrowed(text);
    }
    let end = text.floor_char_boundary(TEXT_BYTES_MAX);
    Cow::Owned(format!("{}…", &text[..end]))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters() {
        let fits = "a".repeat(TEXT_BYTES_MAX);
        assert_eq!(shortened(&fits), fits);
        let long = format!("a{}", "é".repeat(TEXT_BYTES_MAX));
        let cut = shortened(&long);
        assert_eq!(cut.len(), TEXT_BYTES_MAX - 1 + "…".len());
        assert!(cut.ends_with("é…"), "{cut}");
    }
}
