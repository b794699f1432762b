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
use crate::fleet::{EtcdFollow, Followed, Item, StateKey, StateView, Told, UnitView};
use crate::http::Admission;
use crate::http::answer::PIECE;
use crate::http::capacity::Slot;
use crate::http::gate::Gate;
use crate::http::memory::{Memory, SMALL, Share};
use crate::wire::fleet::{self as wire, EVENT_STREAM, InvalidParameter, Query, UnitGone};

/// How often a client is told something even if nothing happens: often enough for proxies, which end what is silent
/// for a minute.
const HEARTBEAT: Duration = Duration::from_secs(15);
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
    follow: EtcdFollow<T>,
    place: Slot,
) -> HttpResponse {
    let stream = Stream {
        follow,
        rest: Rest::nothing(),
        share: None,
        memory: admission.memory().clone(),
        gate: admission.gate().clone(),
        beat_at: Instant::now() + HEARTBEAT,
        is_begun: false,
        _place: place,
    };
    let chunks = stream::unfold(stream, async |mut stream| {
        let chunk = stream.next().await?;
        Some((Ok::<_, actix_web::Error>(chunk), stream))
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
struct Stream<T: Shown> {
    follow: EtcdFollow<T>,
    /// What was told and is not written yet.
    rest: Rest<T>,
    /// The memory that it takes.
    share: Option<Share>,
    memory: Memory,
    gate: Gate,
    beat_at: Instant,
    is_begun: bool,
    _place: Slot,
}

impl<T: Shown> Stream<T> {
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
                told = self.follow.next() => self.take(told)?,
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
    fn take(&mut self, told: Result<Told<T>, crate::fleet::Error>) -> Option<()> {
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
