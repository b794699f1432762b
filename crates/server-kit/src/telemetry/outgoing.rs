//! Requests to other servers, in the traces of this program.

use opentelemetry::trace::TraceContextExt as _;
use opentelemetry::{Context, global};
use opentelemetry_http::HeaderInjector;
use reqwest::Request;
use tracing::Span;
use tracing::field::Empty;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// The span that asks for work, for a task that does the work later. Empty without traces.
#[derive(Debug, Clone, Default)]
pub struct TraceContext(Context);

impl TraceContext {
    /// The current span.
    pub fn current() -> Self {
        Self(Span::current().context())
    }
}

/// The span of a request to another server, below the span that asks for it. The request names the span in
/// `traceparent`, as `OTEL_PROPAGATORS` says; without traces it stays as it is.
///
/// What a caller of this program put into `baggage` is not passed on: it may not be for that server.
pub fn client_span(request: &mut Request, asked_by: &TraceContext) -> Span {
    let url = request.url();
    // Names with a dot follow the conventions for traces, and are not logged.
    let span = tracing::info_span!(
        "outgoing",
        otel.name = request.method().as_str(),
        otel.kind = "client",
        otel.status_code = Empty,
        http.request.method = request.method().as_str(),
        server.address = url.host_str(),
        server.port = url.port_or_known_default(),
        url.path = url.path(),
        error.type = Empty,
    );
    // Fails if no traces are exported.
    let _ = span.set_parent(asked_by.0.clone());
    let context = span.context();
    let context = Context::new().with_remote_span_context(context.span().span_context().clone());
    let mut headers = HeaderInjector(request.headers_mut());
    global::get_text_map_propagator(|propagator| propagator.inject_context(&context, &mut headers));
    span
}

#[cfg(test)]
mod tests {
    use opentelemetry::trace::TracerProvider as _;
    use opentelemetry_sdk::propagation::TraceContextPropagator;
    use opentelemetry_sdk::trace::SdkTracerProvider;
    use reqwest::{Method, Url};
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    fn request() -> Request {
        Request::new(
            Method::GET,
            Url::parse("http://issuer.example/keys").unwrap(),
        )
    }

    #[test]
    fn a_request_names_a_span_below_the_one_that_asks_for_it() {
        global::set_text_map_propagator(TraceContextPropagator::new());
        let tracer = SdkTracerProvider::builder().build().tracer("test");
        let layer = tracing_opentelemetry::layer().with_tracer(tracer);
        let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));
        let asking = tracing::info_span!("asking");
        let asked_by = asking.in_scope(TraceContext::current);
        // Another task sends it: outside the span that asks.
        let mut request = request();
        let span = client_span(&mut request, &asked_by);
        let ids = |span: &Span| {
            let context = span.context();
            let otel = context.span();
            let ids = otel.span_context();
            (ids.trace_id().to_string(), ids.span_id().to_string())
        };
        let (trace, id) = ids(&span);
        assert_eq!(trace, ids(&asking).0);
        let sent = request.headers()["traceparent"].to_str().unwrap();
        assert_eq!(sent, format!("00-{trace}-{id}-01"));
    }

    #[test]
    fn without_traces_a_request_stays_as_it_is() {
        let mut request = request();
        client_span(&mut request, &TraceContext::current());
        assert!(request.headers().is_empty(), "{:?}", request.headers());
    }
}
