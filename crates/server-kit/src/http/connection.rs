//! One connection of a client: whether it has a request in progress, since when it is idle, and whether its
//! client reads the response.

use std::cell::Cell;
use std::os::fd::OwnedFd;
use std::rc::{Rc, Weak};
use std::time::{Duration, Instant};

use actix_web::dev::Extensions;
use rustix::net::{Shutdown, shutdown};
use tokio::task::AbortHandle;

use super::gate::Gate;
use super::memory::ResponseBudget;
use super::pieces::PIECE;

/// The state of a connection, on the thread that serves it. Dropped with it.
pub struct Connection {
    /// Requests in progress.
    working: Cell<usize>,
    /// Responses that the client must read.
    taking: Cell<usize>,
    /// Whether one of them has nothing to read yet: the client waits for the server.
    is_waited_for: Cell<bool>,
    /// Deadline for the client to take what was last written.
    free_at: Cell<Instant>,
    /// Requests received so far.
    count: Cell<u32>,
    /// Longest idle time.
    idle_time: Duration,
    /// Whether a task checks that the client reads.
    is_hurried: Cell<bool>,
    /// The memory budget for large responses, if this listener has one.
    budget: Option<ResponseBudget>,
    /// The connection itself, to close it.
    socket: Option<OwnedFd>,
    /// The task that closes it when it is idle.
    watch: Cell<Option<AbortHandle>>,
    /// The task that closes it at shutdown, while its latest response is endless.
    farewell: Cell<Option<AbortHandle>>,
    /// Dropped with the connection.
    _guard: Box<dyn std::any::Any>,
}

/// A request in progress, until its response is written.
pub(super) struct UnderWay {
    connection: Rc<Connection>,
    is_answered: Cell<bool>,
    is_begun: Cell<bool>,
}

/// Slowest accepted rate of a client, in bytes per second (128 kbit/s).
pub(super) const BYTES_PER_SECOND_MIN: u32 = 16 * 1024;
/// Requests of one connection before its client must use another. Responses without a body stay in memory when
/// a client sends requests and reads none of them, which actix does not limit.
const REQUESTS_MAX: u32 = 1000;
/// A client that ignores this and sends more than this is disconnected: actix would continue forever.
const REQUESTS_END: u32 = 2 * REQUESTS_MAX;
/// How often the progress of large responses is checked.
const LOOK: Duration = Duration::from_secs(1);
/// After the time for a piece, a client has this long while memory is short.
const SHORT_TIME: Duration = Duration::from_secs(5);
/// How long the client of an endless response has to read its end at shutdown.
const LAST_TIME: Duration = Duration::from_secs(1);

impl Connection {
    /// Stores the state of a new connection in its data. Closes it when it is idle, sends the head of its next
    /// request, or does not read a piece of a response, for longer than `idle_time`: actix limits the time of
    /// the first head only. While `budget` is short, clients that do not read large responses have less time.
    /// Without a `socket` it cannot be closed. `guard` is dropped with it.
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

    /// Marks the next response as endless: if its client does not read, the connection is closed at shutdown,
    /// instead of being waited for like requests in progress.
    pub fn end_with(self: &Rc<Self>, gate: &Gate) {
        let task = actix_web::rt::spawn(bid_farewell(Rc::downgrade(self), gate.clone()));
        self.set_farewell(Some(task.abort_handle()));
    }

    fn set_farewell(&self, farewell: Option<AbortHandle>) {
        if let Some(before) = self.farewell.replace(farewell) {
            before.abort();
        }
    }

    /// The connection itself, below TLS.
    #[cfg(test)]
    pub(crate) fn socket(&self) -> Option<&OwnedFd> {
        self.socket.as_ref()
    }

    /// How long it may still be idle.
    fn left(&self) -> Duration {
        if self.working.get() > 0 || self.is_waited_for.get() {
            return self.idle_time;
        }
        (self.free_at.get() + self.idle_time).saturating_duration_since(Instant::now())
    }

    /// Whether the client has not read in time.
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
            // Fails only if the client has closed it already.
            let _ = shutdown(socket, Shutdown::Both);
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.set_farewell(None);
        // Connections come and go faster than their timers expire.
        if let Some(watch) = self.watch.take() {
            watch.abort();
        }
    }
}

/// Closes an idle connection.
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

/// Closes a connection soon after the start of the shutdown.
async fn bid_farewell(connection: Weak<Connection>, gate: Gate) {
    gate.stopped().await;
    actix_web::rt::time::sleep(LAST_TIME).await;
    if let Some(connection) = connection.upgrade() {
        connection.end();
    }
}

/// Closes a connection whose client does not read its response. Only at the second check: this thread may have
/// been busy, and progress shows only after the response had its turn.
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
    /// Starts a request of this connection.
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

    /// The response is ready: from now on the client must act.
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

    /// The response continues at an unknown time: its client has read everything so far.
    pub(super) fn waits(&self) {
        self.connection.is_waited_for.set(true);
    }

    /// Records that `bytes` of the response are written and the earlier ones were taken: the client has time
    /// for them.
    pub(super) fn written(&self, bytes: usize) {
        let connection = &self.connection;
        connection.is_waited_for.set(false);
        let bytes_32 = u32::try_from(bytes).unwrap_or(u32::MAX);
        let time = Duration::from_secs((bytes_32 / BYTES_PER_SECOND_MIN).into());
        connection.free_at.set(Instant::now() + time);
        // Small responses are written immediately and need no check.
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
