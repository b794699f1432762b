//! `?watch=true`: changes as server-sent events.
//!
//! The next state is read only when the client has taken the previous one, so a slow client skips intermediate
//! states and costs no additional memory. The stream ends when the service stops or the history is lost;
//! clients reconnect with the id of the last event.

use std::collections::VecDeque;
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse};
use futures_util::stream;
use serde::Serialize;
use tokio::time::{Instant, sleep_until};

use super::Fault;
use crate::{Error, EtcdFollower, FollowUpdate, Followed, Item};
use hyperfleet_fleet_model::wire::{self, EVENT_STREAM, HEARTBEAT, Query, UnitGone};
use hyperfleet_server_kit::causes::chain;
use hyperfleet_server_kit::http::{self, Admission, Gate, PIECE, WATCHER_BYTES};

/// Longest duration of a stream. The client then reconnects and authenticates again, which bounds the use of an
/// expired or revoked token.
pub(super) const TIME_MAX: Duration = Duration::from_mins(30);

/// The revision to resume after: that of `Last-Event-ID`, or of the parameter. Clients that reconnect send
/// both.
///
/// # Errors
/// 400 if it is not a revision.
fn after(request: &HttpRequest, query: &Query) -> Result<Option<i64>, Fault> {
    let of_query = query.revision()?;
    let of_header = last_event_id(request, Query::parse_revision)?;
    Ok(of_header.or(of_query))
}

/// The `Last-Event-ID` of a request, if it has one.
///
/// # Errors
/// 400 if `parse` does not accept it, or if there are several.
pub(super) fn last_event_id<T>(
    request: &HttpRequest,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, Fault> {
    http::last_event_id(request, parse).map_err(|fault| bad(&fault.to_string()))
}

/// Checks that the request can be answered by an endless response, and asks for nothing else.
///
/// # Errors
/// 400.
pub(super) fn check(request: &HttpRequest, query: &Query) -> Result<(), Fault> {
    if !http::is_chunked(request) {
        return Err(bad("watching needs HTTP/1.1"));
    }
    match query.page_token()? {
        None => Ok(()),
        Some(_) => Err(bad("watch and nextPageToken cannot be used together")),
    }
}

/// Refuses `watch` for resources that cannot be watched.
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

/// Answers a watch request. `follow` starts to follow after a revision.
///
/// # Errors
/// 400 for a request that cannot be a watch, 503 if too many clients watch, or the service is stopping.
pub(super) async fn answer<T: Watchable>(
    request: &HttpRequest,
    query: &Query,
    admission: &Admission,
    follow: impl AsyncFnOnce(Option<i64>) -> Result<EtcdFollower<T>, Error>,
) -> Result<HttpResponse, Fault> {
    check(request, query)?;
    let after = after(request, query)?;
    let slot = admission.admit_watcher(WATCHER_BYTES);
    let slot = slot.map_err(Fault::no_watcher)?;
    let mut follow = follow(after).await?;
    let mut answer = http::endless(request, admission);
    let ask = async move || follow.next().await;
    let stream = Stream::new(ask, admission.gate().clone());
    let chunks = stream::unfold((stream, slot), async |(mut stream, slot)| {
        let chunk = stream.next().await?;
        Some((Ok::<_, actix_web::Error>(chunk), (stream, slot)))
    });
    answer.content_type(EVENT_STREAM);
    Ok(answer.streaming(chunks))
}

/// A resource that can be watched.
pub(super) trait Watchable: Followed + Serialize {
    /// The event of a deleted resource.
    fn deletion_event(key: &Self::Key) -> UnitGone<'_>;
}

/// One watching client.
struct Stream<T: Watchable, A> {
    /// Asks for the next update. Cancel-safe.
    ask: A,
    /// Events that are not written yet.
    unwritten: Unwritten<T>,
    gate: Gate,
    beat_at: Instant,
    end_at: Instant,
    is_begun: bool,
}

impl<T: Watchable, A: AsyncFnMut() -> Result<FollowUpdate<T>, Error>> Stream<T, A> {
    fn new(ask: A, gate: Gate) -> Self {
        let now = Instant::now();
        Self {
            ask,
            unwritten: Unwritten::of(FollowUpdate::Changed {
                revision: None,
                items: Vec::new(),
            }),
            gate,
            beat_at: now + HEARTBEAT,
            end_at: now + TIME_MAX,
            is_begun: false,
        }
    }

    /// The next bytes to write; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        if !std::mem::replace(&mut self.is_begun, true) {
            return Some(Bytes::from_static(wire::beginning().as_bytes()));
        }
        if self.unwritten.is_empty() {
            tokio::select! {
                biased;
                () = self.gate.stopped() => return None,
                () = sleep_until(self.end_at) => return None,
                update = (self.ask)() => self.accept(update)?,
                () = sleep_until(self.beat_at) => {
                    self.beat_at = Instant::now() + HEARTBEAT;
                    return Some(Bytes::from_static(wire::heartbeat().as_bytes()));
                }
            }
        }
        self.beat_at = Instant::now() + HEARTBEAT;
        match self.unwritten.piece() {
            Ok(piece) => Some(piece.into()),
            Err(error) => {
                tracing::error!(error = %error, "event cannot be serialized");
                None
            }
        }
    }

    fn accept(&mut self, update: Result<FollowUpdate<T>, Error>) -> Option<()> {
        let update = update.inspect_err(|error| {
            tracing::info!(error = chain(error), "watch closed: client must restart");
        });
        self.unwritten = Unwritten::of(update.ok()?);
        Some(())
    }
}

