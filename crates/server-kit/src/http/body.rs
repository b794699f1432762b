//! Reads the body of a request before its handler runs, with limits of time and size.
//!
//! The rest of an unread body is buffered until the response is sent. actix then closes the connection; otherwise
//! it would read a chunked body for as long as the client sends it.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use actix_web::body::{BodySize, EitherBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::error::PayloadError;
use actix_web::http::Method;
use actix_web::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, TRANSFER_ENCODING, UPGRADE};
use actix_web::web::{Bytes, BytesMut};
use actix_web::{Error, HttpMessage as _, HttpRequest};
use futures_util::StreamExt as _;
use tokio::time::{Instant, timeout_at};

use super::connection::{BYTES_PER_SECOND_MIN, UnderWay};
use super::encoding::Packing;
use super::memory::{Reservation, ResponseBudget, SMALL};
use super::problem::{BODY_BYTES_MAX, Problem};
use super::refusals::resize;

/// A response, the unread rest of the body, and the request in progress.
struct Attended<B> {
    answer: Pin<Box<B>>,
    under_way: Option<UnderWay>,
    /// The unread rest of the body.
    _unread: Option<Payload>,
}

/// Reads the body of a request that has one, and replaces it, decompressed, for the handler. It must arrive
/// within `time`, and a second more for every 16 KiB that have arrived. A large body holds memory until the end
/// of the request.
///
/// After a head with `Upgrade: websocket` actix expects the other protocol, without an end. This server only
/// speaks HTTP and ignores the upgrade (RFC 9110 §7.8): the head says how long the body is, and without a
/// length it is empty (RFC 9112 §6.3). The connection is closed after the response then.
///
/// # Errors
///
/// 408 if it takes longer, 413 if it is too large, 415 if its encoding is not supported, 400 if it
/// ends early, 503 if too much is held for others.
pub(super) async fn read(
    request: &mut ServiceRequest,
    time: Duration,
    budget: &ResponseBudget,
) -> Result<(), Problem> {
    if !has_body(request.method()) {
        return Ok(());
    }
    let packing = Packing::of(request.headers())?;
    let announced = announced(request);
    if announced.is_some_and(|bytes| bytes > BODY_BYTES_MAX) {
        return Err(Problem::too_large());
    }
    let is_endless = is_endless(request);
    let end = if is_endless {
        announced.unwrap_or(0)
    } else {
        usize::MAX
    };
    let mut payload = request.take_payload();
    let collected = collect(&mut payload, end, time, budget).await;
    if is_endless || collected.is_err() {
        leave(request.request(), payload);
    }
    let (body, mut reservation) = collected?;
    let body = packing.unpacked(body)?;
    // Otherwise actix would decompress it again.
    request.headers_mut().remove(CONTENT_ENCODING);
    if body.len() > SMALL {
        let reservation = reservation.get_or_insert_with(|| budget.reserve_nothing());
        resize(reservation, body.len())?;
    }
    request.set_payload(Payload::from(body));
    if let Some(reservation) = reservation {
        request.extensions_mut().insert(reservation);
    }
    Ok(())
}

/// Keeps the body of a request without reading it.
pub fn leave(request: &HttpRequest, payload: Payload) {
    if !matches!(payload, Payload::None) {
        request.extensions_mut().insert(payload);
    }
}

/// Keeps the bodies of requests whose method has none.
pub(super) fn leave_unless_read(request: &mut ServiceRequest) {
    if !has_body(request.method()) {
        let payload = request.take_payload();
        leave(request.request(), payload);
    }
}

/// The response to a request, with the unread rest of its body.
pub(super) fn attended<B: MessageBody + 'static>(
    response: ServiceResponse<B>,
    under_way: Option<UnderWay>,
) -> ServiceResponse<EitherBody<B>> {
    if let Some(under_way) = &under_way {
        under_way.answered();
    }
    let unread = response.request().extensions_mut().remove::<Payload>();
    if unread.is_none() && under_way.is_none() {
        return response.map_into_left_body();
    }
    response.map_body(|_, body| {
        let attended = Attended {
            answer: Box::pin(body),
            under_way,
            _unread: unread,
        };
        EitherBody::right(attended.boxed())
    })
}

impl<B: MessageBody> MessageBody for Attended<B> {
    type Error = B::Error;

    fn size(&self) -> BodySize {
        self.answer.size()
    }

    fn poll_next(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        let attended = self.get_mut();
        let next = attended.answer.as_mut().poll_next(context);
        match (&next, &attended.under_way) {
            (Poll::Ready(Some(Ok(chunk))), Some(under_way)) => under_way.written(chunk.len()),
            (Poll::Pending, Some(under_way)) => under_way.waits(),
            _ => {}
        }
        next
    }
}

/// Whether the body of such a request is read.
fn has_body(method: &Method) -> bool {
    matches!(*method, Method::POST | Method::PUT | Method::PATCH)
}

/// The length in the head.
fn announced(request: &ServiceRequest) -> Option<usize> {
    let length = request.headers().get(CONTENT_LENGTH)?;
    length.to_str().ok()?.parse().ok()
}

/// Whether actix may not detect the end of the body.
fn is_endless(request: &ServiceRequest) -> bool {
    let headers = request.headers();
    headers.contains_key(UPGRADE) && !headers.contains_key(TRANSFER_ENCODING)
}

/// The next `end` bytes, or all up to the end of the payload. Large bodies hold memory for the bytes that have
/// arrived.
async fn collect(
    payload: &mut Payload,
    end: usize,
    time: Duration,
    budget: &ResponseBudget,
) -> Result<(Bytes, Option<Reservation>), Problem> {
    let start = Instant::now();
    let mut body = BytesMut::new();
    let mut reservation: Option<Reservation> = None;
    while body.len() < end {
        let earned = u32::try_from(body.len()).unwrap_or(u32::MAX);
        let earned = Duration::from_secs(1) * earned / BYTES_PER_SECOND_MIN;
        let next = timeout_at(start + time + earned, payload.next());
        let next = next.await.map_err(|_| Problem::slow_body())?;
        let Some(mut chunk) = next.transpose().map_err(refused)? else {
            break;
        };
        chunk.truncate(end - body.len());
        if body.len() + chunk.len() > BODY_BYTES_MAX {
            return Err(Problem::too_large());
        }
        body.extend_from_slice(&chunk);
        if body.len() > SMALL {
            let reservation = reservation.get_or_insert_with(|| budget.reserve_nothing());
            resize(reservation, body.capacity())?;
        }
    }
    Ok((body.freeze(), reservation))
}

fn refused(error: PayloadError) -> Problem {
    Problem::of(&Error::from(error))
}
