//! `?watch=true`: what changes, as server-sent events, for as long as the client likes.
//!
//! What is told next is asked for only when the client has taken what was told before, and is what things are then:
//! a slow client is told less, and costs no more memory. The stream ends when the service does, and when it cannot
//! be gone on with; clients come back with the id of the last event.

use std::collections::VecDeque;
use std::time::Duration;

use actix_web::http::header::HeaderName;
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse};
use futures_util::stream;
use tokio::time::{Instant, sleep_until};

use super::body::only_header;
use super::{Fault, states, units};
use crate::causes::chain;
use crate::fleet::{self, EtcdFollow, Followed, Item, StateKey, StateView, Told, UnitView};
use crate::http::Admission;
use crate::http::answer::PIECE;
use crate::http::capacity::Slot;
use crate::http::gate::Gate;
use crate::http::memory::{Memory, SMALL, Share};
use crate::wire::fleet::{self as wire, EVENT_STREAM, InvalidParameter, Query, UnitGone};

/// How often a client is told something even if nothing happens: often enough for proxies, which end what is silent
/// for a minute.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How long a client is told what changes before it has to come back, and to prove anew that it may: a token that
/// has expired, or was taken back, is good for so much longer.
const TIME_MAX: Duration = Duration::from_mins(30);
const LAST_EVENT_ID: &str = "last-event-id";

/// The revision after which a client wants to be told: that of the last event it has, or the one it names. Clients
/// that come back send both.
///
/// # Errors
/// 400 if it is none.
pub(super) fn after(request: &HttpRequest, query: &Query) -> Result<Option<i64>, Fault> {
    let given = only_header(request.headers(), LAST_EVENT_ID);
    let Some(text) = given.filter(|text| !text.is_empty()) else {
        return Ok(query.revision()?);
    };
    let revision = Query::parse_revision(text);
    Ok(Some(revision.ok_or(InvalidParameter("revision"))?))
}

/// The answer that tells what follows.
pub(super) fn answer<T: Shown>(
    admission: &Admission,
    mut follow: EtcdFollow<T>,
    place: Slot,
) -> HttpResponse {
    let ask = async move || follow.next().await;
    let stream = Stream::new(ask, admission.memory().clone(), admission.gate().clone());
    let chunks = stream::unfold((stream, place), async |(mut stream, place)| {
        let chunk = stream.next().await?;
        Some((Ok::<_, actix_web::Error>(chunk), (stream, place)))
    });
    let mut answer = HttpResponse::Ok();
    answer.content_type(EVENT_STREAM);
    // nginx would gather what is to be told at once.
    answer.insert_header((HeaderName::from_static("x-accel-buffering"), "no"));
    answer.streaming(chunks)
}

/// What can be watched.
pub(super) trait Shown: Followed {
    /// It is so.
    fn put(self, id: Option<i64>) -> serde_json::Result<String>;
    /// It is gone.
    fn gone(key: &Self::Key, id: Option<i64>) -> serde_json::Result<String>;
    /// How much of memory it takes, about, in bytes.
    fn bytes(&self) -> usize;
}

impl Shown for UnitView {
    fn put(self, id: Option<i64>) -> serde_json::Result<String> {
        wire::put(&units::view(self), id)
    }

    fn gone(name: &String, id: Option<i64>) -> serde_json::Result<String> {
        let machine_id = None;
        wire::delete(&UnitGone { machine_id, name }, id)
    }

    fn bytes(&self) -> usize {
        let options = self.options.iter();
        let text = options.map(|o| o.section.len() + o.name.len() + o.value.len());
        let each = size_of_val(&*self.options);
        size_of::<Self>() + each + text.sum::<usize>()
    }
}

impl Shown for StateView {
    fn put(self, id: Option<i64>) -> serde_json::Result<String> {
        wire::put(&states::view(self), id)
    }

    fn gone(key: &StateKey, id: Option<i64>) -> serde_json::Result<String> {
        let gone = UnitGone {
            machine_id: Some(&key.machine),
            name: &key.unit,
        };
        wire::delete(&gone, id)
    }

    fn bytes(&self) -> usize {
        let words = [&self.unit, &self.machine, &self.hash, &self.load];
        let more = [&self.active, &self.sub];
        let text = words.iter().chain(&more).map(|text| text.len());
        size_of::<Self>() + text.sum::<usize>()
    }
}

/// One client that watches.
struct Stream<T: Shown, A> {
    /// Asks what is to be told next. May be given up half-way.
    ask: A,
    /// What was told and is not written yet.
    rest: Rest<T>,
    /// The memory that it takes.
    share: Option<Share>,
    memory: Memory,
    gate: Gate,
    beat_at: Instant,
    end_at: Instant,
    is_begun: bool,
}

