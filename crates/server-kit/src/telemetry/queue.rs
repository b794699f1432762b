//! The queue of log lines. They wait in memory, and a separate thread writes them: a stalled reader blocks no
//! other thread. Lines that do not fit are dropped and counted, and their number is logged once there is room
//! again.
//!
//! `tracing-appender` is not used: it limits the number of lines instead of bytes, may drop the last lines of a
//! program, waits a fixed time at the end, and ignores write errors.

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
    /// While set, lines of this thread are kept here instead of being written.
    static KEPT: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
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
    /// Whole lines.
    waiting: Vec<u8>,
    /// Bytes that ever arrived.
    came: u64,
    /// Bytes that ever left: written, or failed.
    left: u64,
    /// Dropped lines that are not logged yet.
    dropped: u64,
    /// Position of the gap that they left.
    gap: usize,
    /// Failed lines that are not logged yet.
    failed: u64,
    /// A caller has waited in vain, and nothing has left since.
    is_stalled: bool,
}

impl Queue {
    /// Writes to `sink` as long as the process lives.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(super) fn start(sink: impl Write + Send + 'static) -> io::Result<Self> {
        let queue = Self::default();
        let writer = Writer {
            queue: queue.clone(),
            sink,
        };
        let thread = thread::Builder::new().name(THREAD.to_owned());
        thread.spawn(move || writer.run())?;
        Ok(queue)
    }

    /// Adds a line, unless this thread keeps its lines.
    pub(super) fn write(&self, line: &[u8]) {
        let is_kept = KEPT.with_borrow_mut(|kept| {
            let kept = kept.as_mut();
            kept.map(|kept| kept.extend_from_slice(line)).is_some()
        });
        if !is_kept {
            self.push(line);
        }
    }

    /// Adds a line if there is room. Never waits for the reader.
    fn push(&self, line: &[u8]) {
        let mut state = self.lock();
        // After a dropped line all are dropped until there is room, so there is one gap.
        let is_full = state.waiting.len() + line.len() > WAITING_BYTES_MAX;
        if state.dropped > 0 || is_full {
            if state.dropped == 0 {
                state.gap = state.waiting.len();
            }
            state.dropped += 1;
            drop(state);
            metrics::counter!(DROPPED).increment(1);
            self.0.filled.notify_one();
        } else {
            self.append(state, line);
        }
    }

    /// Adds a line even without room: for the last message of a program.
    pub(super) fn push_last(&self, line: &[u8]) {
        self.append(self.lock(), line);
    }

    fn append(&self, mut state: MutexGuard<'_, State>, line: &[u8]) {
        state.waiting.extend_from_slice(line);
        state.came += line.len() as u64;
        drop(state);
        self.0.filled.notify_one();
    }

    /// Waits until all earlier lines are written, while there is progress: at most a second without a reader,
    /// and no longer if a caller has waited in vain already. Returns whether all are written.
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

    /// Waits for the next batch to write.
    fn next_batch(&self, mut spare: Vec<u8>) -> Batch {
        spare.clear();
        spare.shrink_to(CHUNK_BYTES);
        let mut state = self.lock();
        while state.waiting.is_empty() && state.dropped == 0 {
            let waited = self.0.filled.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        let missing = std::mem::take(&mut state.dropped) + std::mem::take(&mut state.failed);
        let gap = std::mem::take(&mut state.gap);
        let mut lines = std::mem::replace(&mut state.waiting, spare);
        drop(state);
        let (came, mut told) = (lines.len(), gap);
        if missing > 0 {
            let text = missing_lines(missing);
            told += text.len();
            lines.splice(gap..gap, text);
        }
        Batch {
            lines,
            came,
            missing,
            told,
        }
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

/// A batch to write.
struct Batch {
    lines: Vec<u8>,
    /// Bytes of it from the queue. The rest reports missing lines.
    came: usize,
    /// Dropped lines.
    missing: u64,
    /// Position up to which that is reported.
    told: usize,
}

/// The thread that writes.
struct Writer<W> {
    queue: Queue,
    sink: W,
}

impl<W: Write> Writer<W> {
    fn run(mut self) {
        let mut spare = Vec::new();
        loop {
            let batch = self.queue.next_batch(spare);
            self.write(&batch);
            spare = batch.lines;
        }
    }

    /// Writes as much as possible. Failures are counted, and reported with the next success.
    fn write(&mut self, batch: &Batch) {
        let (mut written, mut came) = (0, batch.came);
        for chunk in batch.lines.chunks(CHUNK_BYTES) {
            if self.write_chunk(chunk).is_err() {
                let rest = &batch.lines[written..];
                let lines: u64 = rest.iter().map(|byte| u64::from(*byte == b'\n')).sum();
                // The failed part includes the report of missing lines, which must be repeated.
                let is_untold = batch.missing > 0 && written < batch.told;
                let lost = lines.saturating_sub(u64::from(is_untold));
                let untold = if is_untold { batch.missing } else { 0 };
                metrics::counter!(DROPPED).increment(lost);
                self.queue.moved(came, lost + untold);
                return;
            }
            written += chunk.len();
            // The last byte has left when everything is written, including the report of missing lines.
            let is_all = written == batch.lines.len();
            let left = chunk.len().min(came.saturating_sub(1));
            let left = if is_all { came } else { left };
            self.queue.moved(left, 0);
            came -= left;
        }
    }

    fn write_chunk(&mut self, mut chunk: &[u8]) -> io::Result<()> {
        while !chunk.is_empty() {
            match self.sink.write(chunk) {
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
}

/// The report of missing lines. An error, because it needs attention and must be visible at every level.
fn missing_lines(missing: u64) -> Vec<u8> {
    said(|| {
        tracing::error!(
            lines = missing,
            "log lines missing: the reader was too slow"
        );
    })
}

/// What the log would write for this call; empty if it is filtered.
pub(super) fn said(say: impl FnOnce()) -> Vec<u8> {
    KEPT.set(Some(Vec::new()));
    say();
    KEPT.take().unwrap_or_default()
}

#[cfg(test)]
mod tests;
