//! The memory budget for clients: large bodies until they are handled, large responses until their
//! clients have read them. Without a limit, slow readers would hold any amount of memory.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Requests and responses up to this size are not counted.
pub(super) const SMALL: usize = 64 * 1024;
/// Estimated size of one item of a page.
pub(super) const ITEM_BYTES: usize = 2 * 1024;
/// The same while the budget is short: a discarded page costs most while clients hold much memory.
const ITEM_BYTES_SHORT: usize = 32 * 1024;
/// After a refusal the budget counts as short for this long.
const SHORT_TIME: Duration = Duration::from_secs(10);
const BUFFERED: &str = "hyperfleet_api_buffered_bytes";

/// The budget of one process. Clones share it.
#[derive(Debug, Clone)]
pub struct ResponseBudget(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    max: usize,
    used: AtomicUsize,
    refused_at: Mutex<Option<Instant>>,
}

/// A part of the budget, returned on drop.
#[derive(Debug)]
pub(super) struct Reservation {
    bytes: usize,
    budget: ResponseBudget,
}

impl ResponseBudget {
    pub(super) fn new(bytes: usize) -> Self {
        // Creates the series: without large bodies the gauge is 0, not missing.
        metrics::gauge!(BUFFERED).increment(0.0);
        Self(Arc::new(Parts {
            max: bytes,
            used: AtomicUsize::new(0),
            refused_at: Mutex::new(None),
        }))
    }

    /// Whether a reservation failed recently, so that slow readers must be cut off sooner.
    pub(super) fn is_short(&self) -> bool {
        let refused_at = *self.refused_at();
        refused_at.is_some_and(|at| at.elapsed() < SHORT_TIME)
    }

    /// Reserves `bytes`, or returns `None` when the budget is exhausted.
    pub(super) fn reserve(&self, bytes: usize) -> Option<Reservation> {
        let mut reservation = self.reserve_nothing();
        reservation.resize(bytes).then_some(reservation)
    }

    /// An empty reservation, to be resized.
    pub(super) fn reserve_nothing(&self) -> Reservation {
        Reservation {
            bytes: 0,
            budget: self.clone(),
        }
    }

    /// What to reserve for a page before it is made. The page is resized to its real size then.
    pub(super) fn estimate_page(&self, items: u32) -> usize {
        let each = if self.is_short() {
            ITEM_BYTES_SHORT
        } else {
            ITEM_BYTES
        };
        each.saturating_mul(usize::try_from(items).unwrap_or(usize::MAX))
    }

    fn refused_at(&self) -> MutexGuard<'_, Option<Instant>> {
        let refused_at = self.0.refused_at.lock();
        refused_at.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reservation {
    /// Resizes the reservation if the budget allows; otherwise leaves it as it is. A sole reservation may exceed the
    /// budget, because it could never be granted otherwise.
    pub(super) fn resize(&mut self, bytes: usize) -> bool {
        let Parts { max, used, .. } = &*self.budget.0;
        let fits = |used: usize| {
            let others = used - self.bytes;
            let sum = others.saturating_add(bytes);
            (others == 0 || sum <= *max || bytes <= self.bytes).then_some(sum)
        };
        let order = Ordering::Relaxed;
        let is_made = used.fetch_update(order, order, fits).is_ok();
        if is_made {
            self.record(bytes);
        } else {
            *self.budget.refused_at() = Some(Instant::now());
        }
        is_made
    }

    /// Resizes the reservation, exceeding the budget if necessary.
    pub(super) fn insist(&mut self, bytes: usize) {
        if !self.resize(bytes) {
            let more = bytes - self.bytes;
            self.budget.0.used.fetch_add(more, Ordering::Relaxed);
            self.record(bytes);
        }
    }

    fn record(&mut self, bytes: usize) {
        metrics::gauge!(BUFFERED).increment(as_float(bytes) - as_float(self.bytes));
        self.bytes = bytes;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.0.used.fetch_sub(self.bytes, Ordering::Relaxed);
        metrics::gauge!(BUFFERED).decrement(as_float(self.bytes));
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
    fn the_budget_is_short_after_a_refusal_and_pages_are_estimated_larger() {
        let budget = ResponseBudget::new(10);
        let reservation = budget.reserve(10);
        assert!(reservation.is_some() && !budget.is_short());
        assert_eq!(budget.estimate_page(100), 100 * ITEM_BYTES);
        assert!(budget.reserve(1).is_none() && budget.is_short());
        assert_eq!(budget.estimate_page(100), 100 * ITEM_BYTES_SHORT);
        assert_eq!(budget.estimate_page(0), 0);
        drop(reservation);
        assert!(budget.reserve(1).is_some());
    }

    fn used(budget: &ResponseBudget) -> usize {
        budget.0.used.load(Ordering::Relaxed)
    }

    #[test]
    fn only_a_sole_reservation_exceeds_the_budget() {
        let budget = ResponseBudget::new(10);
        let sole = budget.reserve(25).expect("there is no other reservation");
        assert!(budget.reserve(1).is_none());
        drop(sole);
        let one = budget.reserve(1);
        assert!(one.is_some() && budget.reserve(25).is_none());
        assert!(budget.reserve(usize::MAX).is_none());
        assert_eq!(used(&budget), 1);
    }

    #[test]
    fn a_reservation_grows_and_shrinks_within_the_budget() {
        let budget = ResponseBudget::new(8);
        let mut reservation = budget.reserve_nothing();
        assert!(reservation.resize(4) && reservation.resize(20));
        assert_eq!((used(&budget), reservation.bytes), (20, 20));
        assert!(budget.reserve(1).is_none());
        assert!(reservation.resize(7));
        let other = budget.reserve(1).unwrap();
        assert!(!reservation.resize(8) && reservation.resize(6) && reservation.resize(7));
        assert_eq!((used(&budget), reservation.bytes), (8, 7));
        reservation.insist(9);
        assert_eq!(used(&budget), 10);
        assert!(reservation.resize(8), "a smaller reservation always fits");
        drop(other);
        drop(reservation);
        assert_eq!(used(&budget), 0);
    }
}
