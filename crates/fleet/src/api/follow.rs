//! `?watch=true`: what changes, as server-sent events, for as long as the client likes.
//!
//! What is told next is asked for only when the client has taken what was told before, and is what things are then:
//! a slow client is told less, and costs no more memory than comes with its place. The stream ends when the service does,
//! and when it cannot be gone on with; clients come back with the id of the last event.

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use actix_web::http::header::HeaderName;
use actix_web::http::{StatusCode, Version};
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};
use futures_util::stream;
use serde::Serialize;
use tokio::time::{Instant, sleep_until};

use super::Fault;
use crate::{Error, EtcdFollow, Followed, Item, Told};
use hyperfleet_fleet_model::wire::{self, EVENT_STREAM, HEARTBEAT, Query, UnitGone};
use hyperfleet_server_kit::causes::chain;
use hyperfleet_server_kit::http::{Admission, Connection, Gate, PIECE, WATCHER_BYTES};

/// How long an endless response lasts. Then the client comes back and authenticates again, so an expired or revoked token
/// is good for at most this much longer.
pub(super) const TIME_MAX: Duration = Duration::from_mins(30);
const LAST_EVENT_ID: &str = "last-event-id";

/// The revision after which a client wants to be told: that of the last event it has, or the one it names. Clients
/// that come back send both.
///
/// # Errors
/// 400 if it is none.
fn after(request: &HttpRequest, query: &Query) -> Result<Option<i64>, Fault> {
    let of_query = query.revision()?;
    let of_header = last_event_id(request, Query::parse_revision)?;
    Ok(of_header.or(of_query))
}

