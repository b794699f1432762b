//! Where the response to a request ends: with its head, for HEAD, and whether a body may do without a length.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use actix_web::HttpRequest;
use actix_web::body::{BodySize, BoxBody, EitherBody, MessageBody};
use actix_web::dev::ServiceResponse;
use actix_web::http::header::{CONTENT_LENGTH, HeaderValue, TRANSFER_ENCODING};
use actix_web::http::{Method, Version};
use actix_web::web::Bytes;

/// The body of the response to a HEAD request: no bytes (RFC 9110, section 9.3.2).
struct HeadBody;

/// Whether the client can read a response without a length: HTTP/1.0 has no chunked encoding (RFC 9112 §6.1).
pub fn is_chunked(request: &HttpRequest) -> bool {
    request.version() >= Version::HTTP_11
}

/// Drops the body of the response to a HEAD request, with whatever it holds, and says in the head how long it is.
///
/// actix would not send it, but wait for its end: that of a watch never comes. It also forgets that the request is a HEAD
/// as soon as it has read another one, so the length is a header here, and not the size of the body.
pub(super) fn without_body_if_head<B: MessageBody>(
    response: ServiceResponse<B>,
) -> ServiceResponse<EitherBody<B, BoxBody>> {
    if response.request().method() != Method::HEAD {
        return response.map_into_left_body();
    }
    let may_be_chunked = is_chunked(response.request());
    response.map_body(|head, body| {
        let (name, value) = match body.size() {
            BodySize::None => return EitherBody::left(body),
            BodySize::Sized(bytes) => (CONTENT_LENGTH, HeaderValue::from(bytes)),
            BodySize::Stream => (TRANSFER_ENCODING, HeaderValue::from_static("chunked")),
        };
        if name == CONTENT_LENGTH || may_be_chunked {
            head.headers_mut().insert(name, value);
        }
        head.no_chunking(true);
        EitherBody::right(HeadBody.boxed())
    })
}

impl MessageBody for HeadBody {
    type Error = Infallible;

    /// Unknown to actix, which then writes neither a length nor an end.
    fn size(&self) -> BodySize {
        BodySize::Stream
    }

    fn poll_next(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Poll::Ready(None)
    }
}
