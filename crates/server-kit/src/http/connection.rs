//! One connection of a client: whether it has a request under way, and since when not; and whether
//! its client takes what it has asked for.

use std::cell::Cell;
use std::os::fd::OwnedFd;
use std::rc::{Rc, Weak};
use std::time::{Duration, Instant};

use actix_web::dev::Extensions;
use rustix::net::{Shutdown, shutdown};
use tokio::task::AbortHandle;

use super::answer::PIECE;
use super::gate::Gate;
use super::memory::ResponseBudget;

/// What is known of a connection, on the thread that serves it. Over when it is dropped.
pub struct Connection {
    /// Requests that are being answered.
    working: Cell<usize>,
    /// Answers that the client is to take.
    taking: Cell<usize>,
    /// Whether one of these has nothing to take yet: it is we who are waited for.
    is_waited_for: Cell<bool>,
    /// When what was last handed on of an answer is through at the latest.
    free_at: Cell<Instant>,
    /// Requests that have come over it.
    count: Cell<u32>,
    /// How long it may lie idle.
    idle_time: Duration,
    /// Whether it is looked after that its client takes an answer.
    is_hurried: Cell<bool>,
    /// What large answers are held in, if this listener has such.
    budget: Option<ResponseBudget>,
    /// The connection itself, to end it.
    socket: Option<OwnedFd>,
    /// What ends it when it lies idle.
    watch: Cell<Option<AbortHandle>>,
    /// What ends it with the service, while its latest answer is one without an end.
    farewell: Cell<Option<AbortHandle>>,
    /// Whatever is to be dropped with it.
    _guard: Box<dyn std::any::Any>,
}

/// A request of a connection until its answer is written.
pub(super) struct UnderWay {
    connection: Rc<Connection>,
    is_answered: Cell<bool>,
    is_begun: Cell<bool>,
}

/// As slow as the line of a client may be, in bytes a second (128 kbit/s).
pub(super) const BYTES_PER_SECOND_MIN: u32 = 16 * 1024;
/// Requests of one connection, before its client is told to use another. Answers without a body wait
/// in memory when a client sends requests and reads none of them, which actix does not limit.
const REQUESTS_MAX: u32 = 1000;
/// Who does not mind and sends more than this is cut off: actix goes on as long as there are any.
const REQUESTS_END: u32 = 2 * REQUESTS_MAX;
/// How often one looks whether large answers are taken.
const LOOK: Duration = Duration::from_secs(1);
/// How long a client is waited for while memory is short, once it has had the time for a piece.
const SHORT_TIME: Duration = Duration::from_secs(5);
/// How long the client of an answer without an end has to take the last of it, once the service is to end.
const LAST_TIME: Duration = Duration::from_secs(1);

impl Connection {
    /// Puts a new connection into its data, and ends it when it lies idle, sends the head of its
    /// next request, or leaves a piece of an answer untaken, for longer than `idle_time`: actix
    /// limits the time of the first head only. While `budget` is short, clients that leave large
    /// answers untaken have less time. Without a `socket` it cannot be ended. `guard` is dropped
    /// with it.
    pub fn open(
        data: &mut Extensions,
        socket: Option<OwnedFd>,
        idle_time: Duration,
        budget: Option<&ResponseBudget>,
        guard: impl std::any::Any,
    ) {
        let is_watched = socket.is_some();
        let connection = Rc::new(Self {
            working: Cell::new(0),
            taking: Cell::new(0),
            is_waited_for: Cell::new(false),
            free_at: Cell::new(Instant::now()),
            count: Cell::new(0),
            idle_time,
            is_hurried: Cell::new(false),
            budget: budget.cloned(),
            socket,
            watch: Cell::new(None),
            farewell: Cell::new(None),
            _guard: Box::new(guard),
        });
        if is_watched {
            let task = actix_web::rt::spawn(watch(Rc::downgrade(&connection)));
            connection.watch.set(Some(task.abort_handle()));
        }
        data.insert(connection);
    }

    /// The answer that is about to be given has no end: where its client does not read, the connection is ended with
    /// the service, instead of being waited for like those of requests under way.
    pub fn end_with(self: &Rc<Self>, gate: &Gate) {
        let task = actix_web::rt::spawn(bid_farewell(Rc::downgrade(self), gate.clone()));
        self.set_farewell(Some(task.abort_handle()));
    }

    fn set_farewell(&self, farewell: Option<AbortHandle>) {
        if let Some(before) = self.farewell.replace(farewell) {
            before.abort();
        }
    }