/// The id of the last event that a client has; none without the header.
///
/// # Errors
/// 400 if `parse` does not accept it, or if there are several.
pub(super) fn last_event_id<T>(
    request: &HttpRequest,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, Fault> {
    let mut given = request.headers().get_all(LAST_EVENT_ID);
    let (first, second) = (given.next(), given.next());
    let Some(first) = first.filter(|value| !value.is_empty() || second.is_some()) else {
        return Ok(None);
    };
    let id = first.to_str().ok().filter(|_| second.is_none());
    let id = id.and_then(parse);
    let fault = || bad("invalid value of Last-Event-ID header");
    id.map(Some).ok_or_else(fault)
}

/// Checks that a request can be answered by what has no end, and asks for that alone.
///
/// # Errors
/// 400.
pub(super) fn check(request: &HttpRequest, query: &Query) -> Result<(), Fault> {
    if request.version() < Version::HTTP_11 {
        // It knows no chunks (RFC 9112 §6.1).
        return Err(bad("watching needs HTTP/1.1"));
    }
    match query.page_token()? {
        None => Ok(()),
        Some(_) => Err(bad("watch and nextPageToken cannot be used together")),
    }
}

/// Refuses to watch what can only be looked at.
///
/// # Errors
/// 400.
pub(super) fn refuse(query: &Query) -> Result<(), Fault> {
    if query.is_watch()? {
        return Err(bad("this resource cannot be watched"));
    }
    Ok(())
}

pub(super) fn bad(message: &str) -> Fault {
    Fault::new(StatusCode::BAD_REQUEST, message)
}

/// The answer that tells what follows, if the request can be answered by one and there is room. `follow` begins to
/// follow after a revision.
///
/// # Errors
/// 400 for what asks for no watch that there can be, 503 if too many watch.
pub(super) async fn answer<T: Shown>(
    request: &HttpRequest,
    query: &Query,
    admission: &Admission,
    follow: impl AsyncFnOnce(Option<i64>) -> Result<EtcdFollow<T>, Error>,
) -> Result<HttpResponse, Fault> {
    check(request, query)?;
    let after = after(request, query)?;
    let place = admission.watch(WATCHER_BYTES);
    let place = place.ok_or_else(Fault::too_many_watch)?;
    let mut follow = follow(after).await?;
    let mut answer = endless(request, admission);
    let ask = async move || follow.next().await;
    let stream = Stream::new(ask, admission.gate().clone());
    let chunks = stream::unfold((stream, place), async |(mut stream, place)| {
        let chunk = stream.next().await?;
        Some((Ok::<_, actix_web::Error>(chunk), (stream, place)))
    });
    answer.content_type(EVENT_STREAM);
    Ok(answer.streaming(chunks))
}

/// The head of a response that goes on until the service stops. Proxies pass it on piece by piece.
pub(super) fn endless(request: &HttpRequest, admission: &Admission) -> HttpResponseBuilder {
    if let Some(connection) = request.conn_data::<Rc<Connection>>() {
        connection.end_with(admission.gate());
    }
    let mut response = HttpResponse::Ok();
    // Without it nginx buffers the response.
    response.insert_header((HeaderName::from_static("x-accel-buffering"), "no"));
    response
}

/// What can be watched.
pub(super) trait Shown: Followed + Serialize {
    /// What is said of one that is gone.
    fn gone(key: &Self::Key) -> UnitGone<'_>;
}

/// One client that watches.
struct Stream<T: Shown, A> {
    /// Asks what is to be told next. May be given up half-way.
    ask: A,
    /// What was told and is not written yet.
    rest: Rest<T>,
    gate: Gate,
    beat_at: Instant,
    end_at: Instant,
    is_begun: bool,
}

impl<T: Shown, A: AsyncFnMut() -> Result<Told<T>, Error>> Stream<T, A> {
    fn new(ask: A, gate: Gate) -> Self {
        let now = Instant::now();
        Self {
            ask,
            rest: Rest::of(Told::Changed {
                revision: None,
                items: Vec::new(),
            }),
            gate,
            beat_at: now + HEARTBEAT,
            end_at: now + TIME_MAX,
            is_begun: false,
        }
    }

    /// What is to be written next; none at the end.
    async fn next(&mut self) -> Option<Bytes> {
        if !std::mem::replace(&mut self.is_begun, true) {
            return Some(Bytes::from_static(wire::beginning().as_bytes()));
        }
        if self.rest.is_empty() {
            tokio::select! {
                biased;
                () = self.gate.stopped() => return None,
                () = sleep_until(self.end_at) => return None,
                told = (self.ask)() => self.take(told)?,
                () = sleep_until(self.beat_at) => {
                    self.beat_at = Instant::now() + HEARTBEAT;
                    return Some(Bytes::from_static(wire::heartbeat().as_bytes()));
                }
            }
        }
        self.beat_at = Instant::now() + HEARTBEAT;
        match self.rest.piece() {
            Ok(piece) => Some(piece.into()),
            Err(error) => {
                tracing::error!(error = %error, "an event that cannot be written");
                None
            }
        }
    }

    /// Takes what is told.
    fn take(&mut self, told: Result<Told<T>, Error>) -> Option<()> {
        let told = told.inspect_err(|error| {
            tracing::info!(
                error = chain(error),
                "somebody who watches has to begin anew"
            );
        });
        self.rest = Rest::of(told.ok()?);
        Some(())
    }
}

/// What was told and is not written yet.
struct Rest<T: Shown> {
    items: VecDeque<Item<T>>,
    /// What has been told with the last of it.
    revision: Option<i64>,
    /// Whether it ends the list of what there is.
    ends_list: bool,
}

impl<T: Shown> Rest<T> {
    fn of(told: Told<T>) -> Self {
        let (items, revision, is_list) = match told {
            Told::Listed { revision, items } => {
                let items = items.into_iter().map(Item::Is);
                (items.collect(), revision, true)
            }
            Told::Changed { revision, items } => (items, revision, false),
        };
        Self {
            ends_list: is_list && revision.is_some(),
            revision,
            items: items.into(),
        }
    }

    fn is_empty(&self) -> bool {
        self.items.is_empty() && !self.ends_list
    }

    /// The next events, of which there are some: about as much as is handed on at once.
    fn piece(&mut self) -> serde_json::Result<String> {
        let mut piece = String::new();
        while piece.len() < PIECE {
            let Some(item) = self.items.pop_front() else {
                break;
            };
            let is_last = self.items.is_empty();
            let id = self.revision.filter(|_| is_last && !self.ends_list);
            piece += &match item {
                Item::Is(it) => wire::put(&it, id)?,
                Item::Gone(key) => wire::delete(&T::gone(&key), id)?,
            };
        }
        if self.items.is_empty() && std::mem::take(&mut self.ends_list) {
            piece += &wire::listed(self.revision.unwrap_or_default());
        }
        Ok(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UnitView;
    use hyperfleet_fleet_model::unit::{DesiredState, UnitOption};

    fn unit(name: &str, bytes: usize) -> UnitView {
        UnitView {
            name: name.to_owned(),
            options: vec![UnitOption::new("S", "A", &"x".repeat(bytes)).into()],
            desired: DesiredState::Inactive,
            current: None,
            machine: None,
            hash: String::new(),
            generation: 1,
        }
    }

    fn changed(revision: Option<i64>, items: Vec<Item<UnitView>>) -> Told<UnitView> {
        Told::Changed { revision, items }
    }

    /// A stream that is told these, and nothing more.
    fn stream(
        told: Vec<Told<UnitView>>,
        gate: &Gate,
    ) -> Stream<UnitView, impl AsyncFnMut() -> Result<Told<UnitView>, Error>> {
        let mut told = VecDeque::from(told);
        let ask = async move || match told.pop_front() {
            Some(told) => Ok(told),
            None => std::future::pending().await,
        };
        Stream::new(ask, gate.clone())
    }

    async fn text(
        stream: &mut Stream<UnitView, impl AsyncFnMut() -> Result<Told<UnitView>, Error>>,
    ) -> Option<String> {
        let bytes = stream.next().await?;
        Some(String::from_utf8(bytes.to_vec()).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn the_id_stands_with_the_last_of_those_that_belong_together() {
        let listed = |revision, name| Told::Listed {
            revision,
            items: vec![unit(name, 1)],
        };
        let told = vec![
            listed(None, "a.service"),
            listed(Some(7), "b.service"),
            changed(None, vec![Item::Is(unit("c.service", 1))]),
            changed(Some(9), vec![Item::Gone("a.service".to_owned())]),
        ];
        let gate = Gate::serving();
        let mut stream = stream(told, &gate);
        assert_eq!(text(&mut stream).await.unwrap(), "retry: 1000\n\n");
        let first = text(&mut stream).await.unwrap();
        assert!(
            !first.contains("id:") && first.contains("a.service"),
            "{first}"
        );
        let second = text(&mut stream).await.unwrap();
        assert!(
            second.ends_with("event: listed\ndata: {\"revision\":7}\nid: 7\n\n"),
            "{second}"
        );
        assert_eq!(second.matches("id:").count(), 1);
        let third = text(&mut stream).await.unwrap();
        assert!(
            !third.contains("id:") && third.contains("c.service"),
            "{third}"
        );
        let fourth = text(&mut stream).await.unwrap();
        let end = "event: delete\ndata: {\"name\":\"a.service\"}\nid: 9\n\n";
        assert_eq!(fourth, end);
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_broken_and_ends() {
        let gate = Gate::serving();
        let mut stream = stream(vec![], &gate);
        let since = Instant::now();
        text(&mut stream).await.unwrap();
        let mut beats = 0;
        while let Some(beat) = text(&mut stream).await {
            assert_eq!(beat, ": alive\n\n");
            beats += 1;
        }
        // The last would come with the end.
        assert_eq!(beats, TIME_MAX.as_secs() / HEARTBEAT.as_secs() - 1);
        assert_eq!(since.elapsed().as_secs(), TIME_MAX.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn it_ends_with_the_service_whenever_that_is_told() {
        let gate = Gate::serving();
        let mut waits = stream(vec![], &gate);
        let mut late = stream(vec![], &gate);
        text(&mut waits).await.unwrap();
        text(&mut late).await.unwrap();
        let stop = async {
            tokio::task::yield_now().await;
            gate.stop();
        };
        let (end, ()) = tokio::join!(text(&mut waits), stop);
        assert_eq!((end, text(&mut late).await), (None, None));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_told_at_once_is_written_piece_by_piece() {
        let items = (0..10).map(|n| Item::Is(unit(&format!("u{n}.service"), PIECE / 2)));
        let gate = Gate::serving();
        let mut stream = stream(vec![changed(Some(9), items.collect())], &gate);
        text(&mut stream).await.unwrap();
        for _ in 0..5 {
            let piece = text(&mut stream).await.unwrap();
            assert!((PIECE..2 * PIECE).contains(&piece.len()), "{}", piece.len());
        }
        assert_eq!(text(&mut stream).await.unwrap(), ": alive\n\n");
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_be_gone_on_with_ends() {
        let gate = Gate::serving();
        let ask = async || Err::<Told<UnitView>, _>(Error::Stale);
        let mut stream = Stream::new(ask, gate);
        text(&mut stream).await.unwrap();
        assert_eq!(text(&mut stream).await, None);
    }
}
