//! The queue of log lines. They wait in memory, and a separate thread writes them: a stalled reader blocks no
//! other thread. Lines that do not fit are dropped and counted, and their number is logged once there is room
//! again.
//!
//! `tracing-appender` is not used. It limits the number of lines instead of bytes, drops the reason of the end if its
//! queue is full, and cannot be flushed. If the reader has stalled, it prints to standard output at the end, which
//! blocks the end of the program.

use std::cell::RefCell;
use std::io::{self, ErrorKind, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes that may wait. As many again may be in a write.
pub(super) const WAITING_BYTES_MAX: usize = 1024 * 1024;
/// Bytes per write. Progress shows that there is a reader.
const CHUNK_BYTES: usize = 16 * 1024;
/// How long a caller waits for the reader without progress.
const PATIENCE: Duration = Duration::from_secs(1);
/// Pause between attempts while the destination accepts nothing.
const RETRY_PERIOD: Duration = Duration::from_millis(10);
/// Name of the thread that writes.
const THREAD: &str = "log";
const DROPPED: &str = "hyperfleet_api_log_lines_dropped_total";

thread_local! {
    /// While set, lines of this thread are captured here instead of being written.
    static CAPTURED: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

/// The waiting lines. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Queue(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Wakes the writer.
    filled: Condvar,
    /// Bytes have left the queue.
    moved: Condvar,
}

#[derive(Default)]
struct State {
    /// Complete lines.
    waiting: Vec<u8>,
    /// Bytes that ever arrived.
    came: u64,
    /// Bytes that ever left: written, or failed.
    left: u64,
    /// Dropped lines that are not logged yet. Until they are, all further lines are dropped, so there is one gap.
    dropped: u64,
    /// Failed lines that are not logged yet.
    failed: u64,
    /// A caller's wait has timed out, and nothing has been written since.
    is_stalled: bool,
}

impl Queue {
    /// Writes to `sink` as long as the process lives.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(super) fn start(sink: impl Write + Send + 'static) -> io::Result<Self> {
        let queue = Self::default();
        let writer = queue.clone();
        let thread = thread::Builder::new().name(THREAD.to_owned());
        thread.spawn(move || writer.write_forever(sink))?;
        Ok(queue)
    }

    /// Adds a line, unless this thread captures its lines.
    pub(super) fn write(&self, line: &[u8]) {
        let is_captured = CAPTURED.with_borrow_mut(|captured| {
            let captured = captured.as_mut();
            captured
                .map(|captured| captured.extend_from_slice(line))
                .is_some()
        });
        if !is_captured {
            self.push(line);
        }
    }

    /// Adds a line if there is room. Never waits for the reader.
    fn push(&self, line: &[u8]) {
        let mut state = self.lock();
        let is_full = state.waiting.len() + line.len() > WAITING_BYTES_MAX;
        if state.dropped > 0 || is_full {
            state.dropped += 1;
            metrics::counter!(DROPPED).increment(1);
        } else {
            state.append(line);
        }
        drop(state);
        self.0.filled.notify_one();
    }

    /// Adds a line even without room: for the last message of a program.
    pub(super) fn push_last(&self, line: &[u8]) {
        let mut state = self.lock();
        state.report_missing();
        state.append(line);
        drop(state);
        self.0.filled.notify_one();
    }

    /// Waits until all earlier lines are written, while there is progress: at most a second without a reader,
    /// and not at all if an earlier wait has timed out. Returns whether all are written.
    pub(super) fn flush(&self) -> bool {
        if thread::current().name() == Some(THREAD) {
            return false;
        }
        let mut state = self.lock();
        let (goal, mut seen, mut since) = (state.came, state.left, Instant::now());
        while state.left < goal && !state.is_stalled {
            let rest = PATIENCE.saturating_sub(since.elapsed());
            let waited = self.0.moved.wait_timeout(state, rest);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if state.left != seen {
                (seen, since) = (state.left, Instant::now());
            } else if since.elapsed() >= PATIENCE {
                state.is_stalled = true;
            }
        }
        state.left >= goal
    }

    /// Whether lines failed, and none succeeded since.
    pub(super) fn has_failed(&self) -> bool {
        self.lock().failed > 0
    }

    fn write_forever(&self, mut sink: impl Write) {
        loop {
            let (lines, missing) = self.next_batch();
            let mut chunks = lines.chunks(CHUNK_BYTES);
            let mut rest = lines.len();
            let is_written = chunks.all(|chunk| {
                let is_written = write_chunk(&mut sink, chunk).is_ok();
                if is_written {
                    rest -= chunk.len();
                    self.moved(chunk.len(), 0);
                }
                is_written
            });
            if !is_written {
                let failed = &lines[lines.len() - rest..];
                let failed: u64 = failed.iter().map(|byte| u64::from(*byte == b'\n')).sum();
                // The report of missing lines, the last one, has failed as well: it is repeated.
                let failed = failed.saturating_sub(u64::from(missing > 0));
                metrics::counter!(DROPPED).increment(failed);
                self.moved(rest, failed + missing);
            }
        }
    }

    /// Waits for lines to write. Returns them with the number of missing ones, which their last line reports.
    fn next_batch(&self) -> (Vec<u8>, u64) {
        let mut state = self.lock();
        while state.waiting.is_empty() && state.dropped == 0 {
            let waited = self.0.filled.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        let missing = state.report_missing();
        (std::mem::take(&mut state.waiting), missing)
    }

    /// Records that `bytes` have left, with `failed` failed lines.
    fn moved(&self, bytes: usize, failed: u64) {
        let mut state = self.lock();
        state.left += bytes as u64;
        state.failed += failed;
        state.is_stalled = false;
        drop(state);
        self.0.moved.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Adds a line that reports the missing lines, if there are any. Returns their number.
    fn report_missing(&mut self) -> u64 {
        let lines = std::mem::take(&mut self.dropped) + std::mem::take(&mut self.failed);
        if lines > 0 {
            // An error, because it needs attention and must be visible at every level.
            let report =
                said(|| tracing::error!(lines, "log lines missing: the reader was too slow"));
            self.append(&report);
        }
        lines
    }

    fn append(&mut self, line: &[u8]) {
        self.waiting.extend_from_slice(line);
        self.came += line.len() as u64;
    }
}

fn write_chunk(sink: &mut impl Write, mut chunk: &[u8]) -> io::Result<()> {
    while !chunk.is_empty() {
        match sink.write(chunk) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => chunk = &chunk[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // Another process may have made a shared terminal or pipe non-blocking.
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(RETRY_PERIOD),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// What the log would write for this call; empty if it is filtered.
pub(super) fn said(say: impl FnOnce()) -> Vec<u8> {
    CAPTURED.set(Some(Vec::new()));
    say();
    CAPTURED.take().unwrap_or_default()
}

#[cfg(test)]
mod tests;
