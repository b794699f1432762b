//! Limits amounts over all threads: requests in progress, bytes held for clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A limited amount.
#[derive(Debug)]
pub(super) struct Capacity {
    used: AtomicUsize,
    max: usize,
}

/// A part of a capacity, returned on drop.
#[derive(Debug)]
pub(super) struct Portion {
    of: Arc<Capacity>,
    amount: usize,
}

/// Why a client cannot watch now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WatcherRefusal {
    #[error("too many clients are watching")]
    TooMany,
    #[error("the service is stopping")]
    Stopping,
}

impl Capacity {
    /// A capacity of this amount.
    pub(super) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            used: AtomicUsize::new(0),
            max,
        })
    }

    /// Takes a part, or returns `None` when the capacity is exhausted. A part above the total capacity is
    /// granted when nothing else is taken, because it could never be granted otherwise.
    pub(super) fn reserve(self: &Arc<Self>, amount: usize) -> Option<Portion> {
        let fits = |used: usize| {
            let sum = used.saturating_add(amount);
            (used == 0 || sum <= self.max).then_some(sum)
        };
        let order = Ordering::Relaxed;
        let used = self.used.fetch_update(order, order, fits);
        used.is_ok().then(|| Portion {
            of: Arc::clone(self),
            amount,
        })
    }

    /// An empty part, to be resized.
    pub(super) fn nothing(self: &Arc<Self>) -> Portion {
        Portion {
            of: Arc::clone(self),
            amount: 0,
        }
    }
}

impl Portion {
    pub(super) fn amount(&self) -> usize {
        self.amount
    }

    /// Resizes the part if the capacity allows; otherwise leaves it as it is. A sole part may exceed the
    /// capacity.
    pub(super) fn resize(&mut self, amount: usize) -> bool {
        let fits = |used: usize| {
            let others = used - self.amount;
            let sum = others.saturating_add(amount);
            (others == 0 || sum <= self.of.max || amount <= self.amount).then_some(sum)
        };
        let order = Ordering::Relaxed;
        let is_made = self.of.used.fetch_update(order, order, fits).is_ok();
        if is_made {
            self.amount = amount;
        }
        is_made
    }

    /// Resizes the part, exceeding the capacity if necessary. Returns whether there was room.
    pub(super) fn insist(&mut self, amount: usize) -> bool {
        let is_made = self.resize(amount);
        if !is_made {
            let more = amount - self.amount;
            self.of.used.fetch_add(more, Ordering::Relaxed);
            self.amount = amount;
        }
        is_made
    }
}

impl Drop for Portion {
    fn drop(&mut self) {
        self.of.used.fetch_sub(self.amount, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(capacity: &Capacity) -> usize {
        capacity.used.load(Ordering::Relaxed)
    }

    #[test]
    fn a_place_is_free_again_when_it_is_left() {
        let capacity = Capacity::new(2);
        let first = capacity.reserve(1);
        let second = capacity.reserve(1);
        assert!(first.is_some() && second.is_some());
        assert!(capacity.reserve(1).is_none() && capacity.reserve(1).is_none());
        drop(first);
        assert_eq!(used(&capacity), 1);
        let third = capacity.reserve(1);
        assert!(third.is_some() && capacity.reserve(1).is_none());
        drop((second, third));
        assert_eq!(used(&capacity), 0);
    }

    #[test]
    fn a_part_above_the_capacity_is_admitted_when_nothing_else_is_reserved() {
        let capacity = Capacity::new(10);
        let oversized = capacity.reserve(25).expect("nothing else is reserved");
        assert!(capacity.reserve(1).is_none());
        drop(oversized);
        let one = capacity.reserve(1);
        assert!(one.is_some() && capacity.reserve(25).is_none());
        assert!(capacity.reserve(usize::MAX).is_none());
    }

    #[test]
    fn a_part_may_become_more_than_there_is_and_less_again() {
        let capacity = Capacity::new(8);
        let mut part = capacity.nothing();
        assert!(
            part.resize(4) && part.resize(20),
            "nothing else is reserved"
        );
        assert_eq!((used(&capacity), part.amount()), (20, 20));
        assert!(capacity.reserve(1).is_none());
        assert!(part.resize(7));
        let other = capacity.reserve(1).unwrap();
        assert!(!part.resize(8) && part.resize(6) && part.resize(7));
        assert_eq!((used(&capacity), part.amount()), (8, 7));
        assert!(!part.insist(9) && used(&capacity) == 10);
        assert!(part.resize(8), "less is always had");
        drop(other);
        drop(part);
        assert_eq!(used(&capacity), 0);
    }
}
