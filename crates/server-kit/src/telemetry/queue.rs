//! Lines on their way to whoever reads the log. They wait in memory, and a thread of its own writes
//! them: a reader that stalls stops nobody. What does not fit is dropped, counted, and told once
//! there is room again.
//!
//! `tracing-appender` counts lines instead of bytes, drops the last words of a program like any
//! other line, waits for its end by fixed times, and passes over what it cannot write.

use std::cell::RefCell;
use std::io::{self, ErrorKind, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes that may wait. As many again may be on their way at the same time.
pub(super) const WAITING_BYTES_MAX: usize = 1024 * 1024;
/// How much is written at once: what is taken of it shows that somebody reads.
const CHUNK_BYTES: usize = 16 * 1024;
/// How long whoever waits for the reader waits while nothing is taken.
const PATIENCE: Duration = Duration::from_secs(1);
/// Between two attempts to write to what takes nothing at the moment.
const RETRY_PERIOD: Duration = Duration::from_millis(10);
/// The thread that writes.
const THREAD: &str = "log";
const DROPPED: &str = "hyperfleet_api_log_lines_dropped_total";

thread_local! {
    /// What this thread says is kept here instead of being written.
    static KEPT: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

/// The lines that wait. Every clone is the same ones.
#[derive(Clone, Default)]
pub(super) struct Queue(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// There is something to do for the writer.
    filled: Condvar,
    /// Something has left.
    moved: Condvar,
}

#[derive(Default)]
struct State {
    /// Whole lines.
    waiting: Vec<u8>,
    /// Bytes that ever came.
    came: u64,
    /// Bytes that ever left: they were written, or could not be.
    left: u64,
    /// Lines that found no room since that was last told.
    dropped: u64,
    /// Where in what waits they are missing.
    gap: usize,
    /// Lines that could not be written since that was last told.
    failed: u64,
    /// Somebody has waited in vain, and nothing has left since.
    is_stalled: bool,
}

impl Queue {
    /// Writes to `sink` from now on, as long as the process lives.
    ///
    /// # Errors
    ///
    /// The machine has no thread to give.
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

    /// Takes a line in, unless this thread keeps what it says.
    pub(super) fn write(&self, line: &[u8]) {
        let is_kept = KEPT.with_borrow_mut(|kept| {
            let kept = kept.as_mut();
            kept.map(|kept| kept.extend_from_slice(line)).is_some()
        });
        if !is_kept {
            self.push(line);
        }
    }

    /// Takes a line in, if there is room. Never waits for the reader.
    fn push(&self, line: &[u8]) {
        let mut state = self.lock();
        // Where one is missing all are until there is room: they are missing in one place.
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

    /// Takes a line in that must not be lost, room or not: for what is said once, at the end.
    pub(super) fn push_last(&self, line: &[u8]) {
        self.append(self.lock(), line);
    }

    fn append(&self, mut state: MutexGuard<'_, State>, line: &[u8]) {
        state.waiting.extend_from_slice(line);
        state.came += line.len() as u64;
        drop(state);
        self.0.filled.notify_one();
    }

    /// Waits until everything that was said so far is written, as long as it is being read: for a
    /// second without a reader at most, and no longer if somebody has waited for one in vain
    /// already. Gives whether all is written.
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

    /// Whether lines could not be written, and none since.
    pub(super) fn has_failed(&self) -> bool {
        self.lock().failed > 0
    }

    /// What the writer is to write next; waits for it.
    fn take(&self, mut spare: Vec<u8>) -> Batch {
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

    /// So many bytes have left, and so many lines of them could not be written.
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

/// What is written at a time.
struct Batch {
    lines: Vec<u8>,
    /// Bytes of it that came; the rest says what is missing.
    came: usize,
    /// Lines that are missing.
    missing: u64,
    /// Up to where that is said.
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
            let batch = self.queue.take(spare);
            self.write(&batch);
            spare = batch.lines;
        }
    }

    /// Writes as much as can be. What cannot is counted, and told with what can be again.
    fn write(&mut self, batch: &Batch) {
        let (mut written, mut came) = (0, batch.came);
        for chunk in batch.lines.chunks(CHUNK_BYTES) {
            if self.write_chunk(chunk).is_err() {
                let rest = &batch.lines[written..];
                let lines: u64 = rest.iter().map(|byte| u64::from(*byte == b'\n')).sum();
                // One of these was to say what is missing, which is still to be said.
                let is_untold = batch.missing > 0 && written < batch.told;
                let lost = lines.saturating_sub(u64::from(is_untold));
                let untold = if is_untold { batch.missing } else { 0 };
                metrics::counter!(DROPPED).increment(lost);
                self.queue.moved(came, lost + untold);
                return;
            }
            written += chunk.len();
            // The last byte has left when everything is written, what is missing included.
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
                // Others may have made a terminal or a pipe that we share non-blocking.
                Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(RETRY_PERIOD),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Says that lines are missing. An error: somebody has to look, and it is to be seen at every level.
fn missing_lines(missing: u64) -> Vec<u8> {
    said(|| {
        tracing::error!(
            lines = missing,
            "lines of the log are missing here: it was not read in time"
        );
    })
}

/// What the log would say of this, which it does not write; nothing if it lets it not through.
pub(super) fn said(say: impl FnOnce()) -> Vec<u8> {
    KEPT.set(Some(Vec::new()));
    say();
    KEPT.take().unwrap_or_default()
}

#[cfg(test)]
mod tests;
