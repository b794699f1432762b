//! Writes responses: as JSON, and large ones in pieces.

use actix_web::http::header::{self, ContentType};
use actix_web::web::{Bytes, Data};
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};
use serde::Serialize;

use super::memory::{ITEM_BYTES, Reservation, ResponseBudget, SMALL};
use super::pieces::{PieceWriter, Pieces};
use super::problem::Problem;
use super::refusals::{reserve, resize};

/// A response in preparation, with the memory reserved for it.
pub struct PendingResponse {
    budget: Data<ResponseBudget>,
    /// About how long it is.
    length: usize,
    reservation: Option<Reservation>,
    /// Whether the request has changed nothing, so that the client can repeat it.
    is_safe: bool,
}

/// A response from bytes that are in memory anyway.
pub fn pieces(mut answer: HttpResponseBuilder, bytes: Bytes) -> HttpResponse {
    answer.body(Pieces::of(bytes))
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
        let mut body = PieceWriter::new(self.length);
        let written = serde_json::to_writer(&mut body, item);
        written.map_err(|error| Problem::internal(error.to_string()))?;
        self.pieces(answer, body.finish())
    }

    /// The response with a body of JSON that is written already.
    pub fn bytes(
        self,
        answer: HttpResponseBuilder,
        body: Vec<u8>,
    ) -> Result<HttpResponse, Problem> {
        self.pieces(answer, Pieces::of(body.into()))
    }

    fn pieces(
        mut self,
        mut answer: HttpResponseBuilder,
        mut body: Pieces,
    ) -> Result<HttpResponse, Problem> {
        // Spelled as in the older service. Other headers are added to it later.
        answer.insert_header((header::VARY, "Authorization"));
        answer.content_type(ContentType::json());
        let bytes = body.bytes();
        if bytes > SMALL {
            let reservation = self.reservation.take();
            let mut reservation = reservation.unwrap_or_else(|| self.budget.reserve_nothing());
            if self.is_safe {
                // The page may exceed the estimate, and is then discarded.
                resize(&mut reservation, bytes)?;
            } else {
                // The change is made, so the client must receive the response.
                reservation.insist(bytes);
            }
            body.reservation = Some(reservation);
        }
        Ok(answer.body(body))
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
