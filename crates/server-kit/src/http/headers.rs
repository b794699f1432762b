//! Headers that are known before the response exists.

use actix_web::HttpMessage as _;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{HeaderName, HeaderValue};

/// Headers for the response to a request, whichever code writes it.
#[derive(Default)]
pub struct ResponseHeaders(Vec<(HeaderName, HeaderValue)>);

impl ResponseHeaders {
    /// Adds headers to the later response to a request.
    pub fn add(
        request: &ServiceRequest,
        headers: impl IntoIterator<Item = (HeaderName, HeaderValue)>,
    ) {
        let mut extensions = request.extensions_mut();
        let mut added = extensions.remove::<Self>().unwrap_or_default();
        added.0.extend(headers);
        extensions.insert(added);
    }

    /// Writes the added headers.
    pub(super) fn write<B>(response: &mut ServiceResponse<B>) {
        let added = response.request().extensions_mut().remove::<Self>();
        for (name, value) in added.unwrap_or_default().0 {
            response.headers_mut().insert(name, value);
        }
    }
}