/// Events that are not written yet.
struct Unwritten<T: Watchable> {
    items: VecDeque<Item<T>>,
    /// Revision after the last of them.
    revision: Option<i64>,
    /// Whether they complete the initial list.
    ends_list: bool,
}

impl<T: Watchable> Unwritten<T> {
    fn of(update: FollowUpdate<T>) -> Self {
        let (items, revision, is_list) = match update {
            FollowUpdate::Listed { revision, items } => {
                let items = items.into_iter().map(Item::Is);
                (items.collect(), revision, true)
            }
            FollowUpdate::Changed { revision, items } => (items, revision, false),
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

    /// The next events, about as much as is written at once. There is at least one.
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
                Item::Gone(key) => wire::delete(&T::deletion_event(&key), id)?,
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
            options: vec![UnitOption::new("S", "A", &"x".repeat(bytes))],
            desired: DesiredState::Inactive,
            current: None,
            machine: None,
        }
    }

    fn changed(revision: Option<i64>, items: Vec<Item<UnitView>>) -> FollowUpdate<UnitView> {
        FollowUpdate::Changed { revision, items }
    }

    /// A stream of exactly these updates.
    fn stream(
        update: Vec<FollowUpdate<UnitView>>,
        gate: &Gate,
    ) -> Stream<UnitView, impl AsyncFnMut() -> Result<FollowUpdate<UnitView>, Error>> {
        let mut update = VecDeque::from(update);
        let ask = async move || match update.pop_front() {
            Some(update) => Ok(update),
            None => std::future::pending().await,
        };
        Stream::new(ask, gate.clone())
    }

    async fn text(
        stream: &mut Stream<UnitView, impl AsyncFnMut() -> Result<FollowUpdate<UnitView>, Error>>,
    ) -> Option<String> {
        let bytes = stream.next().await?;
        Some(String::from_utf8(bytes.to_vec()).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn the_id_stands_with_the_last_of_those_that_belong_together() {
        let listed = |revision, name| FollowUpdate::Listed {
            revision,
            items: vec![unit(name, 1)],
        };
        let update = vec![
            listed(None, "a.service"),
            listed(Some(7), "b.service"),
            changed(None, vec![Item::Is(unit("c.service", 1))]),
            changed(Some(9), vec![Item::Gone("a.service".to_owned())]),
        ];
        let gate = Gate::serving();
        let mut stream = stream(update, &gate);
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
        // The last heartbeat would coincide with the end.
        assert_eq!(beats, TIME_MAX.as_secs() / HEARTBEAT.as_secs() - 1);
        assert_eq!(since.elapsed().as_secs(), TIME_MAX.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn it_ends_with_the_service_at_any_moment() {
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
    async fn a_large_update_is_written_piece_by_piece() {
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
        let ask = async || Err::<FollowUpdate<UnitView>, _>(Error::Stale);
        let mut stream = Stream::new(ask, gate);
        text(&mut stream).await.unwrap();
        assert_eq!(text(&mut stream).await, None);
    }
}
