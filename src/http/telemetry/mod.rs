//! One span and one log line per request.

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::{Error, HttpMessage as _};
use tracing::Span;
use tracing_actix_web::RootSpanBuilder;

use super::request::RequestId;

/// What the span of a request says.
pub(super) struct RequestSpan;

impl RootSpanBuilder for RequestSpan {
    fn on_request_start(request: &ServiceRequest) -> Span {
        let id = request.extensions().get::<RequestId>().cloned();
        tracing::info_span!(
            "request",
            method = %request.method(),
            path = request.path(),
            request_id = id.map_or_else(String::new, |id| id.0),
        )
    }

    fn on_request_end<B: MessageBody>(_: Span, outcome: &Result<ServiceResponse<B>, Error>) {
        let status = match outcome {
            Ok(response) => response.status(),
            Err(error) => error.as_response_error().status_code(),
        };
        tracing::info!(status = status.as_u16(), "answered");
    }
}
