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
/// Lists whose items are told apart by size.
const LISTS: usize = 64;
/// How long it counts as short when somebody was refused.
const SHORT_TIME: Duration = Duration::from_secs(10);
const BUFFERED: &str = "hyperfleet_api_buffered_bytes";

/// The memory for clients of one process: every clone is the same.
#[derive(Debug, Clone)]
pub struct Memory(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    bytes: Arc<Capacity>,
    /// How large an item of a page is of late, in bytes; of lists that differ apart.
    item_bytes: [AtomicUsize; LISTS],
    /// When somebody was last refused.
    refused_at: Mutex<Option<Instant>>,
}

/// A part of it, until it is dropped.
#[derive(Debug)]
pub(super) struct Share {
    slot: Slot,
    memory: Memory,
}

/// The lists whose items are taken for equally large: those of one route. Few routes share one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sort(usize);

impl Sort {
    /// Of a route.
    pub(super) fn of(route: &str) -> Self {
        let hash = route.bytes().fold(0_usize, |hash, byte| {
            hash.wrapping_mul(31).wrapping_add(byte.into())
        });
        Self(hash % LISTS)
    }
}

impl Memory {
    /// So many bytes of it.
    pub(super) fn new(bytes: usize) -> Self {
        Self(Arc::new(Parts {
            bytes: Capacity::new(bytes),
            item_bytes: std::array::from_fn(|_| AtomicUsize::new(ITEM_BYTES_FIRST)),
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
            self.note_refusal();
            return None;
        };
        metrics::gauge!(BUFFERED).increment(as_float(bytes));
        Some(Share {
            slot,
            memory: self.clone(),
        })
    }

    fn note_refusal(&self) {
        *self.refused_at() = Some(Instant::now());
    }

    fn refused_at(&self) -> MutexGuard<'_, Option<Instant>> {
        let refused_at = self.0.refused_at.lock();
        refused_at.unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing of it, to become more.
    pub(super) fn hold_nothing(&self) -> Share {
        Share {
            slot: self.0.bytes.nothing(),
            memory: self.clone(),
        }
    }

    /// How many bytes a page of so many items takes, as large as items are of late.
    pub(super) fn of_page(&self, sort: Sort, items: u32) -> usize {
        let items = usize::try_from(items).unwrap_or(usize::MAX);
        let each = self.0.item_bytes[sort.0].load(Ordering::Relaxed);
        each.saturating_mul(items)
    }

    /// Remembers how large a page was for which there was room for so many items. Who loses a race
    /// here loses one page of many.
    pub(super) fn learn(&self, sort: Sort, bytes: usize, items_max: u32) {
        let each = bytes / usize::try_from(items_max.max(1)).unwrap_or(usize::MAX);
        let item_bytes = &self.0.item_bytes[sort.0];
        let before = item_bytes.load(Ordering::Relaxed);
        item_bytes.store(before - before / 8 + each / 8, Ordering::Relaxed);
    }

    /// A page was refused for what it was taken for: the next one is taken for less, so that one is
    /// made in the end, and shows how large they are.
    pub(super) fn doubt(&self, sort: Sort) {
        let item_bytes = &self.0.item_bytes[sort.0];
        let before = item_bytes.load(Ordering::Relaxed);
        item_bytes.store(before - before / 64, Ordering::Relaxed);
    }
}

impl Share {
    /// Makes it so much, if there is room for it; it stays as it is otherwise.
    pub(super) fn resize(&mut self, bytes: usize) -> bool {
        let before = self.slot.amount();
        let is_made = self.slot.resize(bytes);
        self.tell(before, is_made);
        is_made
    }

    /// Makes it so much, whether there is room for it or not.
    pub(super) fn insist(&mut self, bytes: usize) {
        let before = self.slot.amount();
        let is_made = self.slot.insist(bytes);
        self.tell(before, is_made);
    }

    fn tell(&self, before: usize, is_made: bool) {
        let change = as_float(self.slot.amount()) - as_float(before);
        metrics::gauge!(BUFFERED).increment(change);
        if !is_made {
            self.memory.note_refusal();
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        metrics::gauge!(BUFFERED).decrement(as_float(self.slot.amount()));
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
        let (sort, other) = (Sort::of("/clusters"), Sort::of("/audit"));
        assert_eq!(memory.of_page(sort, 100), 100 * ITEM_BYTES_FIRST);
        for _ in 0..100 {
            memory.learn(sort, 2_000_000, 100);
        }
        let about = memory.of_page(sort, 100);
        assert!((1_990_000..=2_000_000).contains(&about), "{about}");
        assert_eq!(memory.of_page(other, 100), 100 * ITEM_BYTES_FIRST);
        memory.doubt(sort);
        assert!(memory.of_page(sort, 100) < about);
        for _ in 0..200 {
            memory.learn(sort, 0, 1);
        }
        assert!(memory.of_page(sort, 1) < 8);
        assert_eq!(memory.of_page(sort, 0), 0);
    }
}
