//! How many requests are under way at a time, over all threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Places for requests under way. A request takes one when its body is there, so that slow clients
/// take none.
#[derive(Debug)]
pub(super) struct Capacity {
    taken: AtomicUsize,
    max: usize,
}

/// One place; free again when it is dropped.
#[derive(Debug)]
pub(super) struct Slot(Arc<Capacity>);

impl Capacity {
    /// Room for so many.
    pub(super) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            taken: AtomicUsize::new(0),
            max,
        })
    }

    /// A place, if there is one.
    pub(super) fn take(self: &Arc<Self>) -> Option<Slot> {
        // Who finds it full has counted itself for a moment, in which another may be refused, too:
        // never is one let in too many.
        if self.taken.fetch_add(1, Ordering::Relaxed) < self.max {
            return Some(Slot(self.clone()));
        }
        self.taken.fetch_sub(1, Ordering::Relaxed);
        None
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(capacity: &Capacity) -> usize {
        capacity.taken.load(Ordering::Relaxed)
    }

    #[test]
    fn a_place_is_free_again_when_it_is_left() {
        let capacity = Capacity::new(2);
        let first = capacity.take();
        let second = capacity.take();
        assert!(first.is_some() && second.is_some());
        assert!(capacity.take().is_none() && capacity.take().is_none());
        drop(first);
        assert_eq!(taken(&capacity), 1);
        let third = capacity.take();
        assert!(third.is_some() && capacity.take().is_none());
        drop((second, third));
        assert_eq!(taken(&capacity), 0);
    }
}
