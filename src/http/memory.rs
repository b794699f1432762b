//! What is held in memory for clients: large bodies until they are dealt with, large answers until
//! their clients have taken them. Without a limit, clients that read slowly cost as much memory as
//! they like; and making what nobody takes costs everybody else's time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::capacity::{Capacity, Slot};

/// What is smaller does not count: it is as much as a connection costs anyway.
pub(super) const SMALL: usize = 64 * 1024;
/// What an item of a page is taken for, in bytes, until pages have been made.
const ITEM_BYTES_FIRST: usize = 2 * 1024;
/// How long it counts as short when somebody was refused.
const SHORT_TIME: Duration = Duration::from_secs(10);
const BUFFERED: &str = "hyperfleet_api_buffered_bytes";

/// The memory for clients of one process: every clone is the same.
#[derive(Debug, Clone)]
pub struct Memory(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    bytes: Arc<Capacity>,
    /// How large an item of a page is of late, in bytes.
    item_bytes: AtomicUsize,
    /// When somebody was last refused.
    refused_at: Mutex<Option<Instant>>,
}

/// A part of it, until it is dropped.
#[derive(Debug)]
pub(super) struct Share(Slot);

impl Memory {
    /// So many bytes of it.
    pub(super) fn new(bytes: usize) -> Self {
        Self(Arc::new(Parts {
            bytes: Capacity::new(bytes),
            item_bytes: AtomicUsize::new(ITEM_BYTES_FIRST),
            refused_at: Mutex::new(None),
        }))
    }

    /// Whether somebody was refused of late, so that those that keep much of it must hurry.
    pub(super) fn is_short(&self) -> bool {
        let refused_at = *self.refused_at();
        refused_at.is_some_and(|at| at.elapsed() < SHORT_TIME)
    }

    /// So many bytes of it, if they are there.
    pub(super) fn hold(&self, bytes: usize) -> Option<Share> {
        let Some(slot) = self.0.bytes.take(bytes) else {
            *self.refused_at() = Some(Instant::now());
            return None;
        };
        metrics::gauge!(BUFFERED).increment(as_float(bytes));
        Some(Share(slot))
    }

    fn refused_at(&self) -> MutexGuard<'_, Option<Instant>> {
        let refused_at = self.0.refused_at.lock();
        refused_at.unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing of it, to become more.
    pub(super) fn hold_nothing(&self) -> Share {
        Share(self.0.bytes.nothing())
    }

    /// How many bytes a page of so many items takes, as large as items are of late.
    pub(super) fn of_page(&self, items: u32) -> usize {
        let items = usize::try_from(items).unwrap_or(usize::MAX);
        let each = self.0.item_bytes.load(Ordering::Relaxed);
        each.saturating_mul(items)
    }

    /// Remembers how large the items of a page were. Who loses a race here loses one page of many.
    pub(super) fn learn(&self, bytes: usize, items: usize) {
        if let Some(each) = bytes.checked_div(items) {
            let item_bytes = &self.0.item_bytes;
            let before = item_bytes.load(Ordering::Relaxed);
            let now = before - before / 8 + each / 8;
            item_bytes.store(now, Ordering::Relaxed);
        }
    }
}

impl Share {
    /// Makes it so much, whether there is room for it or not.
    pub(super) fn resize(&mut self, bytes: usize) {
        metrics::gauge!(BUFFERED).increment(as_float(bytes) - as_float(self.0.amount()));
        self.0.resize(bytes);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        metrics::gauge!(BUFFERED).decrement(as_float(self.0.amount()));
    }
}

/// For gauges.
#[expect(clippy::cast_precision_loss, reason = "exact up to 8 PiB")]
fn as_float(bytes: usize) -> f64 {
    bytes as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_short_once_somebody_was_refused() {
        let memory = Memory::new(10);
        let share = memory.hold(10);
        assert!(share.is_some() && !memory.is_short());
        assert!(memory.hold(1).is_none() && memory.is_short());
        drop(share);
        assert!(memory.hold(1).is_some());
    }

    #[test]
    fn pages_are_taken_for_as_large_as_they_were_of_late() {
        let memory = Memory::new(1);
        assert_eq!(memory.of_page(100), 100 * ITEM_BYTES_FIRST);
        for _ in 0..100 {
            memory.learn(2_000_000, 100);
        }
        let about = memory.of_page(100);
        assert!((1_990_000..=2_000_000).contains(&about), "{about}");
        memory.learn(2_000_000, 0);
        assert_eq!(memory.of_page(100), about, "an empty page says nothing");
        for _ in 0..200 {
            memory.learn(0, 1);
        }
        assert!(memory.of_page(1) < 8);
        assert_eq!(memory.of_page(0), 0);
    }
}