    /// How long it may still lie idle.
    fn left(&self) -> Duration {
        if self.working.get() > 0 || self.is_waited_for.get() {
            return self.idle_time;
        }
        (self.free_at.get() + self.idle_time).saturating_duration_since(Instant::now())
    }

    /// Whether the client has left too long what was handed on to it.
    fn is_too_slow(&self) -> bool {
        if self.is_waited_for.get() {
            return false;
        }
        let is_short = self.budget.as_ref().is_some_and(ResponseBudget::is_short);
        let time = if is_short {
            SHORT_TIME.min(self.idle_time)
        } else {
            self.idle_time
        };
        self.free_at.get() + time < Instant::now()
    }

    fn end(&self) {
        if let Some(socket) = &self.socket {
            // Fails only if the client has ended it already.
            let _ = shutdown(socket, Shutdown::Both);
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.set_farewell(None);
        // Connections come and go faster than their time is over.
        if let Some(watch) = self.watch.take() {
            watch.abort();
        }
    }
}

/// Ends a connection that lies idle.
async fn watch(connection: Weak<Connection>) {
    let Some(mut left) = connection.upgrade().map(|it| it.left()) else {
        return;
    };
    while !left.is_zero() {
        actix_web::rt::time::sleep(left).await;
        let Some(connection) = connection.upgrade() else {
            return;
        };
        left = connection.left();
        if left.is_zero() {
            connection.end();
        }
    }
}

/// Ends a connection soon after the service is told to end.
async fn bid_farewell(connection: Weak<Connection>, gate: Gate) {
    gate.stopped().await;
    actix_web::rt::time::sleep(LAST_TIME).await;
    if let Some(connection) = connection.upgrade() {
        connection.end();
    }
}

/// Ends a connection whose client does not take its answer. Only after a second look: this thread may
/// have been busy, and what the client has taken meanwhile shows once the answer had its turn.
async fn hurry(connection: Weak<Connection>) {
    let mut was_too_slow = false;
    loop {
        actix_web::rt::time::sleep(LOOK).await;
        let Some(connection) = connection.upgrade() else {
            return;
        };
        if connection.taking.get() == 0 {
            connection.is_hurried.set(false);
            return;
        }
        let is_too_slow = connection.is_too_slow();
        if is_too_slow && was_too_slow {
            connection.end();
            return;
        }
        was_too_slow = is_too_slow;
    }
}

impl UnderWay {
    /// A request of this connection begins.
    pub(super) fn begin(connection: &Rc<Connection>) -> Self {
        let Connection { working, count, .. } = &**connection;
        working.set(working.get() + 1);
        count.set(count.get().saturating_add(1));
        connection.set_farewell(None);
        if count.get() > REQUESTS_END {
            connection.end();
        }
        Self {
            connection: connection.clone(),
            is_answered: Cell::new(false),
            is_begun: Cell::new(false),
        }
    }

    /// Whether it should be the last one of its connection.
    pub(super) fn is_last(&self) -> bool {
        self.connection.count.get() >= REQUESTS_MAX
    }

    /// There is an answer: from now on it is the client that is waited for.
    pub(super) fn answered(&self) {
        let Connection {
            working, taking, ..
        } = &*self.connection;
        if !self.is_answered.replace(true) {
            working.set(working.get() - 1);
            taking.set(taking.get() + 1);
            self.connection.free_at.set(Instant::now());
        }
    }

    /// The answer goes on, and nobody knows when: its client has taken what there was.
    pub(super) fn waits(&self) {
        self.connection.is_waited_for.set(true);
    }

    /// So many bytes of the answer are handed on, and what was handed on before is taken: the
    /// client has time for them.
    pub(super) fn written(&self, bytes: usize) {
        let connection = &self.connection;
        connection.is_waited_for.set(false);
        let bytes_32 = u32::try_from(bytes).unwrap_or(u32::MAX);
        let time = Duration::from_secs((bytes_32 / BYTES_PER_SECOND_MIN).into());
        connection.free_at.set(Instant::now() + time);
        // What is small is handed on at once and as a whole: nobody has to be waited for.
        let is_large = self.is_begun.replace(true) || bytes >= PIECE;
        let is_watched = connection.socket.is_some();
        if is_large && is_watched && !connection.is_hurried.replace(true) {
            actix_web::rt::spawn(hurry(Rc::downgrade(connection)));
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.answered();
        let Connection {
            taking,
            free_at,
            is_waited_for,
            ..
        } = &*self.connection;
        is_waited_for.set(false);
        taking.set(taking.get() - 1);
        free_at.set(free_at.get().max(Instant::now()));
    }
}
