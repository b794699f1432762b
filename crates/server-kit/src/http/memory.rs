//! The memory budget for clients: large bodies until they are handled, large responses until their
//! clients have read them. Without a limit, slow readers would hold any amount of memory.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::capacity::{Capacity, Portion};

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
    bytes: Arc<Capacity>,
    refused_at: Mutex<Option<Instant>>,
}

/// A part of the budget, returned on drop.
#[derive(Debug)]
pub(super) struct Reservation {
    slot: Portion,
    budget: ResponseBudget,
}

impl ResponseBudget {
    pub(super) fn new(bytes: usize) -> Self {
        // Creates the series: without large bodies the gauge is 0, not missing.
        metrics::gauge!(BUFFERED).increment(0.0);
        Self(Arc::new(Parts {
            bytes: Capacity::new(bytes),
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
            slot: self.0.bytes.nothing(),
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
    /// Resizes the reservation if the budget allows; otherwise leaves it as it is.
    pub(super) fn resize(&mut self, bytes: usize) -> bool {
        let before = self.slot.amount();
        let is_made = self.slot.resize(bytes);
        self.record(before, is_made);
        is_made
    }

    /// Resizes the reservation, exceeding the budget if necessary.
    pub(super) fn insist(&mut self, bytes: usize) {
        let before = self.slot.amount();
        let is_made = self.slot.insist(bytes);
        self.record(before, is_made);
    }

    fn record(&self, before: usize, is_made: bool) {
        let change = as_float(self.slot.amount()) - as_float(before);
        metrics::gauge!(BUFFERED).increment(change);
        if !is_made {
            *self.budget.refused_at() = Some(Instant::now());
        }
    }
}

impl Drop for Reservation {
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
}
