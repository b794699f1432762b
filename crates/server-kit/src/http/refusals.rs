//! Counts requests that are refused because of the load of others, by reason.

use super::memory::{Reservation, ResponseBudget};
use super::problem::Problem;

const REFUSED: &str = "hyperfleet_api_requests_refused_total";
pub(super) const STARTING: &str = "starting";
pub(super) const RATE: &str = "rate";
pub(super) const IN_FLIGHT: &str = "in_flight";
pub(super) const MEMORY: &str = "memory";
pub(super) const WATCHERS: &str = "watchers";

/// Creates every series, so that the first refusal is visible as growth.
pub(super) fn count_from_zero() {
    for reason in [STARTING, RATE, IN_FLIGHT, MEMORY, WATCHERS] {
        metrics::counter!(REFUSED, "reason" => reason).absolute(0);
    }
}

pub(super) fn count(reason: &'static str) {
    metrics::counter!(REFUSED, "reason" => reason).increment(1);
}

/// Counts a problem and returns it.
pub(super) fn count_refusal(reason: &'static str, problem: Problem) -> Problem {
    count(reason);
    problem
}

/// Reserves memory for a client.
///
/// # Errors
/// 503 when others hold it.
pub(super) fn reserve(budget: &ResponseBudget, bytes: usize) -> Result<Reservation, Problem> {
    let reservation = budget.reserve(bytes);
    reservation.ok_or_else(|| count_refusal(MEMORY, Problem::full()))
}

/// Resizes a reservation.
///
/// # Errors
/// 503 when others hold it.
pub(super) fn resize(reservation: &mut Reservation, bytes: usize) -> Result<(), Problem> {
    let is_made = reservation.resize(bytes);
    is_made
        .then_some(())
        .ok_or_else(|| count_refusal(MEMORY, Problem::full()))
}
