//! One connection of a client: whether it has a request under way, and since when not.

use std::cell::Cell;
use std::os::fd::OwnedFd;
use std::rc::{Rc, Weak};
use std::time::{Duration, Instant};

use actix_web::dev::Extensions;
use rustix::net::{Shutdown, shutdown};

/// What is known of a connection, on the thread that serves it. Over when it is dropped.
pub struct Connection {
    under_way: Cell<usize>,
    /// When the last answer is through at the latest.
    free_at: Cell<Instant>,
    /// The connection itself, to end it.
    socket: Option<OwnedFd>,
    /// Whatever is to be dropped with it.
    _guard: Box<dyn std::any::Any>,
}

/// A request of a connection until its answer is written.
pub(super) struct UnderWay(Rc<Connection>);

/// As slow as a client may take an answer, in bytes a second (128 kbit/s).
const BYTES_PER_SECOND_MIN: u64 = 16 * 1024;

impl Connection {
    /// Puts a new connection into its data, and ends it when it lies idle, or sends the head of its
    /// next request, for longer than `idle_time`: actix limits the time of the first head only.
    /// Without a `socket` it cannot be ended. `guard` is dropped with it.
    pub fn open(
        data: &mut Extensions,
        socket: Option<OwnedFd>,
        idle_time: Duration,
        guard: impl std::any::Any,
    ) {
        let is_watched = socket.is_some();
        let connection = Rc::new(Self {
            under_way: Cell::new(0),
            free_at: Cell::new(Instant::now()),
            socket,
            _guard: Box::new(guard),
        });
        if is_watched {
            actix_web::rt::spawn(watch(Rc::downgrade(&connection), idle_time));
        }
        data.insert(connection);
    }

    /// How long it may still lie idle.
    fn left(&self, idle_time: Duration) -> Duration {
        if self.under_way.get() > 0 {
            return idle_time;
        }
        (self.free_at.get() + idle_time).saturating_duration_since(Instant::now())
    }
}

async fn watch(connection: Weak<Connection>, idle_time: Duration) {
    let mut left = idle_time;
    while !left.is_zero() {
        actix_web::rt::time::sleep(left).await;
        let Some(connection) = connection.upgrade() else {
            return;
        };
        left = connection.left(idle_time);
        if left.is_zero()
            && let Some(socket) = &connection.socket
        {
            // Fails only if the client has ended it already.
            let _ = shutdown(socket, Shutdown::Both);
        }
    }
}

impl UnderWay {
    /// A request of this connection begins.
    pub(super) fn begin(connection: &Rc<Connection>) -> Self {
        let under_way = &connection.under_way;
        under_way.set(under_way.get() + 1);
        Self(connection.clone())
    }

    /// So many bytes of its answer are to be taken by the client: it has time for that.
    pub(super) fn written(&self, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let time = Duration::from_secs(bytes / BYTES_PER_SECOND_MIN);
        let from = self.0.free_at.get().max(Instant::now());
        self.0.free_at.set(from + time);
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let Self(connection) = self;
        connection.under_way.set(connection.under_way.get() - 1);
        let free_at = &connection.free_at;
        free_at.set(free_at.get().max(Instant::now()));
    }
}