impl<T: Shown, A: AsyncFnMut() -> Result<Told<T>, fleet::Error>> Stream<T, A> {
    fn new(ask: A, memory: Memory, gate: Gate) -> Self {
        let now = Instant::now();
        Self {
            ask,
            rest: Rest::nothing(),
            share: None,
            memory,
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
            self.share = None;
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

    /// Takes what is told, if there is memory for it.
    fn take(&mut self, told: Result<Told<T>, fleet::Error>) -> Option<()> {
        let told = match told {
            Ok(told) => told,
            Err(error) => {
                tracing::info!(
                    error = chain(&error),
                    "somebody who watches has to begin anew"
                );
                return None;
            }
        };
        self.rest = Rest::of(told);
        let bytes = self.rest.bytes();
        if bytes > SMALL {
            // Others have it. Whoever comes back later goes on where this ended.
            self.share = Some(self.memory.hold(bytes)?);
        }
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
    fn nothing() -> Self {
        Self {
            items: VecDeque::new(),
            revision: None,
            ends_list: false,
        }
    }

    fn of(told: Told<T>) -> Self {
        let (items, revision, is_list) = match told {
            Told::Listed { revision, items } => {
                let items = items.into_iter().map(Item::Is);
                (items.collect(), revision, true)
            }
            Told::Changed { revision, items } => (items, Some(revision), false),
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

    fn bytes(&self) -> usize {
        let sizes = self.items.iter().map(|item| match item {
            Item::Is(it) => it.bytes(),
            Item::Gone(_) => size_of::<T>(),
        });
        sizes.sum()
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
                Item::Is(it) => it.put(id)?,
                Item::Gone(key) => T::gone(&key, id)?,
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
    use crate::domain::unit::{DesiredState, UnitOption};

    fn unit(name: &str, bytes: usize) -> UnitView {
        UnitView {
            name: name.to_owned(),
            options: vec![UnitOption::new("S", "A", &"x".repeat(bytes))],
            desired: DesiredState::Inactive,
            current: None,
            machine: None,
            hash: String::new(),
            generation: 1,
        }
    }

    fn changed(revision: i64, items: Vec<Item<UnitView>>) -> Told<UnitView> {
        Told::Changed { revision, items }
    }

    /// A stream that is told these, and nothing more.
    fn stream(
        told: Vec<Told<UnitView>>,
        memory: Memory,
        gate: &Gate,
    ) -> Stream<UnitView, impl AsyncFnMut() -> Result<Told<UnitView>, fleet::Error>> {
        let mut told = VecDeque::from(told);
        let ask = async move || match told.pop_front() {
            Some(told) => Ok(told),
            None => std::future::pending().await,
        };
        Stream::new(ask, memory, gate.clone())
    }

    async fn text(
        stream: &mut Stream<UnitView, impl AsyncFnMut() -> Result<Told<UnitView>, fleet::Error>>,
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
            changed(
                9,
                vec![
                    Item::Is(unit("c.service", 1)),
                    Item::Gone("a.service".to_owned()),
                ],
            ),
        ];
        let gate = Gate::serving();
        let mut stream = stream(told, Memory::new(1), &gate);
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
        let end = "event: delete\ndata: {\"name\":\"a.service\"}\nid: 9\n\n";
        assert!(
            third.ends_with(end) && third.matches("id:").count() == 1,
            "{third}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_broken_and_ends() {
        let gate = Gate::serving();
        let mut stream = stream(vec![], Memory::new(1), &gate);
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
        let mut waits = stream(vec![], Memory::new(1), &gate);
        let mut late = stream(vec![], Memory::new(1), &gate);
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
    async fn what_is_told_at_once_is_written_piece_by_piece_and_holds_memory_until_then() {
        let items = (0..10).map(|n| Item::Is(unit(&format!("u{n}.service"), PIECE / 2)));
        let memory = Memory::new(10 * PIECE);
        let gate = Gate::serving();
        let told = || vec![changed(9, items.clone().collect())];
        let mut first = stream(told(), memory.clone(), &gate);
        let mut second = stream(told(), memory.clone(), &gate);
        text(&mut first).await.unwrap();
        text(&mut second).await.unwrap();
        for _ in 0..5 {
            let piece = text(&mut first).await.unwrap();
            assert!((PIECE..2 * PIECE).contains(&piece.len()), "{}", piece.len());
        }
        // There is no room for as much again before it is written and something else is waited for.
        assert_eq!(text(&mut second).await, None);
        assert_eq!(text(&mut first).await.unwrap(), ": alive\n\n");
        let mut third = stream(told(), memory, &gate);
        text(&mut third).await.unwrap();
        assert!(text(&mut third).await.unwrap().len() >= PIECE);
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_be_gone_on_with_ends() {
        let gate = Gate::serving();
        let ask = async || Err::<Told<UnitView>, _>(fleet::Error::Stale);
        let mut stream = Stream::new(ask, Memory::new(1), gate);
        text(&mut stream).await.unwrap();
        assert_eq!(text(&mut stream).await, None);
    }
}
