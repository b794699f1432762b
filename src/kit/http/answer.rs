//! How answers are written: as JSON, and the large ones piece by piece.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use actix_web::body::{BodySize, MessageBody};
use actix_web::http::header::{self, ContentType};
use actix_web::web::{Bytes, Data};
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};
use serde::Serialize;

use super::memory::{Memory, SMALL, Share, Sort};
use super::problem::Problem;
use super::refusals::{hold, resize};
use super::telemetry::RoutePath;

/// Large answers are handed on in pieces of this size, the next when one is taken: that is how one
/// sees whether a client goes on reading.
pub const PIECE: usize = 64 * 1024;

/// Room for an answer, from before it is made until its client has taken it.
pub struct Room {
    memory: Data<Memory>,
    share: Option<Share>,
    /// What it is room for a page of, and for how many items.
    page: Option<(Sort, u32)>,
    /// Whether the request has changed nothing, so that it may be asked again.
    is_safe: bool,
}

/// An answer, handed on in pieces.
struct Pieces {
    rest: Bytes,
    _share: Option<Share>,
}

/// An answer with bytes that are kept anyway.
pub fn pieces(mut answer: HttpResponseBuilder, bytes: Bytes) -> HttpResponse {
    answer.body(Pieces {
        rest: bytes,
        _share: None,
    })
}

impl Room {
    /// For an answer of one item.
    pub fn of(request: &HttpRequest) -> Result<Self, Problem> {
        let memory = request.app_data::<Data<Memory>>().cloned();
        Ok(Self {
            memory: memory.ok_or_else(|| Problem::internal("routes without memory"))?,
            share: None,
            page: None,
            is_safe: request.method().is_safe(),
        })
    }

    /// For a page of at most so many items, as large as items are of late. To be had before the
    /// page is made, so that none is made that there is no room for.
    ///
    /// # Errors
    ///
    /// 503: others hold it.
    pub fn of_page(request: &HttpRequest, items_max: u32) -> Result<Self, Problem> {
        let mut room = Self::of(request)?;
        let route = request.app_data::<RoutePath>();
        let sort = Sort::of(route.map_or("", RoutePath::label));
        let bytes = room.memory.of_page(sort, items_max);
        if bytes > SMALL {
            let share = hold(&room.memory, bytes);
            room.share = Some(share.inspect_err(|_| room.memory.doubt(sort))?);
        }
        room.page = Some((sort, items_max));
        Ok(room)
    }

    /// The answer with the page.
    pub fn page(self, page: &impl Serialize) -> Result<HttpResponse, Problem> {
        let body = encoded(page)?;
        if let Some((sort, items_max)) = self.page {
            self.memory.learn(sort, body.len(), items_max);
        }
        self.written(HttpResponse::Ok(), body)
    }

    /// The answer with one item.
    pub fn item(
        self,
        answer: HttpResponseBuilder,
        item: &impl Serialize,
    ) -> Result<HttpResponse, Problem> {
        self.written(answer, encoded(item)?)
    }

    fn written(
        mut self,
        mut answer: HttpResponseBuilder,
        body: Vec<u8>,
    ) -> Result<HttpResponse, Problem> {
        // As the older service spells it; what else it depends on is added on its way out.
        answer.insert_header((header::VARY, "Authorization"));
        answer.content_type(ContentType::json());
        if body.len() <= SMALL {
            return Ok(answer.body(body));
        }
        let share = self.share.take();
        let mut share = share.unwrap_or_else(|| self.memory.hold_nothing());
        if self.is_safe {
            // It may be larger than was thought, and was made in vain then; the next is known.
            resize(&mut share, body.len())?;
        } else {
            // It is done, so it must be told.
            share.insist(body.len());
        }
        Ok(answer.body(Pieces {
            rest: body.into(),
            _share: Some(share),
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

fn encoded(body: &impl Serialize) -> Result<Vec<u8>, Problem> {
    serde_json::to_vec(body).map_err(|error| Problem::internal(error.to_string()))
}
