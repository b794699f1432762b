//! Writes responses: as JSON, and large ones in pieces.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use actix_web::body::{BodySize, MessageBody};
use actix_web::http::header::{self, ContentType};
use actix_web::web::{Bytes, Data};
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};
use serde::Serialize;

use super::memory::{ITEM_BYTES, Reservation, ResponseBudget, SMALL};
use super::problem::Problem;
use super::refusals::{reserve, resize};
use crate::json;

/// Size of the pieces of a large response. The next piece is written when the previous one was taken, which
/// shows whether the client still reads.
pub const PIECE: usize = 64 * 1024;

/// A response in preparation, with the memory reserved for it.
pub struct PendingResponse {
    budget: Data<ResponseBudget>,
    /// About how long it is.
    length: usize,
    reservation: Option<Reservation>,
    /// Whether the request has changed nothing, so that the client can repeat it.
    is_safe: bool,
}

/// A response body in pieces.
struct Pieces {
    rest: Bytes,
    _reservation: Option<Reservation>,
}

/// A response from bytes that are in memory anyway.
pub fn pieces(mut answer: HttpResponseBuilder, bytes: Bytes) -> HttpResponse {
    answer.body(Pieces {
        rest: bytes,
        _reservation: None,
    })
}

impl PendingResponse {
    /// For a response with one item.
    pub fn of(request: &HttpRequest) -> Result<Self, Problem> {
        let budget = request.app_data::<Data<ResponseBudget>>().cloned();
        Ok(Self {
            budget: budget.ok_or_else(|| Problem::internal("routes without a response budget"))?,
            length: ITEM_BYTES,
            reservation: None,
            is_safe: request.method().is_safe(),
        })
    }

    /// For a response to a request that has changed nothing although its method might have, such as a dry run: it is
    /// refused like a read while the budget is exhausted.
    pub fn of_unchanged(request: &HttpRequest) -> Result<Self, Problem> {
        Ok(Self {
            is_safe: true,
            ..Self::of(request)?
        })
    }

    /// For a page of at most `items_max` items. Call it before building the page, so that none is built while
    /// the budget is exhausted.
    ///
    /// # Errors
    /// 503: other responses hold the budget.
    pub fn of_page(request: &HttpRequest, items_max: u32) -> Result<Self, Problem> {
        let mut pending = Self::of(request)?;
        let bytes = pending.budget.estimate_page(items_max);
        pending.length = bytes.min(SMALL);
        if bytes > SMALL {
            pending.reservation = Some(reserve(&pending.budget, bytes)?);
        }
        Ok(pending)
    }

    /// The response with the page.
    pub fn page(self, page: &impl Serialize) -> Result<HttpResponse, Problem> {
        self.item(HttpResponse::Ok(), page)
    }

    /// The response with one item.
    pub fn item(
        self,
        answer: HttpResponseBuilder,
        item: &impl Serialize,
    ) -> Result<HttpResponse, Problem> {
        let body = json::to_vec(item, self.length);
        let body = body.map_err(|error| Problem::internal(error.to_string()))?;
        self.bytes(answer, body)
    }

    /// The response with a body of JSON that is written already.
    pub fn bytes(
        mut self,
        mut answer: HttpResponseBuilder,
        body: Vec<u8>,
    ) -> Result<HttpResponse, Problem> {
        // Spelled as in the older service. Other headers are added to it later.
        answer.insert_header((header::VARY, "Authorization"));
        answer.content_type(ContentType::json());
        if body.len() <= SMALL {
            return Ok(answer.body(body));
        }
        let reservation = self.reservation.take();
        let mut reservation = reservation.unwrap_or_else(|| self.budget.reserve_nothing());
        if self.is_safe {
            // The page may exceed the estimate, and was built in vain then.
            resize(&mut reservation, body.len())?;
        } else {
            // The change is made, so the client must receive the response.
            reservation.insist(body.len());
        }
        Ok(answer.body(Pieces {
            rest: body.into(),
            _reservation: Some(reservation),
        }))
    }
}

impl MessageBody for Pieces {
    type Error = Infallible;

    fn size(&self) -> BodySize {
        BodySize::Sized(self.rest.len().try_into().unwrap_or(u64::MAX))
    }

    fn poll_next(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        let rest = &mut self.get_mut().rest;
        if rest.is_empty() {
            return Poll::Ready(None);
        }
        let piece = rest.split_to(rest.len().min(PIECE));
        Poll::Ready(Some(Ok(piece)))
    }
}

#[cfg(test)]
mod tests {
    use actix_web::ResponseError as _;
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn only_an_answer_to_a_change_exceeds_the_budget() {
        let budget = ResponseBudget::new(SMALL);
        let _others = budget.reserve(1);
        let request = TestRequest::post()
            .app_data(Data::new(budget))
            .to_http_request();
        let large = || vec![b' '; SMALL + 1];
        let unchanged = PendingResponse::of_unchanged(&request).unwrap();
        let refused = unchanged.bytes(HttpResponse::Ok(), large());
        assert_eq!(refused.unwrap_err().status_code(), 503);
        let changed = PendingResponse::of(&request).unwrap();
        assert!(changed.bytes(HttpResponse::Ok(), large()).is_ok());
    }
}
